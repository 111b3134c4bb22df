import { spawn } from 'node:child_process';

import type { Context } from './context.ts';
import type { Options } from './rows.ts';

/** `serve`: runs the service in this process, or with --reload in a process that restarts when a source file changes. */
export async function serve({ environment, err, unknownVariables }: Context, { host, port, config, reload }: Options): Promise<void> {
  const flags = Object.fromEntries(Object.entries({ host, port, config }).filter(([, value]) => value !== undefined));
  if (reload) return runReloading(['serve', ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, String(value)])]);
  const warning = await unknownVariables?.(environment);
  if (warning !== undefined) err.line(`warning: ${warning}`);
  const { serveHandoff } = await import('../serve.ts');
  await serveHandoff(flags, environment);
}

/** `admin-key`: creates an admin key directly in the database. */
export async function adminKey({ environment, quiet }: Context, { config }: Options): Promise<void> {
  const { printAdminKey } = await import('../serve.ts');
  await printAdminKey({ quiet, ...(config === undefined ? {} : { config: String(config) }) }, environment);
}

/** Runs this program with other arguments in Node's watch mode, which restarts it when an imported file changes. */
function runReloading(args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, ['--watch', '--watch-preserve-output', process.argv[1]!, ...args], { stdio: 'inherit' });
  for (const signal of ['SIGTERM', 'SIGINT'] as const)
    process.on(signal, () => {
      child.kill(signal);
    });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => {
      process.exitCode = code ?? 0;
      resolve();
    });
  });
}
