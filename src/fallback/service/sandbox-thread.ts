import { serveTasks, usedMs } from '../../kit/thread.ts';
import { type ImportedFile, readFile } from './file-reader.ts';
import { renderTemplate } from './liquid.ts';

/**
 * The tasks of the sandbox's thread. Their input is untrusted, and even a short text may keep a parser or a filter busy
 * for minutes. In a separate thread they can be interrupted and block no request.
 */
const tasks = {
  ready: usedMs,
  render: async ({ template, scope }: { template: string; scope: Record<string, unknown> }) => renderTemplate(template, scope),
  readFile: async (file: ImportedFile) => readFile(file),
};

/** The tasks by name. */
export type TextTasks = typeof tasks;

serveTasks(tasks);
