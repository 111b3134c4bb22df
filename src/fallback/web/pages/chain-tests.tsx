import { Play, Plus, Trash2 } from 'lucide-react';
import { type FormEvent, useState } from 'react';
import { Link, useNavigate } from 'react-router';

import { Button } from '../../../kit/web/components/button.tsx';
import { Callout, Empty } from '../../../kit/web/components/feedback.tsx';
import { CheckField, SelectField, TextArea, TextField } from '../../../kit/web/components/field.tsx';
import { Panel } from '../../../kit/web/components/layout.tsx';
import { Table } from '../../../kit/web/components/table.tsx';
import { count, durationText, moment, percent, words } from '../../../kit/web/format.ts';
import { conditions } from '../../model/chain.ts';
import type { Fault, TestRequest, TestResult } from '../../model/test.ts';
import { faultsOf } from '../data/api.ts';
import { useAccess, useMayWrite, useResults, useStartTest } from '../data/queries.ts';
import { Load } from '../parts/load.tsx';
import { Verdict } from '../parts/verdict.tsx';
import { useCurrentChain } from './chain.tsx';
import styles from './chain-tests.module.css';

const modes = [
  { value: 'simulate', label: 'Simulate: no network, seeded' },
  { value: 'drill', label: 'Drill: real calls, injected faults' },
  { value: 'live', label: 'Live: real calls, no faults' },
] as const;
const presets = [
  { value: 'coverage', label: 'Coverage: every rule is put to work' },
  { value: 'healthy', label: 'Healthy: nothing fails' },
  { value: 'primary_down', label: 'Primary down' },
  { value: 'cascade', label: 'Cascade: all but the last down' },
  { value: 'flap', label: 'Flap: the primary comes and goes' },
  { value: 'blackout', label: 'Blackout: everything down' },
  { value: '', label: 'My own faults' },
] as const;

/** The tests of a chain: starting one, and those that were run. */
export function ChainTests() {
  const mayWrite = useMayWrite();
  return (
    <>
      {mayWrite ? <TestForm /> : null}
      <History />
    </>
  );
}

interface Draft {
  mode: 'simulate' | 'drill' | 'live';
  preset: string;
  prompt_count: string;
  seed: string;
  deadline_ms: string;
  prompts: string;
  faults: FaultDraft[];
}
type FaultDraft = Record<
  'provider' | 'condition' | 'times' | 'from' | 'to' | 'probability' | 'latency_ms' | 'status_code' | 'retry_after_ms',
  string
>;

/** A number as it was typed; null, which means the default, where nothing was. */
const numberOf = (text: string): number | null => (text.trim() === '' ? null : Number(text));

/** The draft as the service takes it. */
function requestOf({ mode, preset, prompt_count, seed, deadline_ms, prompts, faults }: Draft): TestRequest {
  const texts = prompts
    .split(/\n\s*\n/)
    .map((text) => text.trim())
    .filter(Boolean);
  const given = faults.map(({ provider, condition, ...numbers }) => ({
    provider,
    ...(condition === '' ? {} : { condition }),
    ...Object.fromEntries(
      Object.entries(numbers)
        .filter(([, value]) => value.trim() !== '')
        .map(([name, value]) => [name, Number(value)]),
    ),
  })) as Fault[];
  return {
    mode,
    prompt_count: numberOf(prompt_count),
    seed: numberOf(seed),
    deadline_ms: numberOf(deadline_ms),
    prompts: texts.length === 0 ? null : texts,
    ...(mode === 'live' ? {} : preset === '' ? { faults: given } : { preset: preset as NonNullable<TestRequest['preset']> }),
  };
}

function TestForm() {
  const chain = useCurrentChain();
  const access = useAccess();
  const navigate = useNavigate();
  const start = useStartTest(chain.id);
  const [draft, setDraft] = useState<Draft>({
    mode: 'simulate',
    preset: 'coverage',
    prompt_count: '20',
    seed: '',
    deadline_ms: '',
    prompts: '',
    faults: [],
  });
  const [more, setMore] = useState(false);
  const set = (changes: Partial<Draft>) => setDraft((before) => ({ ...before, ...changes }));
  const faults = faultsOf(start.error);
  const faultOf = (field: string) => faults.find((fault) => fault.field === field)?.detail;
  const placed = ['prompt_count', 'seed', 'deadline_ms', 'prompts'];
  const unplaced = faults.filter(({ field }) => !placed.includes(field) && !field.startsWith('faults.'));
  const liveRefused = draft.mode !== 'simulate' && access?.live_allowed === false;

  function submit(event: FormEvent): void {
    event.preventDefault();
    start.mutate(requestOf(draft), { onSuccess: ({ id }) => void navigate(`/results/${id}`) });
  }

  return (
    <Panel title="New test">
      <form onSubmit={submit} className={styles.form} noValidate>
        <div className={styles.fields}>
          <SelectField
            label="Mode"
            options={modes}
            value={draft.mode}
            onChange={(event) => set({ mode: event.target.value as Draft['mode'] })}
          />
          {draft.mode === 'live' ? null : (
            <SelectField
              label="Faults"
              options={presets}
              value={draft.preset}
              onChange={(event) =>
                set({
                  preset: event.target.value,
                  faults: event.target.value === '' && draft.faults.length === 0 ? [emptyFault(chain.providers[0]!.name)] : draft.faults,
                })
              }
            />
          )}
          <TextField
            label="Prompts"
            type="number"
            inputMode="numeric"
            min={1}
            max={1000}
            value={draft.prompt_count}
            onChange={(event) => set({ prompt_count: event.target.value })}
            error={faultOf('prompt_count')}
          />
          <TextField
            label="Seed"
            type="number"
            inputMode="numeric"
            placeholder="drawn"
            value={draft.seed}
            onChange={(event) => set({ seed: event.target.value })}
            error={faultOf('seed')}
          />
        </div>
        {draft.preset === '' && draft.mode !== 'live' ? (
          <Faults
            faults={draft.faults}
            providers={chain.providers.map(({ name }) => name)}
            onChange={(faults) => set({ faults })}
            errors={faults}
          />
        ) : null}
        <CheckField label="More options" checked={more} onChange={(event) => setMore(event.target.checked)} />
        {more ? (
          <div className={styles.fields}>
            <TextField
              label="Deadline for one prompt"
              unit="ms"
              type="number"
              min={1}
              placeholder="none"
              value={draft.deadline_ms}
              onChange={(event) => set({ deadline_ms: event.target.value })}
              error={faultOf('deadline_ms')}
            />
            <TextArea
              label="Prompt texts"
              hint="One after another, with an empty line between. They are used in turn."
              rows={4}
              value={draft.prompts}
              onChange={(event) => set({ prompts: event.target.value })}
              error={faultOf('prompts')}
            />
          </div>
        ) : null}
        {liveRefused ? (
          <Callout tone="warn" title="This service makes no real calls.">
            Start it with <code>--allow-live</code> to allow drills and live tests.
          </Callout>
        ) : null}
        {draft.mode !== 'simulate' && !liveRefused ? (
          <Callout tone="info">Real calls reach the providers and may cost money. Keys come from the service’s environment.</Callout>
        ) : null}
        {start.error !== null && (unplaced.length > 0 || faults.length === 0) ? (
          <Callout tone="bad" alert title="The test was not started.">
            {unplaced.length > 0 ? unplaced.map(({ field, detail }) => <p key={field}>{detail}</p>) : start.error.message}
          </Callout>
        ) : null}
        <div>
          <Button type="submit" look="primary" icon={Play} busy={start.isPending} disabled={liveRefused}>
            Run
          </Button>
        </div>
      </form>
    </Panel>
  );
}

const emptyFault = (provider: string): FaultDraft => ({
  provider,
  condition: 'rate_limit',
  times: '',
  from: '',
  to: '',
  probability: '',
  latency_ms: '',
  status_code: '',
  retry_after_ms: '',
});

interface FaultsProps {
  faults: readonly FaultDraft[];
  providers: readonly string[];
  onChange(faults: FaultDraft[]): void;
  errors: readonly { field: string; detail: string }[];
}

const numbers = [
  { name: 'times', label: 'First calls' },
  { name: 'from', label: 'From prompt' },
  { name: 'to', label: 'To prompt' },
  { name: 'probability', label: 'Probability' },
  { name: 'latency_ms', label: 'Latency', unit: 'ms' },
  { name: 'status_code', label: 'Status' },
  { name: 'retry_after_ms', label: 'Retry-After', unit: 'ms' },
] as const;

function Faults({ faults, providers, onChange, errors }: FaultsProps) {
  const set = (index: number, changes: Partial<FaultDraft>) =>
    onChange(faults.map((fault, place) => (place === index ? { ...fault, ...changes } : fault)));
  const errorOf = (index: number, name: string) => errors.find(({ field }) => field === `faults.${index}.${name}`)?.detail;
  return (
    <fieldset className={styles.faults}>
      <legend>Faults, applied to every prompt</legend>
      {faults.map((fault, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a fault is known by its place.
        <div key={index} className={styles.fault}>
          <SelectField
            label="Provider"
            options={providers}
            value={fault.provider}
            onChange={(event) => set(index, { provider: event.target.value })}
          />
          <SelectField
            label="Fails with"
            options={[{ value: '', label: 'only slow' }, ...conditions.map((value) => ({ value, label: words(value) }))]}
            value={fault.condition}
            onChange={(event) => set(index, { condition: event.target.value })}
          />
          {numbers.map(({ name, label, ...unit }) => (
            <TextField
              key={name}
              label={label}
              {...unit}
              type="number"
              min={0}
              step="any"
              value={fault[name]}
              onChange={(event) => set(index, { [name]: event.target.value })}
              error={errorOf(index, name)}
            />
          ))}
          <Button
            look="quiet"
            icon={Trash2}
            aria-label={`Remove fault ${index + 1}`}
            onClick={() => onChange(faults.filter((_, place) => place !== index))}
          />
        </div>
      ))}
      <div>
        <Button icon={Plus} onClick={() => onChange([...faults, emptyFault(providers[0]!)])}>
          Add a fault
        </Button>
      </div>
    </fieldset>
  );
}

function History() {
  const chain = useCurrentChain();
  const results = useResults(chain.id);
  const [picked, setPicked] = useState<readonly string[]>([]);
  const navigate = useNavigate();
  const pick = (id: string) =>
    setPicked((before) => (before.includes(id) ? before.filter((other) => other !== id) : [...before.slice(-1), id]));
  return (
    <Panel
      title="History"
      flush
      actions={
        <Button disabled={picked.length !== 2} onClick={() => void navigate(`/compare?a=${picked[0]}&b=${picked[1]}`)}>
          Compare two
        </Button>
      }
    >
      <Load query={results} what="The history">
        {(found) =>
          found.length === 0 ? (
            <Empty title="Never tested">A simulation takes a moment and calls nobody.</Empty>
          ) : (
            <Table<TestResult>
              label="Tests, newest first"
              rows={found}
              keyOf={({ id }) => id}
              columns={[
                { name: 'Started', cell: ({ id, started_at }) => <Link to={`/results/${id}`}>{moment(started_at)}</Link> },
                { name: 'Verdict', cell: ({ verdict, status }) => <Verdict verdict={verdict} status={status} /> },
                { name: 'Mode', cell: ({ mode, preset }) => `${mode}, ${preset ?? 'own faults'}` },
                { name: 'Prompts', number: true, cell: ({ prompt_count }) => count(prompt_count) },
                { name: 'Served', number: true, cell: ({ success_rate }) => percent(success_rate) },
                { name: 'By fallback', number: true, cell: ({ fallback_rate }) => percent(fallback_rate) },
                { name: 'p95', number: true, cell: ({ latency_ms }) => durationText(latency_ms?.p95) },
                { name: 'Version', number: true, cell: ({ chain_version }) => chain_version },
                {
                  name: 'Compare',
                  cell: ({ id, started_at }) => (
                    <input
                      type="checkbox"
                      className={styles.pick}
                      aria-label={`Compare the test of ${moment(started_at)}`}
                      checked={picked.includes(id)}
                      onChange={() => pick(id)}
                    />
                  ),
                },
              ]}
            />
          )
        }
      </Load>
    </Panel>
  );
}
