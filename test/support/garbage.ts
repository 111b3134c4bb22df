import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');

/** Collects what nothing refers to. */
const collect = runInNewContext('gc') as () => void;

/** Resolves after a turn of the event loop, without what nothing refers to; twice, since what has been awaited is kept for a turn. */
export async function collectGarbage(): Promise<void> {
  for (let pass = 0; pass < 2; pass += 1) {
    await new Promise(setImmediate);
    collect();
  }
}
