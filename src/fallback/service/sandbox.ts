import { invalid, ServiceError } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import { Sandbox, TaskEnded } from '../../kit/sandbox.ts';
import { threadModule } from '../../kit/thread.ts';
import { duration } from '../../kit/wording.ts';
import type { ImportedFile, ReadFile } from './file-reader.ts';
import type { TaskResult } from './liquid.ts';
import type { TextTasks } from './sandbox-thread.ts';

export interface SandboxOptions {
  /** The most processor time of a task, in milliseconds. The engines have their own lower limits, whose errors have a position. */
  deadlineMs?: number;
  /** The most pending tasks, including the running one. */
  maxPending?: number;
  /** The most pending tasks of one owner. */
  maxPendingPerOwner?: number;
  /** The heap limit of the thread, in MiB. */
  heapMib?: number;
}

export type TextSandbox = ReturnType<typeof createSandbox>;

/**
 * Creates the sandbox, which renders and parses untrusted texts in a thread with limits of processor time and heap. The thread
 * starts with the first task. Tasks run one at a time, in turns between owners.
 */
export function createSandbox({ deadlineMs = 3_000, maxPending = 64, maxPendingPerOwner = 16, heapMib = 128 }: SandboxOptions = {}) {
  const limits = { deadlineMs, maxPending, maxPendingPerOwner, heapMib };
  const sandbox = new Sandbox<TextTasks>(threadModule('sandbox-thread', import.meta.url), 'templates and imports', limits);

  /** Runs a task in its turn and returns its text. @throws ServiceError 400 on `field` */
  async function run({ what, field }: Record<'what' | 'field', string>, task: () => Promise<TaskResult>): Promise<string> {
    try {
      return textOf(await task(), field);
    } catch (error) {
      if (!(error instanceof TaskEnded)) throw error;
      const { limit } = error;
      throw invalid(field, `${what} ${limit === 'time' ? `takes longer than ${duration(deadlineMs)}` : 'needs too much memory'}.`);
    }
  }

  return {
    /** Renders a template. @throws ServiceError 400 on `field`, with line and column if known */
    render: (template: string, scope: Record<string, unknown>, field: string, owner = '') =>
      run({ what: 'The template', field }, () => sandbox.run(owner, 'render', { template, scope })),
    /** What a file gives, by all steps of an import. @throws ServiceError 400 on its field, with line and column if known */
    readFile: async (file: ImportedFile, field: string, owner = '') =>
      readJson<ReadFile>(await run({ what: 'The file', field }, () => sandbox.run(owner, 'readFile', file))),
    stop: () => sandbox.stop(),
  };
}

/** The text. @throws ServiceError 400 on `field`, with the position in the sentence and as `line` and `column` */
function textOf(result: TaskResult, field: string): string {
  if ('text' in result) return result.text;
  if ('refusal' in result) {
    const { message, ...parts } = result.refusal;
    throw new ServiceError(parts, message, parts);
  }
  const { fault, line, column } = result;
  if (line === null || column === null) throw invalid(field, fault);
  throw new ServiceError('VALIDATION_ERROR', `Line ${line}, column ${column}: ${fault}`, { field, extra: { line, column } });
}
