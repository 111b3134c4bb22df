import type { ChainDefinition } from '../src/fallback/model/chain.ts';
import { runPrompt } from '../src/fallback/providers/executor.ts';
import { simulation } from '../src/fallback/providers/simulate.ts';
import { createEngine } from '../src/fallback/rules/engine.ts';
import type { SceneFault } from '../src/fallback/rules/plan.ts';
import { type Behaviour, ways } from './fakes.ts';

/** The outcome of a prompt: the calls of each provider, and the provider that answered; null if none did. */
export interface Outcome {
  calls: number[];
  served: number | null;
}

/** Simulates a prompt with the service's own engine and the given behaviours. */
export async function simulate(chain: ChainDefinition, behaviours: readonly Behaviour[]): Promise<Outcome> {
  const faults = behaviours.flatMap((behaviour, provider) => (behaviour === undefined ? [] : [faultOf(behaviour, provider)]));
  const { result } = await runPrompt({
    engine: createEngine(chain),
    transport: simulation,
    scene: { name: 'interop', faults, expects: 'either' },
    index: 0,
    prompt: 'Say OK.',
    seed: 1,
    deadlineMs: null,
    signal: new AbortController().signal,
  });
  const place = (name: string | null) => chain.providers.findIndex((provider) => provider.name === name);
  const calls = chain.providers.map(({ name }) => result.attempts.filter(({ provider }) => provider === name).length);
  return { calls, served: result.served_by === null ? null : place(result.served_by) };
}

function faultOf({ way, times }: NonNullable<Behaviour>, provider: number): SceneFault {
  const { fault } = ways[way];
  return {
    provider,
    ...fault,
    retry_after_ms: null,
    latency_ms: null,
    times: times ?? null,
    from: 0,
    to: Number.POSITIVE_INFINITY,
    probability: null,
  };
}
