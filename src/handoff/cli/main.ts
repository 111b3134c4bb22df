import { userInfo } from 'node:os';

import { runCli } from './program.ts';

/** The program `service-cli`: the process's arguments, environment and streams in, its exit code out. */
export async function main(): Promise<void> {
  // Who reads the answer may stop reading it, as `head` does.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  const code = await runCli({
    args: process.argv.slice(2),
    environment: process.env,
    get stdin() {
      return process.stdin;
    },
    get stdout() {
      return process.stdout;
    },
    get stderr() {
      return process.stderr;
    },
    userName,
  });
  // `serve` and `admin-key` end without an error of the command line and set a code of their own.
  if (code !== 0) process.exitCode = code;
}

function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}
