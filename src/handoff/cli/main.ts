import { userInfo } from 'node:os';

import { runCli } from './program.ts';

/** Runs `service-cli` with the arguments, environment and streams of the process, and sets its exit code. */
export async function main(): Promise<void> {
  // A reader such as `head` may close the pipe early.
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
  // `serve` and `admin-key` set an exit code themselves, which 0 must not overwrite.
  if (code !== 0) process.exitCode = code;
}

function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}
