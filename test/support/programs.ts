import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where a program of the machine is found, or undefined. */
export function findProgram(name: string): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, name))
    .find((path) => existsSync(path));
}
