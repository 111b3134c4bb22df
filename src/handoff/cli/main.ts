import { userInfo } from 'node:os';

import { runCli } from './program.ts';
import type { Terminal } from './terminal.ts';

/** Runs `service-cli` with the arguments, environment and streams of the process, and sets its exit code. */
export async function main(): Promise<void> {
  // A reader such as `head` may close the pipe early.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1));
  const code = await runCli(new ProcessTerminal());
  // `serve` and `admin-key` set an exit code themselves, which 0 must not overwrite.
  if (code !== 0) process.exitCode = code;
}

/** The process as a terminal. Its streams are opened on first use. */
class ProcessTerminal implements Terminal {
  readonly args = process.argv.slice(2);
  readonly environment = process.env;
  readonly userName = userName;

  get stdin(): NodeJS.ReadStream {
    return process.stdin;
  }

  get stdout(): NodeJS.WriteStream {
    return process.stdout;
  }

  get stderr(): NodeJS.WriteStream {
    return process.stderr;
  }
}

function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}
