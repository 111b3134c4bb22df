import { Command, InvalidArgumentError } from 'commander';

import { exitForUsage, refuseSurplusWords } from '../kit/usage.ts';

/** The flags of `npm start --`. */
export interface StartFlags {
  host?: string;
  handoffPort?: string;
  fallbackPort?: string;
  fallbackStorage?: string;
  allowOpen?: true;
  allowLive?: true;
}

/**
 * Reads the flags of `npm start --`. `--help` prints the help and exits with 0. An unknown or invalid flag, or one that npm
 * took because it came before `--`, exits with 2 and a sentence; for an unknown flag it names the nearest known one.
 * @param environment contains the flags that npm took
 */
export function readStartFlags(args: readonly string[], environment: Readonly<Record<string, string | undefined>>): StartFlags {
  const program = new Command('npm start --')
    .description(
      'Starts the services of Baton: the handoff packet service (port 8080) and the fallback chain service (port 8000).\n' +
        'Settings are read from SERVICE_* variables as well; flags take precedence. docs/settings.md lists them.',
    )
    .option('--host <address>', 'the address that both listen on')
    .option('--handoff-port <port>', 'the port of the handoff packet service; 0 picks a free one', portOf)
    .option('--fallback-port <port>', 'the port of the fallback chain service; 0 picks a free one', portOf)
    .option('--port <port>', 'same as --handoff-port', portOf)
    .option('--fallback-storage <url>', 'the database of the chains; sqlite://./data/fallback.db by default')
    .option('--allow-open', 'let the fallback chain service listen beyond this machine although no API key is configured')
    .option('--allow-live', 'let tests of chains call the real providers')
    .exitOverride(exitForUsage)
    .action(() => undefined);
  refuseSurplusWords(program);
  for (const { long = '', flags } of program.options) {
    // npm treats `npm start --port 8400` as one of its own settings.
    if ((environment[`npm_config_${long.slice('--'.length).replaceAll('-', '_')}`] ?? '') !== '')
      program.error(`error: npm took ${long} as its own setting; put -- before it: npm start -- ${flags}`);
  }
  program.parse(args, { from: 'user' });
  const { port, ...flags } = program.opts<StartFlags & { port?: string }>();
  return port === undefined ? flags : { handoffPort: port, ...flags };
}

function portOf(text: string): string {
  if (!/^\d+$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError('A port is a whole number from 0 to 65535.');
  return text;
}
