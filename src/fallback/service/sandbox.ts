import { invalid, ServiceError } from '../../kit/errors.ts';
import { FairQueue } from '../../kit/fair-queue.ts';
import { Thread } from '../../kit/thread.ts';
import { duration } from '../../kit/wording.ts';
import type { TaskResult } from './liquid.ts';
import type { SandboxTasks } from './sandbox-thread.ts';

export interface SandboxParts {
  /** The timeout of a task, in milliseconds. The engines have their own lower limits, whose errors have a position. */
  deadlineMs?: number;
  /** The most pending tasks, including the running one. */
  maxPending?: number;
  /** The most pending tasks of one owner. */
  maxPendingPerOwner?: number;
  /** The heap limit of the thread, in MiB. */
  heapMib?: number;
}

export type Sandbox = ReturnType<typeof createSandbox>;

/** The longest wait of a task in the queue, in milliseconds. */
const maxWaitMs = 30_000;

/**
 * Creates the sandbox, which renders and parses untrusted texts in a thread with a timeout and a heap limit. The thread
 * starts with the first task. Tasks run one at a time, in turns between owners.
 */
export function createSandbox({ deadlineMs = 3_000, maxPending = 64, maxPendingPerOwner = 16, heapMib = 128 }: SandboxParts = {}) {
  const entry = new URL(import.meta.url.endsWith('.ts') ? './sandbox-thread.ts' : './sandbox-thread.js', import.meta.url);
  const thread = new Thread<SandboxTasks>(entry, {}, { heapMib });
  const queue = new FairQueue({
    ...{ concurrency: 1, perOwner: 1, maxWaitMs, what: 'templates and imports' },
    maxWaiting: maxPending - 1,
    maxWaitingPerOwner: maxPendingPerOwner - 1,
  });

  /** Runs a task in its turn and returns its text. The timeout starts when the thread is ready. */
  async function run({ what, field, owner }: Record<'what' | 'field' | 'owner', string>, task: () => Promise<TaskResult>): Promise<string> {
    return textOf(await queue.run(owner, () => withDeadline(what, field, task)), field);
  }

  async function withDeadline(what: string, field: string, task: () => Promise<TaskResult>): Promise<TaskResult> {
    let timer: NodeJS.Timeout | undefined;
    try {
      await thread.call('ready', {});
      const late = invalid(field, `${what} takes longer than ${duration(deadlineMs)}.`);
      timer = setTimeout(() => thread.interrupt(late), deadlineMs);
      return await task();
    } catch (error) {
      if ((error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY') throw invalid(field, `${what} needs too much memory.`);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    /** Renders a template. @throws ServiceError 400 on `field`, with line and column if known */
    render: (template: string, scope: Record<string, unknown>, field: string, owner = '') =>
      run({ what: 'The template', field, owner }, () => thread.call('render', { template, scope })),
    /** A YAML document as JSON text. @throws ServiceError 400 on `field`, with line and column if known */
    readYaml: (text: string, field: string, owner = '') =>
      run({ what: 'The document', field, owner }, () => thread.call('readYaml', { text })),
    /** The lines of fields of a document, from 1 or null, as a JSON list. */
    linesOf: (text: string, fields: readonly string[], field: string, owner = '') =>
      run({ what: 'The document', field, owner }, () => thread.call('linesOf', { text, fields })),
    stop: () => thread.stop(),
  };
}

/** The text. @throws ServiceError 400 on `field`, with the position in the sentence and as `line` and `column` */
function textOf(result: TaskResult, field: string): string {
  if ('text' in result) return result.text;
  const { fault, line, column } = result;
  if (line === null || column === null) throw invalid(field, fault);
  throw new ServiceError('VALIDATION_ERROR', `Line ${line}, column ${column}: ${fault}`, { field, extra: { line, column } });
}
