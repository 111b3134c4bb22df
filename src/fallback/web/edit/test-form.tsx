import { Play } from 'lucide-react';
import { useState } from 'react';
import { useNavigate } from 'react-router';
import { useDebounced } from '../../../kit/web/app/queries.ts';
import { besideField, faultsOf } from '../../../kit/web/app/transport.ts';
import { Button } from '../../../kit/web/components/button.tsx';
import { Callout } from '../../../kit/web/components/feedback.tsx';
import { CheckField, SelectField, TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { bind, Fields, Form } from '../../../kit/web/components/form.tsx';
import { counted } from '../../../kit/web/format.ts';
import type { Chain } from '../../model/chain.ts';
import { defaultPrompts, type Mode, maxPrompts, type TestRequest } from '../../model/test.ts';
import { useAccess, useStartTest, useTestPlan } from '../data/queries.ts';
import { labelled } from '../parts/labels.ts';
import { FaultFields } from './fault-fields.tsx';
import { NotStarted } from './not-started.tsx';
import { emptyFault, emptyTest, type FaultDraft, type TestDraft, testRequest } from './test-draft.ts';
import type { TimelineDraft } from './timeline-draft.ts';
import { TimelineFields } from './timeline-fields.tsx';

/** The modes of this form; a rehearsal has a page of its own. */
const modes: Record<Exclude<Mode, 'rehearsal'>, string> = {
  simulate: 'Simulate: no network, seeded',
  drill: 'Drill: real calls, injected faults',
  live: 'Live: real calls, no faults',
};
const presets: Record<TestDraft['preset'], string> = {
  coverage: 'Coverage: exercises every rule',
  healthy: 'Healthy: nothing fails',
  primary_down: 'Primary down',
  cascade: 'Cascade: from the first provider down to all but the last',
  flap: 'Flap: the primary fails for a while',
  blackout: 'Blackout: everything down',
  streams: 'Streams: each goes wrong in every way',
  '': 'My own faults',
  timeline: 'Outages in time: providers fail for a while',
};
/** Time is virtual in simulations alone. */
const { timeline: _, ...timeless } = presets;
const optionsOf = (labels: Readonly<Record<string, string>>) => Object.entries(labels).map(([value, label]) => ({ value, label }));

/** A form to configure and start a test. */
export function TestForm({ chain }: { chain: Chain }) {
  const navigate = useNavigate();
  const start = useStartTest(chain.id, { onSuccess: ({ id }) => void navigate(`/results/${id}`) });
  const providers = chain.providers.map(({ name }) => name);
  const [draft, setDraft] = useState(() => emptyTest(providers[0]!));
  const request = testRequest(draft);
  const set = (changes: Partial<TestDraft>) => setDraft((before) => ({ ...before, ...changes }));
  const faults = faultsOf(start.error);
  const faultOf = (field: string) => faults.filter((fault) => fault.field === field).map((fault) => labelled(besideField(fault)))[0];
  const bound = bind(draft, set, faultOf);
  // The fields of a refusal name faults by their number, which changes when one is removed.
  const setFaults = (next: FaultDraft[]) => {
    if (next.length !== draft.faults.length) start.reset();
    set({ faults: next });
  };
  const setTimeline = (timeline: TimelineDraft) => {
    if (timeline.outages.length !== draft.timeline.outages.length) start.reset();
    set({ timeline });
  };
  const isTimed = draft.preset === 'timeline';
  const boundMode = bind(
    { mode: draft.mode },
    ({ mode = draft.mode }) => set({ mode, ...(isTimed && mode !== 'simulate' ? { preset: 'coverage' } : {}) }),
    faultOf,
  );
  const ownFaults = draft.mode !== 'live' && draft.preset === '';
  const boundPreset = bind({ preset: draft.preset }, ({ preset = '' }) =>
    set({ preset, ...(preset === '' && draft.faults.length === 0 ? { faults: [emptyFault(providers[0]!)] } : {}) }),
  );
  const refused = useAccess()?.live_allowed === false && draft.mode !== 'simulate';
  return (
    <Form onSubmit={() => start.mutate(request)}>
      <Fields>
        <SelectField label="Mode" options={optionsOf(modes)} {...boundMode('mode')} />
        {draft.mode === 'live' ? null : (
          <SelectField label="Faults" options={optionsOf(draft.mode === 'simulate' ? presets : timeless)} {...boundPreset('preset')} />
        )}
        {isTimed ? null : (
          <TextField
            label="Prompts"
            type="number"
            inputMode="numeric"
            min={1}
            max={maxPrompts}
            placeholder={String(request.prompts?.length ?? (draft.mode === 'live' ? defaultPrompts : 'as the faults need'))}
            {...bound('prompt_count')}
          />
        )}
        <TextField label="Seed" type="number" inputMode="numeric" placeholder="random" {...bound('seed')} />
      </Fields>
      {ownFaults ? <FaultFields faults={draft.faults} providers={providers} onChange={setFaults} faultOf={faultOf} /> : null}
      {isTimed ? <TimelineFields timeline={draft.timeline} providers={providers} onChange={setTimeline} faultOf={faultOf} /> : null}
      <MoreOptions bound={bound} />
      <ModeNotice chain={chain} request={request} refused={refused} />
      <NotStarted what="The test" error={start.error} faults={faults} isShown={isShown} />
      <div>
        <Button type="submit" look="primary" icon={Play} busy={start.isPending} disabled={refused}>
          Run
        </Button>
      </div>
    </Form>
  );
}

function MoreOptions({ bound }: { bound: ReturnType<typeof bind<TestDraft>> }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <CheckField label="More options" checked={open} onChange={({ target }) => setOpen(target.checked)} />
      {open ? (
        <Fields>
          <TextField label="Deadline for one prompt" unit="ms" type="number" min={1} placeholder="none" {...bound('deadline_ms')} />
          <TextArea
            label="Prompt texts"
            hint="One after another, with an empty line between. They are used in turn."
            rows={4}
            {...bound('prompts')}
          />
        </Fields>
      ) : null}
    </>
  );
}

/** A notice about real calls, or that this service makes none. */
function ModeNotice({ chain, request, refused }: { chain: Chain; request: TestRequest; refused: boolean }) {
  const isReal = request.mode !== 'simulate';
  const plan = useTestPlan(chain, useDebounced(request, 300), isReal && !refused).data;
  if (!isReal) return null;
  if (!refused) {
    const calls = plan && `This test makes at most ${counted(plan.max_calls, 'call')}. `;
    return (
      <Callout tone="info">{calls}Real calls reach the providers and may cost money. Keys come from the service’s environment.</Callout>
    );
  }
  return (
    <Callout tone="warn" title="This service makes no real calls.">
      Start it with <code>--allow-live</code> to allow drills and live tests.
    </Callout>
  );
}

/** Whether a field shows its own fault. */
const isShown = (field: string) => /^(?:prompt_count$|seed$|faults\.|timeline\.)/.test(field);
