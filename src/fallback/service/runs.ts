import { nextTurn } from '../../kit/awaitable.ts';
import { ServiceError } from '../../kit/errors.ts';
import { type PromptRun, runPrompt } from '../providers/executor.ts';
import type { Transport } from '../providers/transport.ts';
import type { Engine } from '../rules/engine.ts';
import { type Plan, sceneOf } from '../rules/plan.ts';
import type { Done } from '../rules/verdict.ts';
import { plural } from '../rules/wording.ts';

/** A test to be run. */
export interface Run {
  readonly engine: Engine;
  readonly plan: Plan;
  readonly transport: Transport;
  readonly count: number;
  /** What is asked, in turn. */
  readonly prompts: readonly string[];
  readonly seed: number;
  readonly deadlineMs: number | null;
  readonly signal: AbortSignal;
  /** Told of each prompt that is done; waited for, so that what is kept is never far behind. */
  onDone(done: Done): void | Promise<void>;
}

/** How many prompts of one test are on their way at once where calls are real. */
const promptsAtOnce = 4;

/** How many simulated prompts are run before others get a turn. */
const promptsPerTurn = 25;

/**
 * Runs every prompt of a test.
 * @throws the signal's reason when it is cancelled
 */
export async function runTest(run: Run): Promise<void> {
  const { count, signal, transport } = run;
  let next = 0;
  async function work(): Promise<void> {
    while (next < count) {
      const index = next;
      next += 1;
      const kept = run.onDone(await runPrompt(promptAt(run, index)));
      if (kept !== undefined) await kept;
      if (transport.mode === 'simulate' && next % promptsPerTurn === 0) await nextTurn();
      signal.throwIfAborted();
    }
  }
  const workers = transport.mode === 'simulate' ? 1 : Math.min(promptsAtOnce, count);
  await Promise.all(Array.from({ length: workers }, work));
}

function promptAt({ engine, plan, transport, prompts, seed, deadlineMs, signal }: Run, index: number): PromptRun {
  const prompt = prompts[index % prompts.length]!;
  return { engine, transport, scene: sceneOf(plan, index), index, prompt, seed, deadlineMs, signal };
}

/** A place in the line for runs. */
export interface Place {
  /** Fulfilled when it is one's turn; rejected with the signal's reason when that comes first. */
  readonly turn: Promise<void>;
  /** Gives the place up, before or after one's turn. */
  leave(): void;
}

/** A line for runs: so many at once, the others wait in turn, and a bound on how many wait. */
export interface RunQueue {
  /** @throws ServiceError 503 when too many wait, of all owners or of this one */
  enter(owner: string, signal: AbortSignal): Place;
  running(): number;
  waiting(): number;
}

interface Waiting {
  readonly owner: string;
  begin(): void;
}

/**
 * A line where `atOnce` run and at most `mostWaiting` wait. One owner has all places but one at most, and a quarter of the
 * line; whoever has the fewest running is the next.
 */
export function createRunQueue(atOnce: number, mostWaiting: number): RunQueue {
  const line = new Set<Waiting>();
  const runningOf = new Map<string, number>();
  const perOwner = Math.max(atOnce - 1, 1);
  const waitingPerOwner = Math.max(Math.floor(mostWaiting / 4), 1);
  let running = 0;

  const ownRuns = (owner: string) => runningOf.get(owner) ?? 0;
  function count(owner: string, change: 1 | -1): void {
    running += change;
    const own = ownRuns(owner) + change;
    if (own === 0) runningOf.delete(owner);
    else runningOf.set(owner, own);
  }

  function admit(): void {
    while (running < atOnce) {
      let next: Waiting | undefined;
      for (const one of line) {
        const own = ownRuns(one.owner);
        if (own < perOwner && (next === undefined || own < ownRuns(next.owner))) next = one;
      }
      if (next === undefined) return;
      line.delete(next);
      count(next.owner, 1);
      next.begin();
    }
  }

  function requireRoom(owner: string): void {
    if (running < atOnce && ownRuns(owner) < perOwner) return;
    if (line.size >= mostWaiting) throw tooMany(`${mostWaiting} tests`);
    let waiting = 0;
    for (const one of line) if (one.owner === owner) waiting += 1;
    if (waiting >= waitingPerOwner) throw tooMany(`${plural(waiting, 'test')} of this caller`);
  }

  return {
    enter(owner, signal) {
      requireRoom(owner);
      const { promise: turn, resolve, reject } = Promise.withResolvers<void>();
      // Who gave up the place may not wait for the turn any more.
      turn.catch(() => undefined);
      let runs = false;
      const waiting: Waiting = {
        owner,
        begin() {
          runs = true;
          resolve();
        },
      };
      const cancel = () => {
        if (line.delete(waiting)) reject(signal.reason);
      };
      line.add(waiting);
      signal.addEventListener('abort', cancel, { once: true });
      if (signal.aborted) cancel();
      admit();
      return {
        turn,
        leave() {
          signal.removeEventListener('abort', cancel);
          line.delete(waiting);
          if (!runs) return;
          runs = false;
          count(owner, -1);
          admit();
        },
      };
    },
    running: () => running,
    waiting: () => line.size,
  };
}

const tooMany = (what: string) =>
  new ServiceError('SERVICE_UNAVAILABLE', `${what} are already waiting for their turn; try again later.`, {
    headers: { 'Retry-After': '5' },
  });
