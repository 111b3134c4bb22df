/** How long a stop may take before the process ends anyway, in milliseconds. */
const stopWithinMs = 9_000;

/** What stops the programs of this process. */
const stops: (() => Promise<void>)[] = [];

/**
 * Stops the program at SIGTERM or SIGINT, or when the program that started it and watches over it is gone: what is in hand
 * is finished, then the process exits 0; after nine seconds it exits 1 with what it has. Several programs may run in one
 * process; it ends when the last of them has stopped.
 */
export function stopOnSignals(stop: () => Promise<void>): void {
  stops.push(stop);
  if (stops.length > 1) return;
  let stopping = false;
  const stopAll = async () => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => process.exit(1), stopWithinMs).unref();
    const outcomes = await Promise.allSettled(stops.map((one) => one()));
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected');
    for (const { reason } of failures) console.error(`The stop failed: ${reason instanceof Error ? reason.message : String(reason)}`);
    process.exit(failures.length === 0 ? 0 : 1);
  };
  process.on('SIGTERM', stopAll);
  process.on('SIGINT', stopAll);
  process.on('disconnect', stopAll);
}
