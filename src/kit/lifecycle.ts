/** How long a stop may take before the process ends anyway, in milliseconds. */
const stopWithinMs = 9_000;

/** The stop functions of the services in this process. */
const stops: (() => Promise<void>)[] = [];

/**
 * Stops the service at SIGTERM or SIGINT, or when its supervising parent process is gone. The process finishes requests
 * in progress and exits 0; after nine seconds it exits 1 in any case. A process may run several services; it ends when
 * all of them have stopped.
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
  for (const event of ['SIGTERM', 'SIGINT', 'disconnect']) process.on(event, () => void stopAll());
}
