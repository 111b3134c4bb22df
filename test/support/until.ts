// Taken before a test replaces it by one that it turns.
const { setTimeout: startTimer } = globalThis;

/** Longer than any machine needs, and short enough to say what did not happen before the file of the test times out. */
const limitMs = 60_000;

/** How long every turn of the event loop asks; then there is a pause between questions, for programs that start. */
const eagerMs = 1_000;
const pauseMs = 20;

/**
 * Resolves with the first answer that is neither false nor undefined; a failure counts as none. Rejects after a minute.
 * @param explain what to say then, besides the last failure
 */
export async function until<T>(
  ask: () => T | Promise<T>,
  explain: () => string = () => String(ask),
): Promise<Exclude<Awaited<T>, false | undefined>> {
  const begun = performance.now();
  for (;;) {
    let cause: unknown;
    try {
      const answer = await ask();
      if (answer !== false && answer !== undefined) return answer as Exclude<Awaited<T>, false | undefined>;
    } catch (error) {
      cause = error;
    }
    const waited = performance.now() - begun;
    if (waited > limitMs) throw new Error(`It did not happen within a minute: ${explain()}`, { cause });
    await (waited < eagerMs ? new Promise(setImmediate) : new Promise((resolve) => startTimer(resolve, pauseMs)));
  }
}

/** More steps than any test needs. */
const maxSteps = 1000;

/** Repeats a step, such as a round of a job, until it is done. Rejects when a step fails, and after a thousand steps. */
export async function repeat<T>(step: () => Promise<T>, isDone: (answer: T) => boolean | Promise<boolean>): Promise<void> {
  for (let steps = 0; steps < maxSteps; steps += 1) if (await isDone(await step())) return;
  throw new Error(`It was not done after ${maxSteps} steps: ${isDone}`);
}

/** Counts the turns of the event loop while the work lasts, and returns what the work does. */
export async function countTurns<T>(work: (turn: () => number) => Promise<T>): Promise<T> {
  let turn = 0;
  let isOver = false;
  const next = () => {
    turn += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  try {
    return await work(() => turn);
  } finally {
    isOver = true;
  }
}

/** Resolves once so many requests wait on an instance. */
export const waiting = ({ handoff }: { handoff: { waiting(): number } }, count: number): Promise<true> =>
  until(
    () => handoff.waiting() === count,
    () => `${handoff.waiting()} requests wait, not ${count}`,
  );
