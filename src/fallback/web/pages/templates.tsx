import { useState } from 'react';
import { useSearchParams } from 'react-router';
import { readJson } from '../../../kit/json.ts';
import { Load } from '../../../kit/web/app/load.tsx';
import { useDebounced } from '../../../kit/web/app/queries.ts';
import { useTitle } from '../../../kit/web/app/title.ts';
import { LinkButton } from '../../../kit/web/components/button.tsx';
import { CodeBlock, CopyButton } from '../../../kit/web/components/code.tsx';
import { Callout, Empty, Skeleton } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextArea } from '../../../kit/web/components/field.tsx';
import { Fields } from '../../../kit/web/components/form.tsx';
import { Columns, PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { templateNames } from '../../model/export.ts';
import { useChains, useTemplate } from '../data/queries.ts';
import { chainLabel } from '../parts/chain-label.ts';

const beginning = `# {{ chain.name }}
{% for provider in chain.providers %}
{{ forloop.index }}. {{ provider.name }} ({{ provider.model_id }})
{%- endfor %}
`;

/** The page to edit a template, beside its output for a chain. */
export function TemplatesPage() {
  useTitle('Templates');
  const chains = useChains();
  return (
    <>
      <PageHeader
        title="Templates"
        subtitle={
          <>
            A Liquid template: <code>chain</code> is the chain, and each variable is available by name.
          </>
        }
      />
      <Load query={chains} what="The chains">
        {(found) =>
          found.length === 0 ? (
            <Empty title="No chains yet" actions={<LinkButton to="/chains/new">New chain</LinkButton>}>
              A template is rendered for a chain.
            </Empty>
          ) : (
            <Editor chains={found} />
          )
        }
      </Load>
    </>
  );
}

/** The parsed variables, or the fault of their JSON. */
function variablesOf(text: string): { variables?: Record<string, unknown>; error?: string } {
  if (text.trim() === '') return { variables: {} };
  try {
    const value: unknown = readJson(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { variables: { ...value } };
    return { error: 'Variables are one JSON object.' };
  } catch {
    return { error: 'Variables are one JSON object, and this is not valid JSON.' };
  }
}

const templates = [{ value: '', label: 'custom' }, ...templateNames];

function Editor({ chains }: { chains: readonly { id: string; name: string }[] }) {
  const [params, setParams] = useSearchParams();
  const chainId = chains.some(({ id }) => id === params.get('chain')) ? params.get('chain')! : chains[0]!.id;
  const options = chains.map((chain) => ({ value: chain.id, label: chainLabel(chain, chains) }));
  const named = templateNames.find((name) => name === params.get('template'));
  const [template, setTemplate] = useState(beginning);
  const [variables, setVariables] = useState('');
  const parsed = variablesOf(variables);
  const wanted = useDebounced(template, 250);
  const output = useTemplate(
    {
      chain_id: chainId,
      ...(named === undefined ? { template: wanted } : { template_name: named }),
      variables: parsed.variables ?? {},
    },
    parsed.error === undefined,
  );
  const set = (name: string, value: string) => setParams((before) => ({ ...Object.fromEntries(before), [name]: value }), { replace: true });
  return (
    <Columns min="26rem">
      <Panel title="Template">
        <Fields min="10rem">
          <SelectField label="Chain" options={options} value={chainId} onChange={({ target }) => set('chain', target.value)} />
          <SelectField label="Template" options={templates} value={named ?? ''} onChange={({ target }) => set('template', target.value)} />
        </Fields>
        {named === undefined ? (
          <TextArea
            label="Text"
            code
            rows={18}
            value={template}
            onChange={(event) => setTemplate(event.target.value)}
            error={output.error?.message}
          />
        ) : (
          <p className="muted">This template comes with the service.</p>
        )}
        <TextArea
          label="Variables"
          code
          rows={3}
          placeholder={'{"region": "eu"}'}
          value={variables}
          onChange={(event) => setVariables(event.target.value)}
          error={parsed.error}
        />
      </Panel>
      <Output text={output.data?.output} error={output.error} />
    </Columns>
  );
}

/** The output of the template. While the template has an error, the last output stays visible beside it. */
function Output({ text, error }: { text: string | undefined; error: Error | null }) {
  return (
    <Panel title="Output" actions={text === undefined ? undefined : <CopyButton text={text} />}>
      <div aria-live="polite" className="stack">
        {error === null ? null : (
          <Callout tone="bad" title="The template could not be rendered.">
            {error.message}
          </Callout>
        )}
        {text === undefined && error === null ? <Skeleton lines={5} /> : null}
        {text === undefined ? null : <CodeBlock label="Output" text={text} />}
      </div>
    </Panel>
  );
}
