import { spawnSync } from 'node:child_process';
import { setTimeout as rest } from 'node:timers/promises';

import { serveTasks, threadData, usedMs } from '../../src/kit/thread.ts';

/** The tasks of a test thread: answering, failing in several ways, and ending. */
const tasks = {
  greet: async (name: string) => `${threadData<{ greeting: string }>().greeting}, ${name}`,
  fail: async (parts: Record<string, unknown>) => {
    throw Object.assign(new Error('It failed.'), parts);
  },
  /** Runs until it is aborted, and fails with an error whose `code` can't be set. */
  wait: async (_: string, signal: AbortSignal) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    throw new DOMException('This operation was aborted', 'AbortError');
  },
  ready: usedMs,
  rest: async (ms: number) => rest(ms, 'rested'),
  /** One step of native code of three seconds, which no question interrupts. */
  block: async (_: number) => spawnSync('sleep', ['3']).status,
  end: async (code: number) => process.exit(code),
};

/** The tasks by name. */
export type TestTasks = typeof tasks;

serveTasks(tasks);
