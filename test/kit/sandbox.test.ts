import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Sandbox, TaskEnded } from '../../src/kit/sandbox.ts';
import type { TestTasks } from '../support/tasks.ts';

const entry = new URL('../support/tasks.ts', import.meta.url);

test('A task of a sandbox may take longer by the clock than the processor time that it may use', { timeout: 120_000 }, async (t) => {
  const sandbox = new Sandbox<TestTasks>(entry, 'tests', { deadlineMs: 200, maxPending: 2, maxPendingPerOwner: 2, heapMib: 64 });
  t.after(() => sandbox.stop());
  assert.equal(await sandbox.run('a', 'rest', 250), 'rested');
  const ended = async (task: 'rest' | 'block') => {
    // The thread has started.
    await sandbox.run('a', 'rest', 0);
    const begun = performance.now();
    await assert.rejects(sandbox.run('a', task, 100_000), (error: TaskEnded) => error instanceof TaskEnded && error.limit === 'time');
    return performance.now() - begun;
  };
  const resting = await ended('rest');
  assert.ok((await ended('block')) < resting * 0.8, 'a thread that does not answer is ended before one that does');
});
