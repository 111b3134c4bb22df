import { availableParallelism } from 'node:os';

import { findProgram } from '../test/support/programs.ts';

/** Which core a process runs on: servers have one and the load has another, so that the load does not slow down what is measured. */
export type Place = 'server' | 'load' | 'anywhere';

const cores = availableParallelism();

/** Whether processes are pinned to separate cores. */
export const pinned = cores >= 2 && process.platform === 'linux' && findProgram('taskset') !== undefined;

/** The command that runs a process on its core. */
export function placed(place: Place, command: string, parameters: readonly string[]): [string, string[]] {
  if (!pinned || place === 'anywhere') return [command, [...parameters]];
  return ['taskset', ['-c', place === 'server' ? '0' : '1', command, ...parameters]];
}

/** The hardware and system in one line, without the host name. */
export function describeMachine(): string {
  const how = pinned ? 'servers on core 0, the load on core 1' : 'not pinned to cores, so ratios are rough';
  return `${cores} cores, ${process.platform} ${process.arch}, Node ${process.version.slice(1)}, SQLite ${process.versions.sqlite}; ${how}`;
}
