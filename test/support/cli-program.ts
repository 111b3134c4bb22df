import { fileURLToPath } from 'node:url';

import type { CliOptions, CliResult } from './cli.ts';
import { runProgram } from './program.ts';

/** The program `service-cli` that users start. */
export const cliProgram = fileURLToPath(new URL('../../bin/service-cli.js', import.meta.url));

/** Runs the program to its end, with the given environment and the current PATH. Commands at a database print by themselves. */
export function runCliProgram(args: readonly string[], { input = '', environment = {} }: CliOptions): Promise<CliResult> {
  return runProgram([process.execPath, cliProgram, ...args], { env: { PATH: process.env.PATH ?? '', ...environment }, input });
}
