import type { PromptResult, TestProgress, TestResult, TestStatus } from '../model/test.ts';
import type { Timeline } from '../model/timeline.ts';
import type { Engine } from '../rules/engine.ts';
import { type FinishedPrompt, Tally } from '../rules/statistics.ts';
import { judge } from '../rules/verdict.ts';
import type { Rehearsal } from './rehearsal.ts';

/** What is known of a test before it runs. */
type TestParameters = Pick<
  TestResult,
  | 'id'
  | 'chain_id'
  | 'chain_version'
  | 'chain'
  | 'findings'
  | 'mode'
  | 'preset'
  | 'seed'
  | 'prompt_count'
  | 'deadline_ms'
  | 'started_at'
  | 'assumptions'
>;

/** A result without its prompts. */
export type ResultHead = Omit<TestResult, 'results'>;

/** How many attempts of a prompt a result shows; it counts the others. */
const shownAttempts = 100;

/** The most bytes of a result's prompts with their attempts. Further prompts only have the number of their attempts. */
const maxPromptBytes = 16 * 1024 * 1024;

/** What happened in a test with a timeline, and in a rehearsal what the chain says; null until all prompts have finished. */
interface PlayedTimelines {
  readonly timeline: Timeline | null;
  readonly expected?: Timeline | null;
}

/** A running test: its result so far, and its finished prompts. */
export class TestRecord {
  /** The result without its prompts. Its figures and its progress are those of the start. */
  readonly head: ResultHead;
  readonly #tally: Tally;
  readonly #rehearsal: Rehearsal | undefined;
  /** The results of the prompts as JSON, by index, each serialized once for the store and all answers. */
  readonly #texts: string[] = [];
  #bytes = 0;
  #stored = 0;

  readonly #timeline: PlayedTimelines | undefined;

  constructor(
    { id, chain_id, chain_version, chain, findings, assumptions, ...parameters }: TestParameters,
    { rehearsal, timeline }: { rehearsal?: Rehearsal | undefined; timeline?: PlayedTimelines | undefined } = {},
  ) {
    const { prompt_count } = parameters;
    this.#rehearsal = rehearsal;
    this.#timeline = timeline;
    this.#tally = new Tally(chain);
    // The fields have the order of the API description; `results` is the last.
    this.head = {
      id,
      chain_id,
      chain_name: chain.name,
      chain_version,
      status: 'running',
      error: null,
      progress: { done: 0, total: prompt_count },
      ...parameters,
      completed_at: null,
      duration_ms: null,
      ...this.#tally.figures(),
      assumptions,
      verdict: null,
      checks: [],
      ...rehearsal?.figures(),
      ...(timeline && { timeline: null }),
      ...(timeline && rehearsal && { expected_timeline: null }),
      chain,
      findings,
    };
  }

  add(finished: FinishedPrompt): void {
    const { result } = finished;
    this.#tally.add(finished);
    let text = shownText(result, shownAttempts);
    if (this.#bytes + Buffer.byteLength(text) > maxPromptBytes) text = shownText(result, 0);
    this.#bytes += Buffer.byteLength(text);
    this.#texts[result.index] = text;
  }

  /** The number of finished prompts that are not stored yet. */
  get unstored(): number {
    return this.#tally.prompts.length - this.#stored;
  }

  /** Returns the finished prompts that are not stored yet, and counts them as stored. */
  takeUnstored(): { position: number; text: string }[] {
    const unstored = this.#tally.prompts.slice(this.#stored);
    this.#stored = this.#tally.prompts.length;
    return unstored.map(({ index }) => ({ position: index, text: this.#texts[index]! }));
  }

  /** Completes the test with the verdict on its prompts, all of which have finished. */
  complete(engine: Engine, slackMs: number): void {
    const { mode, preset } = this.head;
    const rehearsed = this.#rehearsal && { ...this.#rehearsal.figures().agreement, problem: this.#rehearsal.problem };
    const judged = judge({ engine, mode, preset, tally: this.#tally, slackMs, rehearsed });
    const timelines = this.#timeline && {
      timeline: this.#timeline.timeline,
      ...(this.#rehearsal && { expected_timeline: this.#timeline.expected ?? null }),
    };
    Object.assign(this.head, { status: 'completed', error: rehearsed?.problem ?? null, ...judged, ...timelines });
  }

  /** Ends the test before all prompts have finished. */
  stop(status: Exclude<TestStatus, 'running' | 'completed'>, error: string): void {
    Object.assign(this.head, { status, error });
  }

  close(at: Date, durationMs: number): void {
    Object.assign(this.head, { completed_at: at.toISOString(), duration_ms: Math.round(durationMs * 100) / 100 });
  }

  /** The result as JSON, without its prompts. */
  headText(): string {
    return JSON.stringify({ ...this.head, ...this.#tally.figures(), ...this.#rehearsal?.figures(), progress: this.progress().progress });
  }

  /** The result and its prompts, ordered by index. */
  texts(): ResultTexts {
    // An index whose prompt has not finished is a gap, which `filter` skips.
    return { text: this.headText(), prompts: `[${this.#texts.filter(() => true).join(',')}]` };
  }

  /** The result as one JSON text. */
  text(): string {
    return joined(this.texts());
  }

  progress(): TestProgress {
    const { id, prompt_count, status, verdict } = this.head;
    return { id, status, progress: { done: this.#tally.prompts.length, total: prompt_count }, ...this.#tally.progress, verdict };
  }
}

/** The JSON of a prompt with the details of its first attempts and the number of the others. */
function shownText(result: PromptResult, most: number): string {
  const { attempts } = result;
  if (attempts.length <= most) return JSON.stringify(result);
  return JSON.stringify({ ...result, attempts: attempts.slice(0, most), attempts_omitted: attempts.length - most });
}

/** The progress of a test, from its result. */
export function progressOf({ id, status, progress, success_count, failure_count, fallback_count, verdict }: ResultHead): TestProgress {
  return { id, status, progress, success_count, failure_count, fallback_count, verdict };
}

/** A result as two JSON texts: all but its prompts, and the list of these. */
export interface ResultTexts {
  readonly text: string;
  readonly prompts: string;
}

/** A result as one JSON text. Its prompts are last, since they are most of it. */
export const joined = ({ text, prompts }: ResultTexts): string => `${text.slice(0, -1)},"results":${prompts}}`;

/** A result as one JSON text with an empty list of prompts. */
export const withoutPrompts = ({ text }: Pick<ResultTexts, 'text'>): string => joined({ text, prompts: '[]' });
