import { Command, InvalidArgumentError } from 'commander';

/** What `npm start --` was given. */
export interface StartFlags {
  host?: string;
  handoffPort?: string;
  fallbackPort?: string;
  fallbackStorage?: string;
  allowOpen?: true;
  allowLive?: true;
}

/**
 * Reads the flags of `npm start --`. `--help` is answered and ends the program with 0; a flag that is unknown or can't be
 * used ends it with 1 and a sentence, which names the nearest known flag. So does one that npm has kept.
 * @param environment where npm leaves the flags that stood before `--`
 */
export function readStartFlags(args: readonly string[], environment: Readonly<Record<string, string | undefined>>): StartFlags {
  const program = new Command('npm start --')
    .description(
      'Starts the services of Baton: the handoff packet service (port 8080) and the fallback chain service (port 8000).\n' +
        'Settings are read from SERVICE_* variables as well; a flag beats a variable. docs/settings.md lists them.',
    )
    .option('--host <address>', 'the address that both listen on')
    .option('--handoff-port <port>', 'the port of the handoff packet service; 0 picks a free one', portOf)
    .option('--fallback-port <port>', 'the port of the fallback chain service; 0 picks a free one', portOf)
    .option('--port <port>', 'the same as --handoff-port', portOf)
    .option('--fallback-storage <url>', 'where chains are kept; sqlite://./data/fallback.db if not given')
    .option('--allow-open', 'let the fallback chain service listen beyond this machine although no API key is configured')
    .option('--allow-live', 'let tests of chains call the real providers')
    .allowExcessArguments(false);
  for (const { long = '', flags } of program.options) {
    // npm takes `npm start --port 8400` for a setting of its own.
    if ((environment[`npm_config_${long.slice('--'.length).replaceAll('-', '_')}`] ?? '') !== '')
      program.error(`error: npm keeps ${long} for itself unless -- stands before it: npm start -- ${flags}`);
  }
  program.parse(args, { from: 'user' });
  const { port, ...flags } = program.opts<StartFlags & { port?: string }>();
  return port === undefined ? flags : { handoffPort: port, ...flags };
}

function portOf(text: string): string {
  if (!/^\d+$/.test(text) || Number(text) > 65_535) throw new InvalidArgumentError('A port is a whole number from 0 to 65535.');
  return text;
}
