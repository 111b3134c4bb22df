import { duration, plural } from '../../kit/wording.ts';
import type { ChainDefinition, Cooldown, Provider } from '../model/chain.ts';
import { countedByDefault, type Failure } from './conditions.ts';
import { listed } from './wording.ts';

/** The cool-down of a provider: its own, else that of the chain; null without one. */
export const cooldownOf = ({ cooldown }: Pick<ChainDefinition, 'cooldown'>, provider: Pick<Provider, 'cooldown'>): Cooldown | null =>
  provider.cooldown ?? cooldown ?? null;

/** What is remembered of a provider between prompts, in milliseconds of the clock that is handed in. */
interface Remembered {
  /** When the first failure of the window was, and how many there were since; null without one. */
  readonly window: { readonly from: number; readonly fails: number } | null;
  /** Until when it is left out; null if it never was. */
  readonly until: number | null;
}

/** What is remembered of the providers of a chain, by index. */
export type Memory = readonly Remembered[];

/** A memory without failures. */
export const emptyMemory = ({ providers }: Pick<ChainDefinition, 'providers'>): Memory =>
  providers.map(() => ({ window: null, until: null }));

/** Whether a provider is left out at this time. */
export const isLeftOut = (memory: Memory, provider: number, now: number): boolean => (memory[provider]!.until ?? now) > now;

/** The memory after a failure of a provider at this time. Pure. */
export function afterFailure(chain: ChainDefinition, memory: Memory, provider: number, failure: Failure, now: number): Memory {
  const cooldown = cooldownOf(chain, chain.providers[provider]!);
  // A failure of a call that began earlier does not prolong a cool-down.
  if (cooldown === null || isLeftOut(memory, provider, now) || !(cooldown.conditions ?? countedByDefault).includes(failure.condition))
    return memory;
  const { window } = memory[provider]!;
  const counted =
    window === null || now >= window.from + cooldown.window_ms ? { from: now, fails: 1 } : { ...window, fails: window.fails + 1 };
  const isTooMany = counted.fails > cooldown.allowed_fails;
  const after: Remembered = isTooMany
    ? { window: null, until: now + (failure.retry_after_ms ?? cooldown.seconds * 1000) }
    : { window: counted, until: memory[provider]!.until };
  return memory.with(provider, after);
}

/** A cool-down as a sentence. */
export function cooldownSentence({ allowed_fails, window_ms, seconds, conditions: named }: Cooldown, names: string): string {
  const after = allowed_fails === 0 ? 'a failure' : `more than ${plural(allowed_fails, 'failure')} within ${duration(window_ms)}`;
  const which = named === null ? '' : ` (${listed(named)})`;
  return `After ${after}${which}, it leaves out ${names} for ${duration(seconds * 1000)}.`;
}
