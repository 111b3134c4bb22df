import type { Command } from 'commander';

import type { Terminal } from './terminal.ts';

interface ServeOptions {
  host?: string;
  port?: string;
  config?: string;
  reload?: true;
}

/** `serve` runs the service itself; `admin-key` creates a key in its database. */
export function addServiceCommands(program: Command, { environment }: Terminal): void {
  program
    .command('serve')
    .description('run the service')
    .option('--host <host>', 'the address to listen on (default 0.0.0.0)')
    .option('--port <port>', 'the port to listen on; 0 picks a free one (default 8080)')
    .option('--config <file>', 'a TOML file of settings')
    .option('--reload', 'restart whenever a source file changes; for development')
    .action(async ({ reload, ...flags }: ServeOptions) => {
      if (reload) {
        const { runReloading } = await import('./reload.ts');
        return runReloading(['serve', ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])]);
      }
      const { unknownVariables } = await import('../../variables.ts');
      const warning = unknownVariables(environment);
      if (warning !== undefined) console.error(`warning: ${warning}`);
      const { serveHandoff } = await import('../serve.ts');
      await serveHandoff(flags, environment);
    });
  program
    .command('admin-key')
    .description('create an admin key directly in the database, even while the service runs')
    .option('--config <file>', 'a TOML file of settings')
    .action(async (flags: { config?: string }) => {
      const { printAdminKey } = await import('../serve.ts');
      await printAdminKey(flags, environment);
    });
}
