import type { InjectedFaultRequest, Mode, Preset, TestRequest } from '../../model/test.ts';
import { numberOf } from './draft.ts';
import { emptyTimeline, type TimelineDraft, timelineRequest } from './timeline-draft.ts';

/** The numeric fields of a fault, as text. */
export const faultNumbers = [
  { name: 'times', label: 'First calls' },
  { name: 'from', label: 'From prompt' },
  { name: 'to', label: 'To prompt' },
  { name: 'probability', label: 'Probability' },
  { name: 'latency_ms', label: 'Latency', unit: 'ms' },
  { name: 'status_code', label: 'Status' },
  { name: 'retry_after_ms', label: 'Retry-After', unit: 'ms' },
] as const;

/** A fault being edited: texts, empty for fields that do not restrict it. */
export interface FaultDraft extends Record<(typeof faultNumbers)[number]['name'], string> {
  provider: string;
  /** Empty for a provider that is only slow. */
  condition: NonNullable<InjectedFaultRequest['condition']> | '';
}

/** A test being edited. */
export interface TestDraft {
  mode: Mode;
  /** Empty for custom faults. */
  preset: Preset | '' | 'timeline';
  prompt_count: string;
  seed: string;
  deadline_ms: string;
  /** The prompts, separated by empty lines. */
  prompts: string;
  faults: readonly FaultDraft[];
  timeline: TimelineDraft;
}

/** A new fault with the most frequent condition. */
export const emptyFault = (provider: string): FaultDraft => ({
  ...{ times: '', from: '', to: '', probability: '', latency_ms: '', status_code: '', retry_after_ms: '' },
  provider,
  condition: 'rate_limit',
});

/** A new test: a simulation that covers all rules, with a prompt for each scene. */
export const emptyTest = (provider: string): TestDraft => ({
  mode: 'simulate',
  preset: 'coverage',
  prompt_count: '',
  seed: '',
  deadline_ms: '',
  prompts: '',
  faults: [],
  timeline: emptyTimeline(provider),
});

function faultRequest(draft: FaultDraft): InjectedFaultRequest {
  const { provider, condition } = draft;
  const numbers = faultNumbers.filter(({ name }) => draft[name].trim() !== '').map(({ name }) => [name, numberOf(draft[name])]);
  return { provider, ...(condition === '' ? {} : { condition }), ...Object.fromEntries(numbers) };
}

/** The request for a test. */
export function testRequest({ mode, preset, prompt_count, seed, deadline_ms, prompts, faults, timeline }: TestDraft): TestRequest {
  const texts = prompts
    .split(/\n\s*\n/)
    .map((text) => text.trim())
    .filter(Boolean);
  const common = { mode, seed: numberOf(seed), deadline_ms: numberOf(deadline_ms), prompts: texts.length === 0 ? null : texts };
  if (preset === 'timeline') return { ...common, timeline: timelineRequest(timeline) };
  return {
    ...common,
    // Without a number, each text is used once, or each scene of the plan.
    prompt_count: numberOf(prompt_count),
    ...(mode === 'live' ? {} : preset === '' ? { faults: faults.map(faultRequest) } : { preset }),
  };
}
