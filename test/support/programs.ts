import { spawnSync } from 'node:child_process';
import { existsSync, globSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** The path of an installed program, or undefined. */
export function findProgram(name: string): string | undefined {
  return findPrograms(name)[0];
}

function findPrograms(name: string): string[] {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .filter((path) => existsSync(path));
}

/** The path of a Python that has the module, or undefined. If several are installed, only Debian's has Debian's packages. */
export function findPythonWith(module: string): string | undefined {
  return findPrograms('python3').find((path) => spawnSync(path, ['-c', `import ${module}`]).status === 0);
}

/** The folder with the programs of Debian's newest PostgreSQL, or undefined. */
export const debianPostgres = globSync('/usr/lib/postgresql/*/bin')
  .filter((folder) => existsSync(join(folder, 'initdb')))
  .sort((one, other) => one.localeCompare(other, 'en', { numeric: true }))
  .at(-1);
