import { serveTasks, threadData } from '../../src/kit/thread.ts';

/** What a thread of the tests can do: answer, fail in several ways, and end. */
const tasks = {
  greet: async (name: string) => `${threadData<{ greeting: string }>().greeting}, ${name}`,
  fail: async (parts: Record<string, unknown>) => {
    throw Object.assign(new Error('It failed.'), parts);
  },
  end: async (code: number) => process.exit(code),
};

/** The tasks by their names. */
export type TestTasks = typeof tasks;

serveTasks(tasks);
