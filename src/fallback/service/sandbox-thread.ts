import { serveTasks } from '../../kit/thread.ts';
import { renderTemplate } from './liquid.ts';
import { readYaml } from './yaml-reader.ts';

/**
 * What the sandbox's thread does. Both tasks take a text that a stranger wrote, and a short text may keep a parser or a
 * filter busy for minutes: here they can be interrupted, and no request waits for them.
 */
const tasks = {
  ready: async (_: Record<string, never>) => true,
  render: async ({ template, scope }: { template: string; scope: Record<string, unknown> }) => renderTemplate(template, scope),
  readYaml: async ({ text }: { text: string }) => readYaml(text),
};

/** The tasks by their names. */
export type SandboxTasks = typeof tasks;

serveTasks(tasks);
