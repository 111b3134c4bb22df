import type { PromptResult, TestProgress, TestResult, TestStatus } from '../model/test.ts';
import { assumptions } from '../providers/simulate.ts';
import type { Engine } from '../rules/engine.ts';
import { figuresOf } from '../rules/statistics.ts';
import { type Done, judge } from '../rules/verdict.ts';

/** What is known of a test before it runs. */
export type Asked = Pick<
  TestResult,
  'id' | 'chain_id' | 'chain_version' | 'chain' | 'mode' | 'preset' | 'seed' | 'prompt_count' | 'deadline_ms' | 'started_at'
>;

type Ending = Pick<TestResult, 'status' | 'error' | 'completed_at' | 'duration_ms' | 'verdict' | 'checks'>;

/** A test in hand: what was asked, the prompts that are done, and how it ended. */
export class TestRecord {
  readonly #asked: Asked;
  readonly #ending: Ending = { status: 'running', error: null, completed_at: null, duration_ms: null, verdict: null, checks: [] };
  readonly #done: Done[] = [];
  /** Each prompt in JSON, in the order of `#done`: it is written once, for the store and for every answer. */
  readonly #texts: string[] = [];
  readonly #counts = { success_count: 0, failure_count: 0, fallback_count: 0 };
  #kept = 0;

  constructor(asked: Asked) {
    this.#asked = asked;
  }

  get head(): Asked & Ending {
    return { ...this.#asked, ...this.#ending };
  }

  add(one: Done): void {
    this.#done.push(one);
    this.#texts.push(JSON.stringify(one.result));
    const { success, served_by } = one.result;
    this.#counts[success ? 'success_count' : 'failure_count'] += 1;
    if (success && served_by !== this.#asked.chain.providers[0]!.name) this.#counts.fallback_count += 1;
  }

  /** How many prompts are done and not kept yet. */
  get unkept(): number {
    return this.#done.length - this.#kept;
  }

  /** The prompts that are done and not kept yet; they count as kept from now on. */
  takeUnkept(): { position: number; text: string }[] {
    const from = this.#kept;
    this.#kept = this.#done.length;
    return this.#done.slice(from).map(({ result }, index) => ({ position: result.index, text: this.#texts[from + index]! }));
  }

  /** All prompts have been run: judges them. */
  complete(engine: Engine, slackMs: number): void {
    const done = [...this.#done].sort((one, other) => one.result.index - other.result.index);
    Object.assign(this.#ending, { status: 'completed', ...judge({ engine, preset: this.#asked.preset, done, slackMs }) });
  }

  /** The run ended before that. */
  stop(status: Exclude<TestStatus, 'running' | 'completed'>, error: string): void {
    Object.assign(this.#ending, { status, error });
  }

  close(at: Date, durationMs: number): void {
    Object.assign(this.#ending, { completed_at: at.toISOString(), duration_ms: Math.round(durationMs * 100) / 100 });
  }

  /** The result in JSON without its prompts. */
  headText(): string {
    const results = this.#done.map(({ result }) => result);
    return JSON.stringify(resultOf(this.#asked, this.#ending, results));
  }

  /** The result in JSON, its prompts in their order. */
  text(): string {
    const order = [...this.#done.keys()].sort((one, other) => this.#done[one]!.result.index - this.#done[other]!.result.index);
    const prompts = order.map((place) => this.#texts[place]!);
    return withPrompts(this.headText(), prompts);
  }

  /** How far it is. */
  progress(): TestProgress {
    const { id, prompt_count } = this.#asked;
    const { status, verdict } = this.#ending;
    return { id, status, progress: { done: this.#done.length, total: prompt_count }, ...this.#counts, verdict };
  }
}

/** The result without its prompts, its fields in the order of the description: `results` is the last. */
function resultOf(asked: Asked, ending: Ending, done: readonly PromptResult[]): TestResult {
  return {
    id: asked.id,
    chain_id: asked.chain_id,
    chain_name: asked.chain.name,
    chain_version: asked.chain_version,
    status: ending.status,
    error: ending.error,
    progress: { done: done.length, total: asked.prompt_count },
    mode: asked.mode,
    preset: asked.preset,
    seed: asked.seed,
    prompt_count: asked.prompt_count,
    deadline_ms: asked.deadline_ms,
    started_at: asked.started_at,
    completed_at: ending.completed_at,
    duration_ms: ending.duration_ms,
    ...figuresOf(asked.chain, done),
    assumptions: asked.mode === 'simulate' ? [...assumptions] : [],
    verdict: ending.verdict,
    checks: ending.checks,
    chain: asked.chain,
    results: [],
  };
}

/** How far a test is, by its result. */
export function progressOf({ id, status, progress, success_count, failure_count, fallback_count, verdict }: TestResult): TestProgress {
  return { id, status, progress, success_count, failure_count, fallback_count, verdict };
}

/**
 * A result without its prompts, which are most of its text and need not be read for the rest: they stand at its end. Where
 * something else in it looks like their beginning, what is before that is no JSON, and the whole is read.
 */
export function headOf(text: string): Omit<TestResult, 'results'> {
  const end = text.indexOf(',"results":[{"index":');
  if (end !== -1) {
    try {
      return JSON.parse(`${text.slice(0, end)}}`) as Omit<TestResult, 'results'>;
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
    }
  }
  return JSON.parse(text) as TestResult;
}

/** A result in JSON with an empty list of prompts, of one in JSON. */
export const withoutPrompts = (text: string): string => JSON.stringify({ ...headOf(text), results: [] });

/** A result in JSON, as it was kept: one that was running has its prompts beside it. */
export function endedText({ text, prompts }: { readonly text: string; readonly prompts: readonly string[] }): string {
  return prompts.length === 0 ? text : withPrompts(text, prompts);
}

/** Puts prompts into the empty list at the end of a result without them. */
const withPrompts = (head: string, prompts: readonly string[]) => `${head.slice(0, -2)}${prompts.join(',')}]}`;
