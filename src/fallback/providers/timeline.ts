import { nextTurn } from '../../kit/awaitable.ts';
import type { Timeline, TimelineRequest } from '../model/timeline.ts';
import { afterFailure, emptyMemory, isLeftOut } from '../rules/cooldown.ts';
import { firstPosition } from '../rules/engine.ts';
import { outagesOf } from '../rules/plan.ts';
import type { FinishedPrompt } from '../rules/statistics.ts';
import { type OutSpan, promptsOf, startOf, timelineOf } from '../rules/timeline.ts';
import { type PromptRun, type Shared, uncalled, Walk } from './executor.ts';
import type { CallResult } from './transport.ts';

/** How many steps are simulated before yielding to the event loop. */
const stepsPerTurn = 500;

/** A prompt that is under way: its next step is a call, or the decision about the one that was made. */
interface UnderWay {
  readonly index: number;
  readonly walk: Walk;
  called: CallResult | null;
}

/** Simulates the prompts of a timeline. They share the memory of the providers' failures. */
export class TimelineRun {
  readonly #request: TimelineRequest;
  #all: Promise<FinishedPrompt[]> | undefined;
  #timeline: Timeline | null = null;

  constructor(request: TimelineRequest) {
    this.#request = request;
  }

  /** The prompt with this index; the first call simulates all of them. */
  async play(run: PromptRun, prompts: readonly string[]): Promise<FinishedPrompt> {
    this.#all ??= this.#simulate(run, prompts);
    return (await this.#all)[run.index]!;
  }

  /** What happened in each second; null until the prompts have been simulated. */
  get timeline(): Timeline | null {
    return this.#timeline;
  }

  async #simulate(run: PromptRun, prompts: readonly string[]): Promise<FinishedPrompt[]> {
    const request = this.#request;
    const { engine, scene, signal } = run;
    const count = promptsOf(request);
    const done: FinishedPrompt[] = [];
    const underWay = new Set<UnderWay>();
    const { outs, sharedAt } = sharedOf(run, request);
    let next = 0;
    for (let steps = 1; next < count || underWay.size > 0; steps += 1) {
      if (steps % stepsPerTurn === 0) {
        await nextTurn();
        signal.throwIfAborted();
      }
      const one = earliest(underWay);
      // What ends at the time at which a prompt begins is known to it.
      if (next < count && (one === undefined || startOf(request, next) < one.walk.at())) {
        const shared = sharedAt(startOf(request, next));
        const position = firstPosition(engine, (provider) => shared.isOut(provider, shared.start));
        if (position === undefined) done[next] = uncalled(scene, next);
        else
          underWay.add({ index: next, walk: new Walk(run, scene, next, prompts[next % prompts.length]!, position, shared), called: null });
        next += 1;
        continue;
      }
      const finished = await step(one!);
      if (finished === null) continue;
      done[one!.index] = finished;
      underWay.delete(one!);
    }
    this.#timeline = timelineOf(engine.chain, request, { prompts: done, outs });
    return done;
  }
}

/** The prompt whose next step is the first one; decisions come before calls of the same time. */
function earliest(underWay: ReadonlySet<UnderWay>): UnderWay | undefined {
  let found: UnderWay | undefined;
  for (const one of underWay) {
    const [at, before] = [one.walk.at(), found?.walk.at() ?? Number.POSITIVE_INFINITY];
    if (at < before || (at === before && one.called !== null && found?.called === null)) found = one;
  }
  return found;
}

/** Makes the next call of a prompt, or decides about the one that was made; returns the finished prompt, or null if it continues. */
async function step(one: UnderWay): Promise<FinishedPrompt | null> {
  if (one.called === null) {
    one.called = await one.walk.call();
    return null;
  }
  const finished = one.walk.decide(one.called);
  one.called = null;
  if (finished === null) await one.walk.wait();
  return finished;
}

/** What the prompts share, and the times in which providers are left out, which grow as failures are remembered. */
function sharedOf({ engine: { chain } }: PromptRun, request: TimelineRequest) {
  const outs: OutSpan[] = [];
  const faultAt = outagesOf(chain, request);
  let memory = emptyMemory(chain);
  const sharedAt = (start: number): Shared => ({
    start,
    isOut: (provider, at) => isLeftOut(memory, provider, at),
    faultAt,
    failed(provider, failure, at) {
      const before = memory[provider]!.until;
      memory = afterFailure(chain, memory, provider, failure, at);
      const { until } = memory[provider]!;
      if (until !== null && until !== before && until > at) outs.push({ provider, from: at, to: until });
    },
  });
  return { outs, sharedAt };
}
