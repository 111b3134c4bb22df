import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

import { processorSeconds } from './processor-time.ts';

/** Seconds of processor time of a test, by its whole title, on a store. */
type Note = [title: string, store: string, seconds: number];

const shown = (seconds: number) => `${seconds.toFixed(1)} s`;

/** The sums of a column of the notes, the largest first. */
function sums(rows: readonly (readonly [name: string, seconds: number])[]): [string, number][] {
  const found = new Map<string, number>();
  for (const [name, seconds] of rows) found.set(name, (found.get(name) ?? 0) + seconds);
  return [...found].sort(([, one], [, other]) => other - one);
}

/** The name of a test's file, by the titles of the outermost suites and tests of files. */
function fileOf(title: string, files: ReadonlyMap<string, string>): string {
  const names = title.split(' > ');
  for (let count = 1; count <= names.length; count += 1) {
    const file = files.get(names.slice(0, count).join(' > '));
    if (file !== undefined) return relative('', file);
  }
  return title;
}

/**
 * What the tests of a run cost in processor time: all of it, by store, and the ten files that took most. `folder` has the notes
 * of the processes (`test-usage.ts`), `files` the file of each outermost suite and test by its title. PostgreSQL works in processes of its own, so it is not in that of its store.
 */
export function costsOf(folder: string, files: ReadonlyMap<string, string>): string {
  const ofProcesses = readdirSync(folder).filter((name) => name.endsWith('.json'));
  const rows = ofProcesses.flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')) as Note[]);
  const inTests = rows.reduce((sum, [, , seconds]) => sum + seconds, 0);
  const all = processorSeconds();
  const { user, system } = process.cpuUsage();
  const here = (user + system) / 1e6;
  const byStore = sums(rows.map(([, store, seconds]) => [store, seconds]));
  const byFile = sums(rows.map(([title, , seconds]) => [fileOf(title, files), seconds])).slice(0, 10);
  return [
    `Processor time: ${shown(all)}, of which ${shown(here)} in the runner, ${shown(inTests)} in ${ofProcesses.length} processes of tests (${byStore
      .map(([store, seconds]) => `${store} ${shown(seconds)}`)
      .join(', ')}), and the rest in PostgreSQL and other servers`,
    'The ten dearest files:',
    ...byFile.map(([file, seconds]) => `${shown(seconds).padStart(9)}  ${file}`),
  ].join('\n');
}
