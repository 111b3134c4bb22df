import { getEnvironmentData, isMainThread, setEnvironmentData } from 'node:worker_threads';

/**
 * Loaded first in each process that runs tests of changed code (`--import`), and so in its threads: which change is made, and which
 * places were reached, in memory that the threads share. Element 0 is the id of the change, the others say which were reached.
 */
const name = 'baton-changes';

/** The memory of the switches. */
export const switches: Int32Array = isMainThread
  ? new Int32Array(new SharedArrayBuffer(1 << 16))
  : (getEnvironmentData(name) as Int32Array);
if (isMainThread) setEnvironmentData(name, switches);

Object.assign(globalThis, {
  $change(id: number): boolean {
    switches[id] = 1;
    return switches[0] === id;
  },
});
