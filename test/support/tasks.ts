import { serveTasks, threadData } from '../../src/kit/thread.ts';

/** What a thread of the tests can do: answer, fail in several ways, and end. */
const tasks = {
  greet: async (name: string) => `${threadData<{ greeting: string }>().greeting}, ${name}`,
  fail: async (parts: Record<string, unknown>) => {
    throw Object.assign(new Error('It failed.'), parts);
  },
  /** Goes on until it is abandoned, and fails with an error whose `code` can't be set. */
  wait: async (_: string, signal: AbortSignal) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    throw new DOMException('This operation was aborted', 'AbortError');
  },
  end: async (code: number) => process.exit(code),
};

/** The tasks by their names. */
export type TestTasks = typeof tasks;

serveTasks(tasks);
