import { isatty } from 'node:tty';

import type { UnknownVariables } from '../../kit/settings.ts';
import { Writer } from './output/writer.ts';
import { runCli } from './program.ts';

/** Runs `service-cli` with the arguments, environment and streams of the process, and sets its exit code. */
export async function main(unknownVariables: UnknownVariables): Promise<void> {
  const { argv, env, stdout, stderr } = process;
  // A reader such as `head` may close the pipe early.
  stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  const out = new Writer(stdout, env);
  const err = new Writer(stderr, env);
  const isInteractive = isatty(0) && stderr.isTTY === true;
  const args = argv.slice(2);
  const code = await runCli({ args, environment: env, stdin: () => process.stdin, out, err, isInteractive, unknownVariables });
  // `serve` and `admin-key` set an exit code themselves, which 0 must not overwrite.
  if (code !== 0) process.exitCode = code;
}
