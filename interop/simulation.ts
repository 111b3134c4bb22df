import type { ChainDefinition } from '../src/fallback/model/chain.ts';
import type { PromptResult } from '../src/fallback/model/test.ts';
import { runPrompt } from '../src/fallback/providers/executor.ts';
import { simulation } from '../src/fallback/providers/simulate.ts';
import { createEngine } from '../src/fallback/rules/engine.ts';
import type { InjectedFault } from '../src/fallback/rules/plan.ts';
import { type Behaviour, ways } from './fakes.ts';

/** How a provider fails, and on how many of its first calls; always, if that is null. */
type SimulatedFault = Pick<InjectedFault, 'provider' | 'condition' | 'status_code' | 'times'>;

const unrestricted = { retry_after_ms: null, latency_ms: null, from: 0, to: Number.POSITIVE_INFINITY, probability: null };

/** Simulates a prompt with the service's own engine. */
export async function simulated(chain: ChainDefinition, faults: readonly SimulatedFault[]): Promise<PromptResult> {
  const { signal } = new AbortController();
  const scene = { name: 'interop', faults: faults.map((fault) => ({ ...unrestricted, ...fault })), expects: 'either' as const };
  const run = { engine: createEngine(chain), transport: simulation, scene, index: 0, prompt: 'Say OK.', seed: 1, deadlineMs: null };
  return (await runPrompt({ ...run, signal, callSignal: signal })).result;
}

/** The outcome of a prompt: the calls of each provider, and the provider that answered; null if none did. */
export interface Outcome {
  calls: number[];
  served: number | null;
}

/** The outcome of a simulated prompt, if the providers behave like this. */
export async function simulate(chain: ChainDefinition, behaviours: readonly Behaviour[]): Promise<Outcome> {
  const faults = behaviours.flatMap((behaviour, provider): SimulatedFault[] =>
    behaviour === undefined ? [] : [{ provider, ...ways[behaviour.way].fault, times: behaviour.times ?? null }],
  );
  const { attempts, served_by } = await simulated(chain, faults);
  const calls = chain.providers.map(({ name }) => attempts.filter(({ provider }) => provider === name).length);
  return { calls, served: served_by === null ? null : chain.providers.findIndex(({ name }) => name === served_by) };
}
