import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A temporary folder that is removed after the test. */
export function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Starts a program of another project, and kills it after the test. What it prints is in the error of `until`. */
export function startDaemon(
  t: TestContext,
  command: string,
  args: readonly string[],
  cwd: string,
): { said(): string; child: ChildProcess } {
  const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (text += chunk));
  const ended = new Promise((resolve) => child.once('close', resolve));
  t.after(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  return { said: () => text, child };
}

/** Asks until the answer is there; the pauses are between requests to a program whose own clock can't be turned. */
export async function until<T>(ask: () => Promise<T | undefined>, explain: () => string = () => ''): Promise<T> {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await ask().catch(() => undefined);
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`No answer came. ${explain()}`);
}
