import { Play } from 'lucide-react';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { Load } from '../../../kit/web/app/load.tsx';
import { besideField, faultsOf } from '../../../kit/web/app/transport.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { CodeBlock, CopyButton } from '../../../kit/web/components/code.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { SelectField, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields, Form } from '../../../kit/web/components/form.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { Notes } from '../../../kit/web/components/notes.tsx';
import { counted, words } from '../../../kit/web/format.ts';
import type { Chain } from '../../model/chain.ts';
import type { Export } from '../../model/export.ts';
import { gatewayOf, type RehearsalFormat, rehearsalFormats, targets } from '../../model/targets.ts';
import { type Preset, presets, type TestRequest } from '../../model/test.ts';
import { useAccess, useMayWrite, useRehearsalExport, useStartTest } from '../data/queries.ts';
import { NotStarted } from '../edit/not-started.tsx';
import { emptyTimeline, type TimelineDraft, timelineRequest } from '../edit/timeline-draft.ts';
import { TimelineFields } from '../edit/timeline-fields.tsx';
import { labelled, labelledNotes } from '../parts/labels.ts';
import { useCurrentChain } from './chain.tsx';

/** The page that rehearses a chain: the configuration for the gateway, and a form to start. */
export function RehearsePage() {
  const chain = useCurrentChain();
  const [format, setFormat] = useState<RehearsalFormat>(rehearsalFormats[0]!);
  const [chosen, setChosen] = useState(usualDraft);
  const mayWrite = useMayWrite();
  const changeFormat = (next: RehearsalFormat) => {
    setFormat(next);
    // The form begins anew.
    setChosen(usualDraft);
  };
  return (
    <>
      <p className="muted">
        A rehearsal lets your gateway run against fake providers that fail as planned, and compares every call with what the chain says. It
        needs no key of a provider and costs nothing.
      </p>
      <Configuration chain={chain} format={format} chosen={chosen} onFormat={changeFormat} />
      {mayWrite ? <Start key={format} chain={chain} format={format} onChoose={setChosen} /> : null}
    </>
  );
}

interface ConfigurationProps {
  chain: Chain;
  format: RehearsalFormat;
  chosen: Chosen;
  onFormat: (format: RehearsalFormat) => void;
}

function Configuration({ chain, format, chosen, onFormat }: ConfigurationProps) {
  // The gateway must keep its memory for outages that last.
  const exported = useRehearsalExport(chain, format, chosen.preset === 'timeline');
  const gateway = gatewayOf(format);
  return (
    <Panel
      title="1. Start the gateway with this configuration"
      actions={exported.data === undefined ? undefined : <CopyButton text={exported.data.content} label="Copy the configuration" />}
    >
      <Fields>
        <SelectField
          label="Gateway"
          options={rehearsalFormats.map((value) => ({ value, label: targets[value].label }))}
          {...bind({ format }, ({ format: next = format }) => onFormat(next))('format')}
        />
      </Fields>
      <Load query={exported} what="The configuration">
        {({ content, filename, warnings }) => (
          <>
            <Losses warnings={warnings} isStreamed={chosen.answers !== 'whole'} />
            <CodeBlock text={content} label={filename} />
            {gateway === null ? null : (
              <>
                <p>
                  {gateway.configHeader === null
                    ? `Save it as ${filename}, then:`
                    : 'The gateway gets the configuration with each request, so this is all it needs:'}
                </p>
                <CodeBlock text={gateway.command.replace('FILE', filename)} label="The command that starts the gateway" />
                <div>
                  <CopyButton text={gateway.command.replace('FILE', filename)} label="Copy the command" />
                </div>
              </>
            )}
          </>
        )}
      </Load>
    </Panel>
  );
}

/** What the target does differently from the chain. A rehearsal will find these differences. */
function Losses({ warnings, isStreamed }: Pick<Export, 'warnings'> & { isStreamed: boolean }) {
  // An import of the export does not matter to a rehearsal.
  const losses = warnings.filter(({ code, loss }) => (code === 'streams' ? isStreamed : loss && code !== 'import_differs'));
  if (losses.length === 0) return null;
  return <Notes tone="warn" title={`The gateway will differ in ${counted(losses.length, 'way')}.`} notes={labelledNotes(losses)} />;
}

/** The fields of the form, as texts. */
interface Draft {
  url: string;
  model: string;
  key: string;
  preset: Preset | 'timeline';
  answers: keyof typeof answers;
  timeline: TimelineDraft;
}

/** What a form begins with, as far as the configuration depends on it. */
const usualDraft: Pick<Draft, 'preset' | 'answers'> = { preset: 'coverage', answers: 'whole' };
type Chosen = typeof usualDraft;

/** Whether the answers are streamed. */
const answers = { whole: false, streamed: true, both: 'both' } as const;

/** The names of the form's fields, by the fields of the request. */
const fields = { url: 'gateway.url', model: 'gateway.model', key: 'gateway.headers', preset: 'preset', answers: 'request.stream' } as const;

/** Whether a field shows its own fault. */
const isShown = (path: string) => [...Object.values(fields), 'timeline.'].some((shown) => path.startsWith(shown));

/** The plans of a rehearsal, by name. */
const plans = [...presets.map((value) => ({ value, label: words(value) })), { value: 'timeline', label: 'outages in time' }];

interface StartProps {
  chain: Chain;
  format: RehearsalFormat;
  onChoose: (chosen: Chosen) => void;
}

function Start({ chain, format, onChoose }: StartProps) {
  const navigate = useNavigate();
  const start = useStartTest(chain.id, { onSuccess: ({ id }) => void navigate(`/results/${id}`) });
  const gateway = gatewayOf(format);
  const providers = chain.providers.map(({ name }) => name);
  const [draft, setDraft] = useState<Draft>({
    url: gateway?.url ?? 'http://127.0.0.1:4000/v1',
    model: '',
    key: gateway?.key ?? '',
    ...usualDraft,
    timeline: emptyTimeline(providers[0]!),
  });
  const faults = faultsOf(start.error);
  const set = (changes: Partial<Draft>) => {
    onChoose({ ...draft, ...changes });
    setDraft((before) => ({ ...before, ...changes }));
  };
  const faultOf = (isShown: (field: string) => boolean) =>
    faults.filter(({ field }) => isShown(field)).map((fault) => labelled(besideField(fault)))[0];
  const bound = bind(draft, set, (name) => faultOf((field) => field.startsWith(fields[name])));
  const setTimeline = (timeline: TimelineDraft) => {
    // The fields of a refusal name outages by their number, which changes when one is removed.
    if (timeline.outages.length !== draft.timeline.outages.length) start.reset();
    set({ timeline });
  };
  const isAllowed = useAccess()?.live_allowed !== false;
  return (
    <Panel title="2. Rehearse">
      <Form onSubmit={() => start.mutate(requestOf(draft, format))}>
        <Fields>
          <TextField label="Address of the gateway" required {...bound('url')} />
          <TextField label="Model" hint="The name that callers use." placeholder={chain.name} {...bound('model')} />
          <TextField
            label="Key of the gateway"
            hint="Sent as a bearer token, and not stored."
            placeholder="none"
            autoComplete="off"
            {...bound('key')}
          />
          <SelectField label="Failures" options={plans} {...bound('preset')} />
          <SelectField
            label="Answers"
            options={Object.keys(answers).map((value) => ({ value, label: words(value) }))}
            {...bound('answers')}
          />
        </Fields>
        {draft.preset === 'timeline' ? (
          <TimelineFields
            timeline={draft.timeline}
            providers={providers}
            onChange={setTimeline}
            faultOf={(path) => faultOf((field) => field === path)}
          />
        ) : null}
        {isAllowed ? null : (
          <Callout tone="warn" title="This service sends no requests.">
            Start it with <code>--allow-live</code>, and with <code>SERVICE_LIVE_ALLOW=127.0.0.1</code> for a gateway on its machine.
          </Callout>
        )}
        <NotStarted what="The rehearsal" error={start.error} faults={faults} isShown={isShown} />
        <div>
          <Button type="submit" look="primary" icon={Play} busy={start.isPending} disabled={!isAllowed}>
            Rehearse
          </Button>
        </div>
      </Form>
    </Panel>
  );
}

/** The request for a rehearsal. */
function requestOf({ url, model, key, preset, answers: asked, timeline }: Draft, format: RehearsalFormat): TestRequest {
  const configHeader = gatewayOf(format)?.configHeader ?? null;
  const headers = {
    ...(configHeader === null ? {} : { [configHeader]: '{config}' }),
    ...(key.trim() === '' ? {} : { authorization: `Bearer ${key.trim()}` }),
  };
  return {
    mode: 'rehearsal',
    ...(preset === 'timeline' ? { timeline: timelineRequest(timeline) } : { preset }),
    request: { stream: answers[asked] },
    gateway: { url: url.trim(), model: model.trim() === '' ? null : model.trim(), export_format: format, headers },
  };
}
