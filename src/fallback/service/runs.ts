import { nextTurn } from '../../kit/awaitable.ts';
import { ServiceError } from '../../kit/errors.ts';
import { type PromptRun, runPrompt } from '../providers/executor.ts';
import type { RunSignals, Transport } from '../providers/transport.ts';
import type { Engine } from '../rules/engine.ts';
import { type Plan, sceneOf } from '../rules/plan.ts';
import type { FinishedPrompt } from '../rules/verdict.ts';
import { plural } from '../rules/wording.ts';

/** A test to run. */
export interface Run extends RunSignals {
  readonly engine: Engine;
  readonly plan: Plan;
  readonly transport: Transport;
  readonly count: number;
  /** The prompts, used in turn. */
  readonly prompts: readonly string[];
  readonly seed: number;
  readonly deadlineMs: number | null;
  /** Called for each finished prompt, and awaited, so that storing keeps up. */
  onDone(done: FinishedPrompt): void | Promise<void>;
}

/** The concurrent prompts of a test with real calls. */
const promptsAtOnce = 4;

/** How many attempts are simulated before yielding to the event loop. */
const attemptsPerTurn = 100;

/**
 * Runs all prompts of a test.
 * @throws the signal's reason if it is cancelled
 */
export async function runTest(run: Run): Promise<void> {
  const { count, signal, transport } = run;
  let next = 0;
  let attempts = 0;
  let hasFailed = false;
  async function work(): Promise<void> {
    while (next < count && !hasFailed) {
      signal.throwIfAborted();
      const index = next;
      next += 1;
      const done = await runPrompt(promptAt(run, index));
      attempts += done.result.attempts.length;
      const kept = run.onDone(done);
      if (kept !== undefined) await kept;
      if (transport.mode === 'simulate' && attempts >= attemptsPerTurn) {
        attempts = 0;
        await nextTurn();
      }
    }
  }
  const workers = Array.from({ length: transport.mode === 'simulate' ? 1 : Math.min(promptsAtOnce, count) }, () =>
    work().catch((error: unknown) => {
      hasFailed = true;
      throw error;
    }),
  );
  // The calls in progress of the other workers are finished first.
  await Promise.allSettled(workers);
  await Promise.all(workers);
}

function promptAt({ engine, plan, transport, prompts, seed, deadlineMs, signal, callSignal }: Run, index: number): PromptRun {
  const prompt = prompts[index % prompts.length]!;
  return { engine, transport, scene: sceneOf(plan, index), index, prompt, seed, deadlineMs, signal, callSignal };
}

/** A place in the queue of runs. */
export interface Place {
  /** Resolves when the run may start; rejects with the signal's reason if it aborts first. */
  readonly turn: Promise<void>;
  /** Releases the place, before or after the run. */
  leave(): void;
}

/** A queue of runs with a limit on concurrent and on waiting runs. */
export interface RunQueue {
  /** @throws ServiceError 503 if too many runs are waiting, in total or of this owner */
  enter(owner: string, signal: AbortSignal): Place;
  running(): number;
  waiting(): number;
}

interface Waiting {
  readonly owner: string;
  begin(): void;
}

/**
 * Creates a queue for `atOnce` concurrent and `mostWaiting` waiting runs. An owner may have all concurrent runs but one,
 * and a quarter of the waiting ones. The owner with the fewest concurrent runs is next.
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
      // After leaving, nobody may be waiting for the turn.
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
