import type { Context } from './context.ts';
import { configFile } from './flags.ts';
import type { Options, Row } from './rows.ts';
import { CliError } from './terminal.ts';

type Maintenance = typeof import('../maintenance.ts');

/** Runs an operation on the database that the settings name, and says what it did. Any failure is the operator's to read: 1. */
function onDatabase(operate: (maintenance: Maintenance, context: Context, source: Source, file: string) => Promise<string>): Row['run'] {
  return async (context, { config }: Options, file = '') => {
    try {
      const source = { environment: context.environment, config: config === undefined ? undefined : String(config) };
      // Loaded only here: other commands need no database.
      context.say(await operate(await import('../maintenance.ts'), context, source, file));
    } catch (error) {
      throw new CliError((error as Error).message, 1, { cause: error });
    }
  };
}

type Source = Parameters<Maintenance['backUpData']>[0];

const newFile = [{ name: 'file', text: 'the new file, which must not exist' }];

/** The commands that work on the database directly. */
export const maintenance: readonly Row[] = [
  {
    name: 'backup',
    text: 'copy the SQLite database into a new file, even while the service runs',
    operands: newFile,
    flags: [configFile],
    run: onDatabase(async ({ backUpData }, _, source, file) => `Copied the database to ${file}: ${await backUpData(source, file)} bytes.`),
  },
];
