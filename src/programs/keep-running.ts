/** A pause before a restart doubles with each end within this time, in milliseconds. */
const windowMs = 60_000;

/** So many ends within the window, and the service is not started again. */
const maxEnds = 5;

/** The pause after the first end, in milliseconds. */
const firstPauseMs = 1_000;

/** One run of a program. */
export interface Run {
  /** The exit code; 1 for an end by a signal. */
  readonly code: number;
  /** Whether it ended because it was told to. */
  readonly wasStopped: boolean;
  /** Whether it began to serve. */
  readonly hasServed: boolean;
}

/** The outside world of `keepRunning`. */
interface Supervision {
  run: () => Promise<Run>;
  /** The time in milliseconds. */
  now: () => number;
  /** Resolves after the pause, or early with true if the program is no longer wanted. */
  pause: (ms: number) => Promise<boolean>;
  /** Called before the pause that precedes a restart. */
  onRestart: (pauseMs: number) => void;
}

/**
 * Runs a program again when it has ended with an error, after pauses of 1, 2, 4 and 8 seconds; resolves with its last exit
 * code when it has ended for good. It is not started again if it exits 0, was told to stop, never served (its settings are
 * wrong, or its port is taken), or, with `gaveUp`, if it has ended five times within a minute.
 */
export async function keepRunning({ run, now, pause, onRestart }: Supervision): Promise<{ code: number; gaveUp: boolean }> {
  let ends: number[] = [];
  let hasServed = false;
  for (;;) {
    const ended = await run();
    const { code } = ended;
    hasServed ||= ended.hasServed;
    if (code === 0 || ended.wasStopped || !hasServed) return { code, gaveUp: false };
    ends = [...ends.filter((at) => at > now() - windowMs), now()];
    if (ends.length >= maxEnds) return { code, gaveUp: true };
    const pauseMs = firstPauseMs * 2 ** (ends.length - 1);
    onRestart(pauseMs);
    if (await pause(pauseMs)) return { code, gaveUp: false };
  }
}
