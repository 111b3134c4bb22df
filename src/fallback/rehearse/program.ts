import { type ChildProcess, spawn } from 'node:child_process';
import { split } from 'shlex';

import { readText } from '../../kit/text-file.ts';

/** How long a program may take until it answers, in milliseconds. */
const startMs = 60_000;

/** How often it is asked whether it answers, and how long it may take to end before it is killed. */
const pollMs = 200;
const endMs = 5_000;

/** How many characters of its output are kept. */
const keptOutput = 4_000;

/** A wrong use of the command, or a program that does not run: the process exits 2. */
export class RehearsalError extends Error {}

/** The text of a file. @throws RehearsalError if it can't be read */
export function textOf(path: string): string {
  try {
    return readText(path);
  } catch (error) {
    throw new RehearsalError(`${path} can't be read: ${(error as Error).message}`);
  }
}

/** A running program. */
export interface Program {
  /** Ends the program and its children. */
  stop(): Promise<void>;
}

/** The words of a command line, without a shell: nothing is expanded. @throws RehearsalError for a quote that does not end */
export function wordsOf(command: string): string[] {
  try {
    return split(command);
  } catch {
    throw new RehearsalError('The command of --run ends inside a quote or after a backslash.');
  }
}

/** Fills `{name}` in each word. */
export const filledIn = (words: readonly string[], values: Readonly<Record<string, string>>): string[] =>
  words.map((word) => word.replace(/\{(\w+)\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? values[name]! : whole)));

/**
 * Starts a program and waits until its URL answers, with any status.
 * @throws RehearsalError if it can't be started, ends before, or does not answer within a minute; the reason of `stopping`. It has ended then.
 */
export async function startProgram(
  words: readonly string[],
  url: string,
  environment: NodeJS.ProcessEnv,
  stopping: AbortSignal,
): Promise<Program> {
  const [file, ...rest] = words;
  if (file === undefined) throw new RehearsalError('--run names no program.');
  // In a group of its own, so that its children end with it.
  const child = spawn(file, rest, { stdio: ['ignore', 'pipe', 'pipe'], env: environment, detached: process.platform !== 'win32' });
  let output = '';
  const keep = (chunk: Buffer) => {
    output = (output + chunk).slice(-keptOutput);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let ended: string | undefined;
  child.once('error', (error) => {
    ended ??= `${file} could not be started: ${error.message}`;
  });
  child.once('exit', (code, signal) => {
    ended ??= `${file} ended with ${code === null ? signal : `exit code ${code}`} before it answered at ${url}.`;
  });
  const failure = (sentence: string) => new RehearsalError(output.trim() === '' ? sentence : `${sentence}\n${output.trim()}`);
  const until = performance.now() + startMs;
  try {
    while (!(await answers(url))) {
      stopping.throwIfAborted();
      if (ended !== undefined) throw failure(ended);
      if (performance.now() > until) throw failure(`${file} did not answer at ${url} within ${startMs / 1000} s.`);
      await new Promise((resolve) => setTimeout(resolve, pollMs));
    }
  } catch (error) {
    await end(child);
    throw error;
  }
  return { stop: () => end(child) };
}

/** Whether anything answers at the models of an API, with any status. */
async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url.replace(/\/+$/, '')}/models`, { redirect: 'manual', signal: AbortSignal.timeout(5_000) });
    await response.body?.cancel();
    return true;
  } catch {
    return false;
  }
}

/** Ends a program with its children: by SIGTERM, and what still runs after five seconds by SIGKILL. */
async function end(child: ChildProcess): Promise<void> {
  const { pid } = child;
  if (pid === undefined) return;
  const isOver = child.exitCode !== null || child.signalCode !== null;
  const exited = isOver ? Promise.resolve() : new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const signal = (name: NodeJS.Signals) => {
    try {
      if (process.platform === 'win32') child.kill(name);
      else process.kill(-pid, name);
    } catch {
      // No process of the group is left.
    }
  };
  signal('SIGTERM');
  const timer = setTimeout(() => signal('SIGKILL'), endMs);
  await exited;
  clearTimeout(timer);
  // A child that ignored the first signal has lost its parent.
  signal('SIGKILL');
}
