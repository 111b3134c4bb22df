import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where a program of the machine is found, or undefined. */
export function findProgram(name: string): string | undefined {
  return findPrograms(name)[0];
}

function findPrograms(name: string): string[] {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .filter((path) => existsSync(path));
}

/** A Python of the machine that has the module, or undefined: of several, Debian's alone knows Debian's packages. */
export function findPythonWith(module: string): string | undefined {
  return findPrograms('python3').find((path) => spawnSync(path, ['-c', `import ${module}`]).status === 0);
}
