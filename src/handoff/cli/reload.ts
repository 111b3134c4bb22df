import { spawn } from 'node:child_process';

/** Runs this program with other arguments in Node's watch mode, which restarts it when an imported file changes. */
export function runReloading(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, ['--watch', '--watch-preserve-output', process.argv[1]!, ...args], { stdio: 'inherit' });
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void child.kill(signal));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      process.exitCode = code ?? 0;
      resolve();
    });
  });
}
