import { readJson } from '../../kit/json.ts';
import { serveTasks, usedMs } from '../../kit/thread.ts';
import { CheckerCache } from './cache.ts';
import { type Checked, compileSchema } from './compile.ts';

/** A value to check, as JSON, against a schema, as JSON. */
export interface CheckOf {
  readonly owner: number;
  readonly schema: string;
  readonly value: string;
  /** The name of the whole value in sentences. */
  readonly whole: string;
}

const cache = new CheckerCache();

const tasks = {
  ready: usedMs,
  /** What is wrong with a schema. */
  async faultsOf({ schema, field }: { schema: string; field: string }) {
    const result = compileSchema(readJson(schema), field);
    return 'faults' in result ? result.faults : [];
  },
  /** What is wrong with a value. The schema was compiled before without faults. */
  async check({ owner, schema, value, whole }: CheckOf): Promise<Checked> {
    const checker = cache.of(owner, schema);
    try {
      return checker.check(readJson(value), whole);
    } finally {
      cache.keep(owner, schema, checker);
    }
  },
};

/** The tasks by name. */
export type CheckTasks = typeof tasks;

serveTasks(tasks);
