import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

/** A temporary folder that is removed after the test. */
export function temporaryFolder(t: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
