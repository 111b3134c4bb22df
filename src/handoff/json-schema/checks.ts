import type { Fault } from '../../kit/errors.ts';
import { Sandbox, type SandboxLimits, TaskEnded } from '../../kit/sandbox.ts';
import { threadModule } from '../../kit/thread.ts';
import type { CheckOf, CheckTasks } from './checks-thread.ts';
import type { Checked } from './compile.ts';

/** The limits, if a test does not say others. Steps end a check long before the deadline, also on a machine that is a hundred times slower. */
const usual: SandboxLimits = { deadlineMs: 2_000, maxPending: 10_000, maxPendingPerOwner: 2_000, heapMib: 192 };

/**
 * Compiles schemas of callers and checks values against them in a thread, where nobody waits for them. A schema and a check are bounded
 * by keywords and steps; the thread's deadline and memory end what these do not foresee. Owners take turns.
 */
export class SchemaChecks {
  readonly #sandbox: Sandbox<CheckTasks>;

  constructor(limits: Partial<SandboxLimits> = {}) {
    this.#sandbox = new Sandbox(threadModule('checks-thread', import.meta.url), 'checks of contracts', { ...usual, ...limits });
  }

  /** What is wrong with a schema, by the path from `field`. @throws ServiceError 503 when too many checks wait */
  async faultsOf(owner: number, schema: unknown, field = 'schema'): Promise<readonly Fault[]> {
    try {
      return await this.#sandbox.run(owner, 'faultsOf', { schema: JSON.stringify(schema), field });
    } catch (error) {
      if (!(error instanceof TaskEnded)) throw error;
      return [{ field, detail: `${field} needs too much ${error.limit} to be compiled.` }];
    }
  }

  /** What is wrong with a value, by a schema that has no fault. Both are JSON. @throws ServiceError 503 when too many checks wait */
  async check(check: CheckOf): Promise<Checked> {
    try {
      return await this.#sandbox.run(check.owner, 'check', check);
    } catch (error) {
      if (!(error instanceof TaskEnded)) throw error;
      return { faults: [], ranOut: true, field: '', steps: 0 };
    }
  }

  stop(): Promise<void> {
    return this.#sandbox.stop();
  }
}
