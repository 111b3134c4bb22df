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
