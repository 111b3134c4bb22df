import { pauseFor } from '../../kit/awaitable.ts';
import type { Timeline } from '../model/timeline.ts';
import type { PromptRun } from '../providers/executor.ts';
import { TimelineRun } from '../providers/timeline.ts';
import { worstCase } from '../rules/reach.ts';
import { plainShape } from '../rules/shapes.ts';
import type { FinishedPrompt } from '../rules/statistics.ts';
import { startOf, timelineOf } from '../rules/timeline.ts';
import { askGateway, finishedOf, type GatewayRunDependencies, outcomeOf } from './gateway.ts';
import { maxFakeCalls, type RehearsedOutages } from './rehearsal.ts';

/** How many prompts of a timeline are open at a time. */
export const maxOpenPrompts = maxFakeCalls;

/** How late a prompt may begin, in milliseconds, before the rehearsal says that it can't keep its rate. */
const latestMs = 2_000;

/** Runs the prompts of a timeline through a gateway, each at its time, and remembers when they began. */
export class OutageRun {
  readonly #parts: GatewayRunDependencies;
  readonly #outages: RehearsedOutages;
  readonly #predicted: TimelineRun;
  readonly #begins: number[] = [];
  readonly #finished: FinishedPrompt[] = [];
  #run: PromptRun | undefined;
  #usualMs: number | undefined;

  constructor(parts: GatewayRunDependencies, outages: RehearsedOutages) {
    this.#parts = parts;
    this.#outages = outages;
    this.#predicted = new TimelineRun(outages.request);
  }

  /** Sends a prompt when its time has come. Prompts are asked for in order, and no more of them at a time than may be open. */
  async play(run: PromptRun, prompts: readonly string[]): Promise<FinishedPrompt> {
    const { rehearsal } = this.#parts;
    const outages = this.#outages;
    const { request, comparison } = outages;
    const { index, engine, signal } = run;
    this.#run ??= run;
    this.#usualMs ??= 2 * worstCase(engine).latency_ms;
    // What the chain says is simulated before the clock starts.
    await this.#predicted.play(run, prompts);
    const planned = startOf(request, index);
    const early = planned - outages.elapsed();
    if (early > 0) await pauseFor(early, signal);
    signal.throwIfAborted();
    const shape = run.scene.shape ?? plainShape;
    const asked = await askGateway(this.#parts, run, shape, { said: { served_by: null, attempts: [] }, usualMs: this.#usualMs });
    const start = outages.since(asked.begin);
    this.#begins[index] = start;
    const calls = asked.attempts.map((attempt) => {
      const { provider, condition, status_code, injected, start_ms, latency_ms } = attempt;
      return { provider, condition, status_code, injected, start: start + start_ms, end: start + start_ms + latency_ms };
    });
    const { expected: said, agrees } = comparison.compare({ index, start, calls, deadlineMs: run.deadlineMs }, (...said) =>
      outcomeOf(asked, shape, ...said),
    );
    rehearsal.count(index, agrees);
    if (asked.problem !== undefined && said.attempts.length > 0) rehearsal.markUnusable(asked.problem);
    if (start - planned > latestMs)
      rehearsal.markUnusable(
        `The rehearsal could not keep its rate: prompt ${index} began ${Math.round((start - planned) / 100) / 10} s late, since ${maxOpenPrompts} prompts were open or the machine was busy.`,
      );
    const finished = finishedOf(run, asked, shape, { said, end: 'rule', agrees });
    this.#finished[index] = finished;
    return finished;
  }

  /** What the gateway did in each second; null until all prompts have finished. */
  get timeline(): Timeline | null {
    const { request, comparison } = this.#outages;
    if (this.#run === undefined) return null;
    const begins = (index: number) => this.#begins[index]!;
    return timelineOf(this.#run.engine.chain, request, { prompts: this.#finished, outs: comparison.outs, begins });
  }

  /** What the chain alone says; null until it was simulated. */
  get expected(): Timeline | null {
    return this.#predicted.timeline;
  }
}
