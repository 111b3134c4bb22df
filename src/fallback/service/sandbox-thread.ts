import { serveTasks } from '../../kit/thread.ts';
import { linesOf } from '../rules/targets/field-lines.ts';
import { renderTemplate } from './liquid.ts';
import { readYaml } from './yaml-reader.ts';

/**
 * The tasks of the sandbox's thread. Their input is untrusted, and even a short text may keep a parser or a filter busy
 * for minutes. In a separate thread they can be interrupted and block no request.
 */
const tasks = {
  ready: async (_: Record<string, never>) => true,
  render: async ({ template, scope }: { template: string; scope: Record<string, unknown> }) => renderTemplate(template, scope),
  readYaml: async ({ text }: { text: string }) => readYaml(text),
  linesOf: async ({ text, fields }: { text: string; fields: readonly string[] }) => ({ text: JSON.stringify(linesOf(text, fields)) }),
};

/** The tasks by name. */
export type TextTasks = typeof tasks;

serveTasks(tasks);
