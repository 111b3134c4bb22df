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

/** Asks until the answer is there; the pauses are between requests to a program whose own clock can't be turned. */
export async function until<T>(ask: () => Promise<T | undefined>, explain: () => string = () => ''): Promise<T> {
  for (let tries = 0; tries < 600; tries += 1) {
    const found = await ask().catch(() => undefined);
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`No answer came. ${explain()}`);
}
