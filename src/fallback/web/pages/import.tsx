import { FileUp } from 'lucide-react';
import { type DragEvent, useRef, useState } from 'react';
import { useNavigate } from 'react-router';

import { Button, LinkButton } from '../../../kit/web/components/button.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { Fields, Form } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { counted } from '../../../kit/web/format.ts';
import { type Imported, type ImportFormat, importFormats } from '../../model/export.ts';
import { faultsOf } from '../data/api.ts';
import { useImport, useMayWrite } from '../data/queries.ts';
import { Notes } from '../parts/notes.tsx';
import { useTitle } from '../parts/title.ts';

/** Guesses the format of a file from its name and its text. */
function guess(filename: string, text: string): ImportFormat {
  if (/\bmodel_list\s*:/.test(text)) return 'litellm';
  if (/"targets"\s*:/.test(text) && /"strategy"\s*:/.test(text)) return 'portkey';
  return /\.ya?ml$/i.test(filename) || !/^\s*[{[]/.test(text) ? 'yaml' : 'json';
}

/** The page to import a chain from a file. */
export function ImportPage() {
  useTitle('Import a chain');
  const mayWrite = useMayWrite();
  const run = useImport();
  return (
    <>
      <PageHeader title="Import a chain" subtitle="From LiteLLM, Portkey, or our own JSON and YAML." />
      {run.data === undefined ? null : <Findings imported={run.data} />}
      <Panel>{mayWrite ? <ImportForm run={run} /> : <p>This key may only read, so nothing can be imported with it.</p>}</Panel>
    </>
  );
}

function ImportForm({ run }: { run: ReturnType<typeof useImport> }) {
  const navigate = useNavigate();
  const [format, setFormat] = useState<ImportFormat>('litellm');
  const [content, setContent] = useState('');
  const [name, setName] = useState('');
  const [empty, setEmpty] = useState(false);

  async function take(chosen: File | undefined): Promise<void> {
    if (chosen === undefined) return;
    const text = await chosen.text();
    setContent(text);
    setFormat(guess(chosen.name, text));
    setEmpty(false);
  }
  function submit(): void {
    setEmpty(content.trim() === '');
    if (content.trim() === '') return;
    run.mutate(
      { format, content, ...(name.trim() === '' ? {} : { name: name.trim() }) },
      { onSuccess: ({ chain, findings }) => void (findings.length === 0 && navigate(`/chains/${chain.id}`)) },
    );
  }
  return (
    <Form onSubmit={submit}>
      <FilePicker onTake={(file) => void take(file)} />
      <TextArea
        label="Content"
        code
        rows={16}
        placeholder="Paste the configuration here, or drop a file"
        value={content}
        onChange={(event) => setContent(event.target.value)}
        {...dropTarget((file) => void take(file))}
        error={empty ? 'Paste a configuration or choose a file.' : undefined}
      />
      <Fields>
        <SelectField
          label="Format"
          options={importFormats}
          value={format}
          onChange={(event) => setFormat(event.target.value as ImportFormat)}
        />
        <TextField label="Name of the chain" placeholder="as in the file" value={name} onChange={(event) => setName(event.target.value)} />
      </Fields>
      <NotMade error={run.error} />
      <div>
        <Button type="submit" look="primary" busy={run.isPending}>
          Import
        </Button>
      </div>
    </Form>
  );
}

function FilePicker({ onTake }: { onTake(file: File | undefined): void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <div>
      <input
        ref={input}
        type="file"
        hidden
        aria-label="File to import"
        accept=".json,.yaml,.yml,.txt"
        onChange={({ target }) => {
          onTake(target.files?.[0]);
          // Lets the user choose the same file again after it has changed.
          target.value = '';
        }}
      />
      <Button icon={FileUp} onClick={() => input.current?.click()}>
        Choose a file
      </Button>
    </div>
  );
}

const dropTarget = (onTake: (file: File | undefined) => void) => ({
  onDragOver(event: DragEvent) {
    if (event.dataTransfer.types.includes('Files')) event.preventDefault();
  },
  onDrop(event: DragEvent) {
    const [file] = event.dataTransfer.files;
    if (file === undefined) return;
    event.preventDefault();
    onTake(file);
  },
});

function NotMade({ error }: { error: Error | null }) {
  if (error === null) return null;
  const faults = faultsOf(error);
  return <Notes tone="bad" alert title="The file was not imported." notes={faults.length > 0 ? faults : [{ detail: error.message }]} />;
}

function Findings({ imported: { chain, findings } }: { imported: Imported }) {
  const title = `${chain.name} was imported${findings.length === 0 ? '' : `, with ${counted(findings.length, 'finding')}`}.`;
  const actions = <LinkButton to={`/chains/${chain.id}`}>Open the chain</LinkButton>;
  if (findings.length === 0) return <Callout tone="good" title={title} actions={actions} />;
  return <Notes tone="warn" title={title} actions={actions} notes={findings} />;
}
