import { Command } from 'commander';

import packageJson from '../../../package.json' with { type: 'json' };

/** The command line of the handoff service. */
export function createProgram(): Command {
  const program = new Command('service-cli').description('The handoff packet service, from a terminal.').version(packageJson.version);
  program
    .command('serve')
    .description('run the service')
    .option('--host <host>', 'the address to listen on (default 0.0.0.0)')
    .option('--port <port>', 'the port to listen on; 0 picks a free one (default 8080)')
    .option('--config <file>', 'a TOML file of settings')
    .option('--reload', 'start anew whenever a source file changes; for development')
    .action(async ({ reload, ...flags }: { host?: string; port?: string; config?: string; reload?: true }) => {
      if (reload) {
        const { runReloading } = await import('./reload.ts');
        return runReloading(['serve', ...Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value])]);
      }
      const { unknownVariables } = await import('../../variables.ts');
      const warning = unknownVariables(process.env);
      if (warning !== undefined) console.error(`warning: ${warning}`);
      const { serveHandoff } = await import('../serve.ts');
      await serveHandoff(flags, process.env);
    });
  program
    .command('admin-key')
    .description('make an admin key at the database itself, also while the service runs')
    .option('--config <file>', 'a TOML file of settings')
    .action(async (flags: { config?: string }) => {
      const { printAdminKey } = await import('../serve.ts');
      await printAdminKey(flags, process.env);
    });
  return program;
}
