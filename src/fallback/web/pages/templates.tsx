import { useDeferredValue, useState } from 'react';
import { useSearchParams } from 'react-router';

import { LinkButton } from '../../../kit/web/components/button.tsx';
import { CodeBlock, CopyButton } from '../../../kit/web/components/code.tsx';
import { Callout, Empty, Skeleton } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextArea } from '../../../kit/web/components/field.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { type TemplateName, templateNames } from '../../model/export.ts';
import { useChains, useDebounced, useTemplate } from '../data/queries.ts';
import { Load } from '../parts/load.tsx';
import { useTitle } from '../parts/title.ts';
import styles from './templates.module.css';

const beginning = `# {{ chain.name }}
{% for provider in chain.providers %}
{{ forloop.index }}. {{ provider.name }} ({{ provider.model_id }})
{%- endfor %}
`;

/** A template beside what it gives for a chain. */
export function TemplatesPage() {
  useTitle('Templates');
  const chains = useChains();
  return (
    <>
      <PageHeader title="Templates" subtitle="Liquid: the chain is `chain`; each variable goes by its name." />
      <Load query={chains} what="The chains">
        {(found) =>
          found.length === 0 ? (
            <Empty title="No chains yet" actions={<LinkButton to="/chains/new">New chain</LinkButton>}>
              A template needs a chain to show.
            </Empty>
          ) : (
            <Editor chains={found} />
          )
        }
      </Load>
    </>
  );
}

/** The variables as JSON, or why they are none. */
function variablesOf(text: string): { variables?: Record<string, unknown>; error?: string } {
  if (text.trim() === '') return { variables: {} };
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return { variables: value as Record<string, unknown> };
    return { error: 'Variables are one JSON object.' };
  } catch {
    return { error: 'Variables are one JSON object, and this is not valid JSON.' };
  }
}

function Editor({ chains }: { chains: readonly { id: string; name: string }[] }) {
  const [params, setParams] = useSearchParams();
  const chainId = chains.some(({ id }) => id === params.get('chain')) ? params.get('chain')! : chains[0]!.id;
  const named = params.get('template') ?? '';
  const [template, setTemplate] = useState(beginning);
  const [variables, setVariables] = useState('');
  const parsed = variablesOf(variables);
  const wanted = useDebounced(useDeferredValue(template), 250);
  const output = useTemplate(
    {
      chain_id: chainId,
      ...(named === '' ? { template: wanted } : { template_name: named as TemplateName }),
      variables: parsed.variables ?? {},
    },
    parsed.error === undefined,
  );
  const set = (name: string, value: string) => setParams((before) => ({ ...Object.fromEntries(before), [name]: value }), { replace: true });
  return (
    <div className={styles.columns}>
      <Panel title="Template">
        <div className={styles.fields}>
          <SelectField
            label="Chain"
            options={chains.map(({ id, name }) => ({ value: id, label: name }))}
            value={chainId}
            onChange={(event) => set('chain', event.target.value)}
          />
          <SelectField
            label="Template"
            options={[{ value: '', label: 'my own' }, ...templateNames.map((value) => ({ value, label: value }))]}
            value={named}
            onChange={(event) => set('template', event.target.value)}
          />
        </div>
        {named === '' ? (
          <TextArea
            label="Text"
            code
            rows={18}
            value={template}
            onChange={(event) => setTemplate(event.target.value)}
            error={output.error?.message}
          />
        ) : (
          <p className={styles.muted}>This template comes with the service.</p>
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
      <Panel title="Output" actions={output.data === undefined ? undefined : <CopyButton text={output.data.output} />}>
        <div aria-live="polite" className={styles.output}>
          {output.error === null ? null : (
            <Callout tone="bad" title="The template gives nothing.">
              {output.error.message}
            </Callout>
          )}
          {output.data === undefined ? (
            output.error === null ? (
              <Skeleton lines={5} />
            ) : null
          ) : (
            <CodeBlock label="Output" text={output.data.output} />
          )}
        </div>
      </Panel>
    </div>
  );
}
