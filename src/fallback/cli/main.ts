import { Command } from 'commander';

import packageJson from '../../../package.json' with { type: 'json' };
import type { UnknownVariables } from '../../kit/settings.ts';
import { checkFlag, exitForUsage, exportProblem, maintenanceCommands, refuseSurplusWords } from '../../kit/usage.ts';
import type { ServeFlags } from '../serve.ts';
import { addRehearse } from './rehearse.ts';

type ServeOptions = Omit<ServeFlags, 'allowLive' | 'allowOpen'> & { allowLive?: true; allowOpen?: true };

/** The command line of the fallback service. */
export function createProgram(unknownVariables: UnknownVariables): Command {
  const program = new Command('fallback-service')
    .description('The fallback chain service.')
    .version(packageJson.version)
    .exitOverride(exitForUsage);
  refuseSurplusWords(program)
    .command('serve')
    .description('run the service')
    .option('--host <host>', 'the address to listen on (default 127.0.0.1)')
    .option('--port <port>', 'the port to listen on; 0 picks a free one (default 8000)')
    .option(
      '--storage <url>',
      'where chains and results are stored: memory (default), sqlite://./relative.db, sqlite:///absolute.db or postgres://user:password@host:port/database',
    )
    .option(
      '--rate-limit <count/period>',
      'the maximum number of requests per key or address, such as 100/minute (second, minute, hour, day)',
    )
    .option('--config <file>', 'a TOML file of settings, with API keys in the table [api_keys]')
    .option('--allow-live', 'let tests call the real providers, and gateways in rehearsals')
    .option('--allow-open', 'allow connections from other machines although no API key is configured')
    .action(async ({ allowLive, allowOpen, ...flags }: ServeOptions) => {
      const warning = await unknownVariables(process.env);
      if (warning !== undefined) console.error(`warning: ${warning}`);
      const { serveFallback } = await import('../serve.ts');
      await serveFallback(
        { ...flags, ...(allowLive ? { allowLive: 'true' } : {}), ...(allowOpen ? { allowOpen: 'true' } : {}) },
        process.env,
      );
    });
  addRehearse(program, process.env);
  for (const [name, operand, text] of maintenanceCommands) {
    const command = program
      .command(name)
      .argument(name === 'export' ? '[file]' : '<file>', operand)
      .description(text)
      .option('--storage <url>', 'where the service stores chains and results, as for serve')
      .option('--config <file>', 'the TOML file of settings')
      .action(async (file: string | undefined, { check = false, ...flags }: { storage?: string; config?: string; check?: boolean }) => {
        const problem = name === 'export' ? exportProblem(file, check) : undefined;
        if (problem !== undefined) program.error(`error: ${problem}`);
        const { maintain } = await import('../maintenance.ts');
        await maintain(check ? 'check' : name, file ?? '', flags, process.env);
      });
    if (name === 'export') command.option(...checkFlag);
  }
  return program;
}
