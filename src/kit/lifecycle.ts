/** A part of a program that is started, and stopped in the reverse order. */
export interface Part {
  name: string;
  start?(): Promise<void> | void;
  stop?(): Promise<void> | void;
}

/** Starts the parts in order; a part that fails stops those before it and the error goes on. */
export async function startAll(parts: readonly Part[]): Promise<void> {
  for (const [index, part] of parts.entries()) {
    try {
      await part.start?.();
    } catch (error) {
      await stopAll(parts.slice(0, index), () => undefined);
      throw error;
    }
  }
}

/** Stops the parts, last first. One that fails is reported and does not keep the others from stopping. */
export async function stopAll(parts: readonly Part[], onError: (part: Part, error: unknown) => void): Promise<void> {
  for (const part of parts.toReversed()) {
    try {
      await part.stop?.();
    } catch (error) {
      onError(part, error);
    }
  }
}

/** How long a stop may take before the process ends anyway, in milliseconds. */
const stopWithinMs = 9_000;

/**
 * Stops the program at SIGTERM or SIGINT: what is in hand is finished, then the process exits 0; after nine seconds
 * it exits 1 with what it has.
 */
export function stopOnSignals(stop: () => Promise<void>): void {
  let stopping = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (stopping) return;
      stopping = true;
      setTimeout(() => process.exit(1), stopWithinMs).unref();
      stop().then(
        () => process.exit(0),
        () => process.exit(1),
      );
    });
  }
}
