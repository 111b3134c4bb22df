import { conflict } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Store } from '../store/store.ts';
import type { Leases } from './leases.ts';
import { progressOf, type ResultHead } from './record.ts';
import type { ProgressListener } from './running-test.ts';

/** Creates the operations on tests that run on other instances. They are seen in the store, in every round of the leases. */
export function createRemoteTests({ results }: Store, leases: Leases) {
  async function report(id: string, listener: ProgressListener, hasLeft: () => boolean): Promise<void> {
    for (let isRunning = true; isRunning; ) {
      await leases.nextRound();
      if (hasLeft()) return;
      // If the store can't be read, the next round tries again.
      const found = await results.head(id).catch(() => undefined);
      if (found === undefined || hasLeft()) continue;
      listener(progressOf(readJson(found.text) as ResultHead));
      isRunning = found.status === 'running';
    }
  }

  return {
    /** Requests that its instance cancels a test; resolves when the test has ended. @throws ServiceError 409 if it had already ended */
    async cancel(id: string): Promise<void> {
      if (!(await results.requestCancel(id))) throw conflict('This test has already ended; its result does not change.');
      while ((await results.head(id))?.status === 'running') await leases.nextRound();
    },

    /** Reports the progress of a test in every round until it ends. Returns the function that stops the reports. */
    follow(id: string, listener: ProgressListener): () => void {
      let hasLeft = false;
      // It only fails when the service stops, which ends the listener's stream as well.
      report(id, listener, () => hasLeft).catch(() => undefined);
      return () => {
        hasLeft = true;
      };
    },
  };
}
