import { FileUp } from 'lucide-react';
import { type DragEvent, useEffect, useRef, useState } from 'react';
import { useNavigate } from 'react-router';
import { ApiError } from '../../../kit/client-errors.ts';
import { useTitle } from '../../../kit/web/app/title.ts';
import { type Fault, faultsOf } from '../../../kit/web/app/transport.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields, Form } from '../../../kit/web/components/form.tsx';
import { PageHeader, Panel } from '../../../kit/web/components/layout.tsx';
import { Notes } from '../../../kit/web/components/notes.tsx';
import { toast } from '../../../kit/web/components/toasts.tsx';
import { counted } from '../../../kit/web/format.ts';
import type { ImportPreview } from '../../model/export.ts';
import { detectFormat, importFormats, targets } from '../../model/targets.ts';
import { useImport, useImportPreview, useMayWrite } from '../data/queries.ts';
import { findingNotes } from '../parts/finding-notes.ts';
import { labelledNotes } from '../parts/labels.ts';
import { ProviderPath } from '../parts/provider-path.tsx';

/** The page to import a chain from a file. */
export function ImportPage() {
  useTitle('Import a chain');
  const mayWrite = useMayWrite();
  return (
    <>
      <PageHeader title="Import a chain" subtitle="A configuration of a gateway, or a chain as JSON or YAML." />
      <Panel>{mayWrite ? <ImportForm /> : <p>This key may only read, so nothing can be imported with it.</p>}</Panel>
    </>
  );
}

const emptyDraft = {
  content: '',
  format: importFormats[0]!,
  /** Empty for the name in the file. */
  name: '',
  /** The group where the chain begins, in a format that has groups; empty for the only one with fallbacks. */
  group: '',
  /** The groups among which a file with several chains lets one choose. */
  candidates: [] as readonly string[],
};

function ImportForm() {
  const navigate = useNavigate();
  const [draft, setDraft] = useState(emptyDraft);
  const run = useImport({ onSuccess: ({ chain }) => void navigate(`/chains/${chain.id}`) });
  const preview = useImportPreview({
    onError(error, file) {
      // The user may have changed the file meanwhile.
      setDraft((before) =>
        before.content === file.content ? { ...before, candidates: candidatesOf(error) ?? before.candidates } : before,
      );
    },
  });
  const [tried, setTried] = useState(false);
  const { content, format, name, group, candidates } = draft;
  const isEmpty = content.trim() === '';
  const { hasGroups } = targets[format];
  /** Applies changes, after which the file must be previewed again. */
  const change = (changes: Partial<typeof draft>) => {
    preview.reset();
    run.reset();
    setDraft((before) => ({ ...before, ...('content' in changes ? { candidates: [] } : {}), ...changes }));
  };
  function faultOf(field: string): string | undefined {
    if (field === 'content') return tried && isEmpty ? 'Paste a configuration or choose a file.' : undefined;
    if (field !== 'group') return undefined;
    if (candidates.length > 0) return group === '' ? 'The file has several chains: choose where the one to import begins.' : undefined;
    return faultsOf(preview.error).find((fault) => fault.field === 'group')?.detail;
  }
  const bound = bind(draft, change, faultOf);
  function take(file: File): void {
    file.text().then(
      (text) => change({ content: text, format: detectFormat(file.name, text), group: '' }),
      () => toast({ text: `${file.name} could not be read.`, tone: 'bad' }),
    );
  }
  function submit(): void {
    setTried(true);
    const file = { content, format, group: hasGroups ? group.trim() : '', name: name.trim() === '' ? null : name.trim() };
    if (isEmpty) return;
    if (preview.data === undefined) preview.mutate(file);
    else run.mutate(file);
  }
  return (
    <Form onSubmit={submit}>
      <FilePicker onTake={take} />
      <TextArea
        label="Content"
        code
        rows={16}
        placeholder="Paste the configuration here, or drop a file"
        {...dropTarget(take)}
        {...bound('content')}
      />
      <Fields>
        <SelectField label="Format" options={importFormats.map((value) => ({ value, label: targets[value].label }))} {...bound('format')} />
        <TextField label="Name of the chain" placeholder="as in the file" {...bound('name')} />
        {!hasGroups ? null : candidates.length > 0 ? (
          <SelectField label="First model group" options={[{ value: '', label: 'Choose a group' }, ...candidates]} {...bound('group')} />
        ) : (
          <TextField label="First model group" placeholder="the only one with fallbacks" {...bound('group')} />
        )}
      </Fields>
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

function FilePicker({ onTake }: { onTake: (file: File) => void }) {
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
          const file = target.files?.[0];
          if (file !== undefined) onTake(file);
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

const dropTarget = (onTake: (file: File) => void) => ({
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

/** The groups that the rejection of a file with several chains names. */
function candidatesOf(error: Error): readonly string[] | undefined {
  const candidates = error instanceof ApiError ? error.body.candidates : undefined;
  return Array.isArray(candidates) ? candidates.map(String) : undefined;
}

/** The faults of a file, each with its line where that is known. */
function useLines(faults: readonly Fault[], content: string): readonly Fault[] {
  const [found, setFound] = useState<{ fields: string; content: string; lines: readonly (number | null)[] }>();
  const fields = faults.map(({ field }) => field).join('\n');
  useEffect(() => {
    // Without faults the file is not parsed: this runs at each key.
    if (fields === '') return;
    // The parser is loaded when a file has faults. If it can't be loaded, the faults are shown without lines.
    import('../../rules/targets/field-lines.ts').then(
      ({ linesOf }) => setFound({ fields, content, lines: linesOf(content, fields.split('\n')) }),
      () => undefined,
    );
  }, [fields, content]);
  const lines = found?.fields === fields && found.content === content ? found.lines : [];
  return faults.map(({ field, detail }, index) => ({ field, detail: lines[index] ? `Line ${lines[index]}: ${detail}` : detail }));
}

function NotMade({ error, content }: { error: Error | null; content: string }) {
  const faults = useLines(faultsOf(error), content);
  if (error === null || candidatesOf(error) !== undefined) return null;
  return <Notes tone="bad" alert title="The file was not imported." notes={faults.length > 0 ? faults : [{ detail: error.message }]} />;
}

/** What would be stored: the providers in order, and what was left out or interpreted differently. */
function Preview({ preview: { chain, findings, warnings } }: { preview: ImportPreview }) {
  const rules = counted(chain.fallback_rules.length, 'rule');
  const notes = findingNotes(findings);
  return (
    <>
      <Callout tone="info" title={`${chain.name}: ${counted(chain.providers.length, 'provider')}, ${rules}`}>
        <ProviderPath providers={chain.providers} />
      </Callout>
      <Notes tone="warn" title={`The import has ${counted(notes.length, 'finding')}.`} notes={notes} />
      <Notes tone="warn" title="Review these warnings" notes={labelledNotes(warnings)} />
    </>
  );
}
