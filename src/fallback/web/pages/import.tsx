import { FileUp } from 'lucide-react';
import { type FormEvent, useRef, useState } from 'react';
import { useNavigate } from 'react-router';

import { Button, LinkButton } from '../../../kit/web/components/button.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { counted } from '../../../kit/web/format.ts';
import { type Imported, type ImportFormat, importFormats } from '../../model/export.ts';
import { faultsOf } from '../data/api.ts';
import { useImport, useMayWrite } from '../data/queries.ts';
import { useTitle } from '../parts/title.ts';
import styles from './import.module.css';

/** Guesses who wrote a file from its name and its text. */
function guess(filename: string, text: string): ImportFormat {
  if (/\bmodel_list\s*:/.test(text)) return 'litellm';
  if (/"targets"\s*:/.test(text) && /"strategy"\s*:/.test(text)) return 'portkey';
  return /\.ya?ml$/i.test(filename) || !/^\s*[{[]/.test(text) ? 'yaml' : 'json';
}

/** Makes a chain of a file that another program reads. */
export function ImportPage() {
  useTitle('Import a chain');
  const mayWrite = useMayWrite();
  const run = useImport();
  const navigate = useNavigate();
  const file = useRef<HTMLInputElement>(null);
  const [format, setFormat] = useState<ImportFormat>('litellm');
  const [content, setContent] = useState('');
  const [name, setName] = useState('');
  const [empty, setEmpty] = useState(false);
  const faults = faultsOf(run.error);

  async function take(chosen: File | undefined): Promise<void> {
    if (chosen === undefined) return;
    const text = await chosen.text();
    setContent(text);
    setFormat(guess(chosen.name, text));
  }
  function submit(event: FormEvent): void {
    event.preventDefault();
    setEmpty(content.trim() === '');
    if (content.trim() === '') return;
    run.mutate(
      { format, content, ...(name.trim() === '' ? {} : { name: name.trim() }) },
      { onSuccess: ({ chain, findings }) => void (findings.length === 0 && navigate(`/chains/${chain.id}`)) },
    );
  }

  return (
    <>
      <PageHeader title="Import a chain" subtitle="From LiteLLM, Portkey, or our own JSON and YAML." />
      {run.data === undefined ? null : <Findings imported={run.data} />}
      <Panel>
        {mayWrite ? (
          <form onSubmit={submit} className={styles.form} noValidate>
            <div className={styles.fields}>
              <SelectField
                label="Format"
                options={importFormats}
                value={format}
                onChange={(event) => setFormat(event.target.value as ImportFormat)}
              />
              <TextField
                label="Name of the chain"
                placeholder="as in the file"
                value={name}
                onChange={(event) => setName(event.target.value)}
              />
              <div className={styles.file}>
                <input
                  ref={file}
                  type="file"
                  className="visually-hidden"
                  aria-label="File to import"
                  accept=".json,.yaml,.yml,.txt"
                  onChange={(event) => void take(event.target.files?.[0])}
                />
                <Button icon={FileUp} onClick={() => file.current?.click()}>
                  Choose a file
                </Button>
              </div>
            </div>
            <TextArea
              label="Content"
              code
              rows={16}
              placeholder="Paste the configuration here"
              value={content}
              onChange={(event) => setContent(event.target.value)}
              onDragOver={(event) => event.preventDefault()}
              onDrop={(event) => {
                event.preventDefault();
                void take(event.dataTransfer.files[0]);
              }}
              error={empty ? 'Paste a configuration or choose a file.' : undefined}
            />
            {run.error === null ? null : (
              <Callout tone="bad" alert title="No chain was made of it.">
                <ul>
                  {faults.length > 0
                    ? faults.map(({ field, detail }) => <li key={`${field} ${detail}`}>{detail}</li>)
                    : [<li key="message">{run.error.message}</li>]}
                </ul>
              </Callout>
            )}
            <div>
              <Button type="submit" look="primary" busy={run.isPending}>
                Import
              </Button>
            </div>
          </form>
        ) : (
          <p>This key may only read, so nothing can be imported with it.</p>
        )}
      </Panel>
    </>
  );
}

function Findings({ imported: { chain, findings } }: { imported: Imported }) {
  return (
    <Callout
      tone={findings.length === 0 ? 'good' : 'warn'}
      title={`${chain.name} was made, with ${counted(findings.length, 'finding')}.`}
      actions={<LinkButton to={`/chains/${chain.id}`}>Open the chain</LinkButton>}
    >
      <ul className={styles.findings}>
        {findings.map(({ code, field, detail }) => (
          <li key={`${code} ${field} ${detail}`}>{detail}</li>
        ))}
      </ul>
    </Callout>
  );
}
