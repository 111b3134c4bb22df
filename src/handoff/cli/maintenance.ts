import { configFile } from './flags.ts';
import { createProgress, type Progress } from './output/progress.ts';
import type { Row } from './rows.ts';
import { CliError } from './terminal.ts';

type Maintenance = typeof import('../maintenance.ts');
type Source = Parameters<Maintenance['backUpData']>[0];
type OnProgress = Parameters<Maintenance['exportData']>[2];

/** Makes a command that works on the database of the settings, and says what it did. Its failures are the operator's to read: 1. */
function onDatabase(
  operate: (file: string, source: Source, onProgress: OnProgress, maintenance: Maintenance) => Promise<string>,
): Row['run'] {
  return async (context, { config }, file = '') => {
    const progress = createProgress(context);
    try {
      const source = { environment: context.environment, config: config === undefined ? undefined : String(config) };
      // Loaded only here: other commands need no database.
      const done = await operate(file, source, shownOn(progress), await import('../maintenance.ts'));
      progress.clear();
      context.say(done);
    } catch (error) {
      progress.clear();
      throw new CliError((error as Error).message, 1, { cause: error });
    }
  };
}

const shownOn =
  (progress: Progress): OnProgress =>
  (done, total, doing) =>
    progress.show(done / total, `${doing} (${done} of ${total})`);

const newFile = [{ name: 'file', text: 'the new file, which must not exist' }];

/** The commands that work on the database directly. */
export const maintenance: readonly Row[] = [
  {
    name: 'backup',
    text: 'copy the SQLite database into a new file, even while the service runs',
    operands: newFile,
    flags: [configFile],
    run: onDatabase(async (file, source, _, { backUpData }) => `Copied the database to ${file}: ${await backUpData(source, file)} bytes.`),
  },
  {
    name: 'export',
    text: 'write everything in the database into a new file (JSON Lines), to move it to another database',
    operands: newFile,
    flags: [configFile],
    run: onDatabase(async (file, source, onProgress, { exportData }) => {
      const { rows, bytes } = await exportData(source, file, onProgress);
      return `Exported ${rows} rows to ${file}: ${bytes} bytes.`;
    }),
  },
  {
    name: 'import',
    text: 'read a file of `export` into an empty database, all of it or nothing',
    operands: [{ name: 'file', text: 'the file' }],
    flags: [configFile],
    run: onDatabase(async (file, source, onProgress, { importData }) => {
      const { rows } = await importData(source, file, onProgress);
      return `Imported ${rows} rows from ${file}.`;
    }),
  },
];
