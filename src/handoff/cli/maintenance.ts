import { maintenanceCommands } from '../../kit/usage.ts';
import { configFile } from './flags.ts';
import { createProgress } from './output/progress.ts';
import type { Row } from './rows.ts';
import { CliError } from './terminal.ts';

/** Makes a command that works on the database of the settings, and says what it did. Its failures are the operator's to read: 1. */
function onDatabase(operation: 'backup' | 'export' | 'import'): Row['run'] {
  return async (context, { config, tenant }, file = '') => {
    const progress = createProgress(context);
    try {
      const textOf = (value: unknown) => (value === undefined ? undefined : String(value));
      const source = { environment: context.environment, config: textOf(config), tenant: textOf(tenant) };
      // Loaded only here: other commands need no database.
      const { maintain } = await import('../maintenance.ts');
      const done = await maintain(operation, file, source, (count, total, doing) =>
        progress.show(count / total, `${doing} (${count} of ${total})`),
      );
      progress.clear();
      context.say(done);
    } catch (error) {
      progress.clear();
      throw new CliError((error as Error).message, 1, { cause: error });
    }
  };
}

/** The commands that work on the database directly. */
export const maintenance: readonly Row[] = maintenanceCommands.map(([name, operand, text]) => ({
  name,
  text: name === 'import' ? `${text}; a file of one tenant into any database that does not have it` : text,
  operands: [{ name: 'file', text: operand }],
  flags: [
    configFile,
    ...(name === 'export' ? [{ flags: '--tenant <id>', text: 'only this tenant, to move it to another deployment' }] : []),
  ],
  run: onDatabase(name),
}));
