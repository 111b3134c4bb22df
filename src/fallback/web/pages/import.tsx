import { FileUp } from 'lucide-react';
import { type DragEvent, useEffect, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { ApiError } from '../../../kit/client-errors.ts';
import { useTitle } from '../../../kit/web/app/title.ts';
import { type Fault, faultsOf } from '../../../kit/web/app/transport.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { Fields, Form } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Notes } from '../../../kit/web/components/notes.tsx';
import { counted } from '../../../kit/web/format.ts';
import { type ImportFormat, type ImportPreview, importFormats } from '../../model/export.ts';
import { lineOf } from '../data/line-of.ts';
import { useImport, useImportPreview, useMayWrite } from '../data/queries.ts';
import { ProviderPath } from '../parts/provider-path.tsx';
import { saidOf } from '../parts/said.ts';

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
      <Panel>{mayWrite ? <ImportForm run={run} /> : <p>This key may only read, so nothing can be imported with it.</p>}</Panel>
    </>
  );
}

function ImportForm({ run }: { run: ReturnType<typeof useImport> }) {
  const navigate = useNavigate();
  const [choices, setChoices] = useState<ImportChoices>({ format: 'litellm', name: '', group: '' });
  const [content, setContent] = useState('');
  const { format, name, group } = choices;
  const [candidates, setCandidates] = useState<readonly string[]>([]);
  const [empty, setEmpty] = useState(false);
  const preview = useImportPreview();
  const file = { format, group: format === 'litellm' ? group.trim() : '', content, ...(name.trim() === '' ? {} : { name: name.trim() }) };
  /** Applies a change, after which the file must be previewed again. */
  const changed = (change: () => void) => {
    preview.reset();
    run.reset();
    change();
  };

  async function take(chosen: File | undefined): Promise<void> {
    if (chosen === undefined) return;
    const text = await chosen.text();
    changed(() => {
      setContent(text);
      setChoices({ ...choices, format: guess(chosen.name, text), group: '' });
      setCandidates([]);
      setEmpty(false);
    });
  }
  function submit(): void {
    setEmpty(content.trim() === '');
    if (content.trim() === '') return;
    if (preview.data === undefined) preview.mutate(file, { onError: (error) => setCandidates((before) => candidatesOf(error) ?? before) });
    else run.mutate(file, { onSuccess: ({ chain }) => void navigate(`/chains/${chain.id}`) });
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
        onChange={(event) =>
          changed(() => {
            setContent(event.target.value);
            setCandidates([]);
          })
        }
        {...dropTarget((file) => void take(file))}
        error={empty ? 'Paste a configuration or choose a file.' : undefined}
      />
      <Choices
        choices={choices}
        candidates={candidates}
        onChange={(changes) => changed(() => setChoices({ ...choices, ...changes }))}
        error={preview.error}
      />
      <NotMade error={run.error ?? preview.error} content={content} />
      {preview.data === undefined ? null : <Preview preview={preview.data} />}
      <div>
        <Button type="submit" look="primary" busy={run.isPending || preview.isPending}>
          {preview.data === undefined ? 'Preview' : 'Import'}
        </Button>
      </div>
    </Form>
  );
}

interface ImportChoices {
  format: ImportFormat;
  /** Empty for the name in the file. */
  name: string;
  /** The group where a LiteLLM chain begins; empty for the only one with fallbacks. */
  group: string;
}

interface ChoicesProps {
  choices: ImportChoices;
  /** The groups among which a file with several chains lets one choose. */
  candidates: readonly string[];
  onChange(changes: Partial<ImportChoices>): void;
  /** The error of the preview. */
  error: Error | null;
}

function Choices({ choices: { format, name, group }, candidates, onChange, error }: ChoicesProps) {
  return (
    <Fields>
      <SelectField
        label="Format"
        options={importFormats}
        value={format}
        onChange={({ target }) => onChange({ format: target.value as ImportFormat })}
      />
      <TextField
        label="Name of the chain"
        placeholder="as in the file"
        value={name}
        onChange={({ target }) => onChange({ name: target.value })}
      />
      {format !== 'litellm' ? null : candidates.length > 0 ? (
        <SelectField
          label="First model group"
          error={group === '' ? 'The file has several chains: choose where the one to import begins.' : undefined}
          options={[{ value: '', label: 'Choose a group' }, ...candidates]}
          value={group}
          onChange={({ target }) => onChange({ group: target.value })}
        />
      ) : (
        <TextField
          label="First model group"
          placeholder="the only one with fallbacks"
          value={group}
          onChange={({ target }) => onChange({ group: target.value })}
          error={faultsOf(error).find(({ field }) => field === 'group')?.detail}
        />
      )}
    </Fields>
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

/** The groups that a refusal names. */
function candidatesOf(error: Error): readonly string[] | undefined {
  const candidates = error instanceof ApiError ? error.body.candidates : undefined;
  return Array.isArray(candidates) ? candidates.map(String) : undefined;
}

/** The faults of a file, each with its line where that is known. */
function useLines(faults: readonly Fault[], content: string): readonly Fault[] {
  const [lines, setLines] = useState<readonly (number | undefined)[]>([]);
  const fields = faults.map(({ field }) => field).join(' ');
  useEffect(() => {
    let current = true;
    void Promise.all(fields.split(' ').map((field) => lineOf(content, field))).then((found) => current && setLines(found));
    return () => {
      current = false;
    };
  }, [fields, content]);
  return faults.map(({ field, detail }, index) => ({
    field,
    detail: lines[index] === undefined ? detail : `Line ${lines[index]}: ${detail}`,
  }));
}

function NotMade({ error, content }: { error: Error | null; content: string }) {
  const faults = useLines(faultsOf(error), content);
  if (error === null || candidatesOf(error) !== undefined) return null;
  return <Notes tone="bad" alert title="The file was not imported." notes={faults.length > 0 ? faults : [{ detail: error.message }]} />;
}

/** What would be stored: the providers in order, and what was left out or interpreted differently. */
function Preview({ preview: { chain, findings, warnings } }: { preview: ImportPreview }) {
  const rules = counted(chain.fallback_rules.length, 'rule');
  return (
    <>
      <Callout tone="info" title={`${chain.name}: ${counted(chain.providers.length, 'provider')}, ${rules}`}>
        <ProviderPath providers={chain.providers} />
      </Callout>
      <Notes tone="warn" title={`The import has ${counted(findings.length, 'finding')}.`} notes={findings} />
      <Notes tone="warn" title="Review these warnings" notes={saidOf(warnings)} />
    </>
  );
}
