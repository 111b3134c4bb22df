import { serveFallback } from '../src/fallback/serve.ts';
import { serveTasks } from './programs.ts';

const tasks = {
  /** Resolves when the service listens. */
  start: (flags: { port: string; storage: string }) => serveFallback(flags, process.env),
};

/** The tasks of the measured fallback service, besides serving. */
export type FallbackTasks = typeof tasks;

serveTasks(tasks);
