import type { Fault, Mode, Preset, TestRequest } from '../../model/test.ts';

/** The numbers of a fault, as they are typed. */
export const faultNumbers = [
  { name: 'times', label: 'First calls' },
  { name: 'from', label: 'From prompt' },
  { name: 'to', label: 'To prompt' },
  { name: 'probability', label: 'Probability' },
  { name: 'latency_ms', label: 'Latency', unit: 'ms' },
  { name: 'status_code', label: 'Status' },
  { name: 'retry_after_ms', label: 'Retry-After', unit: 'ms' },
] as const;

/** A fault as it is typed: texts, empty for what does not narrow it. */
export type FaultDraft = Record<'provider' | 'condition' | (typeof faultNumbers)[number]['name'], string>;

/** A test as it is typed. */
export interface TestDraft {
  mode: Mode;
  /** Empty for faults of one's own. */
  preset: Preset | '';
  prompt_count: string;
  seed: string;
  deadline_ms: string;
  /** Texts of prompts, an empty line between them. */
  prompts: string;
  faults: readonly FaultDraft[];
}

/** A fault with nothing but the condition that is met most. */
export const emptyFault = (provider: string): FaultDraft => ({
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

/** A simulation of twenty prompts that puts every rule to work. */
export const emptyTest = (): TestDraft => ({
  mode: 'simulate',
  preset: 'coverage',
  prompt_count: '20',
  seed: '',
  deadline_ms: '',
  prompts: '',
  faults: [],
});

/** A number as it was typed; null, which means the default, where nothing was. */
const numberOf = (typed: string): number | null => (typed.trim() === '' ? null : Number(typed));

function faultRequest(draft: FaultDraft): Fault {
  const { provider, condition } = draft;
  const numbers = faultNumbers.filter(({ name }) => draft[name].trim() !== '').map(({ name }) => [name, Number(draft[name])]);
  return { provider, ...(condition === '' ? {} : { condition }), ...Object.fromEntries(numbers) } as Fault;
}

/** The test as the service takes it. */
export function testRequest({ mode, preset, prompt_count, seed, deadline_ms, prompts, faults }: TestDraft): TestRequest {
  const texts = prompts
    .split(/\n\s*\n/)
    .map((text) => text.trim())
    .filter(Boolean);
  return {
    mode,
    prompt_count: numberOf(prompt_count),
    seed: numberOf(seed),
    deadline_ms: numberOf(deadline_ms),
    prompts: texts.length === 0 ? null : texts,
    ...(mode === 'live' ? {} : preset === '' ? { faults: faults.map(faultRequest) } : { preset }),
  };
}
