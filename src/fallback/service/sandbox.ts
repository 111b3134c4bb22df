import { invalid, ServiceError } from '../../kit/errors.ts';
import { startThread } from '../../kit/thread.ts';
import type { SandboxTasks } from './sandbox-thread.ts';

export interface SandboxParts {
  /** How long one task may take, in milliseconds. The engines have lower limits of their own, which name a position. */
  deadlineMs?: number;
  /** How many tasks may be in hand, the one that runs included. */
  maxWaiting?: number;
  /** The most heap the thread may take, in MiB. */
  heapMib?: number;
}

/** A place where texts of strangers are read and rendered: a thread with a deadline and a bounded heap. */
export interface Sandbox {
  /** A template's output. Throws 400 on `field`, with line and column where the fault has a place. */
  render(template: string, scope: Record<string, unknown>, field: string): Promise<string>;
  /** A YAML document's value as JSON text. Throws 400 on `field`, with line and column where the fault has a place. */
  readYaml(text: string, field: string): Promise<string>;
  stop(): Promise<void>;
}

/** Starts the sandbox; its thread starts with the first task. Tasks run one after the other. */
export function createSandbox({ deadlineMs = 3_000, maxWaiting = 64, heapMib = 128 }: SandboxParts = {}): Sandbox {
  const entry = new URL(import.meta.url.endsWith('.ts') ? './sandbox-thread.ts' : './sandbox-thread.js', import.meta.url);
  const thread = startThread<SandboxTasks>(entry, {}, { heapMib });
  let last: Promise<unknown> = Promise.resolve();
  let waiting = 0;

  /** Runs a task when those before it are done. The deadline counts from when the thread is there to work on it. */
  async function run<T>(what: string, field: string, task: () => Promise<T>): Promise<T> {
    if (waiting >= maxWaiting) throw tooMany();
    waiting += 1;
    const done = last.then(async () => {
      let timer: NodeJS.Timeout | undefined;
      try {
        await thread.call('ready', {});
        const late = invalid(field, `${what} takes longer than ${deadlineMs} ms.`);
        timer = setTimeout(() => thread.interrupt(late), deadlineMs);
        return await task();
      } catch (error) {
        if ((error as { code?: unknown }).code === 'ERR_WORKER_OUT_OF_MEMORY') throw invalid(field, `${what} needs too much memory.`);
        throw error;
      } finally {
        clearTimeout(timer);
        waiting -= 1;
      }
    });
    last = done.catch(() => undefined);
    return done;
  }

  return {
    async render(template, scope, field) {
      const rendered = await run('The template', field, () => thread.call('render', { template, scope }));
      if ('output' in rendered) return rendered.output;
      throw faultAt(field, rendered);
    },
    async readYaml(text, field) {
      const read = await run('The document', field, () => thread.call('readYaml', { text }));
      if ('json' in read) return read.json;
      throw faultAt(field, read);
    },
    stop: () => thread.stop(),
  };
}

/** 400 on `field` with the place of the fault in words, and as `line` and `column` for programs. */
function faultAt(field: string, { fault, line, column }: { fault: string; line: number | null; column: number | null }): ServiceError {
  if (line === null || column === null) return invalid(field, fault);
  return new ServiceError('VALIDATION_ERROR', `Line ${line}, column ${column}: ${fault}`, { field, extra: { line, column } });
}

const tooMany = () =>
  new ServiceError('SERVICE_UNAVAILABLE', 'Too many templates and imports are in hand. Try again in a moment.', {
    headers: { 'Retry-After': '1' },
  });
