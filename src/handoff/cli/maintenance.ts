import { checkFlag, exportProblem, maintenanceCommands } from '../../kit/usage.ts';
import type { Growth } from '../maintenance.ts';
import type { Context } from './context.ts';
import { configFile } from './flags.ts';
import { createProgress } from './output/progress.ts';
import { type Column, tableLines } from './output/table.ts';
import type { Options, Row } from './rows.ts';
import { CliError } from './terminal.ts';

/** Makes a command that works on the database of the settings, and says what it did. A failure exits with 1 and its sentence. */
function onDatabase(operation: 'backup' | 'export' | 'import'): Row['run'] {
  return async (context, { config, tenant, check = false }, file) => {
    const problem = operation === 'export' ? exportProblem(file, check === true) : undefined;
    if (problem !== undefined) throw new CliError(problem, 2);
    const progress = createProgress(context);
    try {
      const textOf = (value: unknown) => (value === undefined ? undefined : String(value));
      const source = { environment: context.environment, config: textOf(config), tenant: textOf(tenant) };
      // Loaded only here: other commands need no database.
      const { maintain } = await import('../maintenance.ts');
      const done = await maintain(check === true ? 'check' : operation, file ?? '', source, (count, total, doing) =>
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

/** `storage`: what the database holds, by table, and what it will hold in a year. */
async function showStorage({ environment, format, out }: Context, { config }: Options): Promise<void> {
  const { storage } = await import('../maintenance.ts');
  const growth = await storage({ environment, config: config === undefined ? undefined : String(config) }).catch((error: Error) => {
    throw new CliError(error.message, 1, { cause: error });
  });
  if (format === 'json') return out.line(JSON.stringify(growth, null, 2));
  for (const line of tableLines(storageColumns, growth.tables, out.columns)) out.line(line);
  const { bytes, packets, packets_per_day, bytes_per_packet, bytes_in_a_year } = growth;
  out.line('');
  out.line(`${megabytes(bytes)} MB, ${packets} packets; ${packets_per_day} packets a day in the last week.`);
  out.line(
    bytes_in_a_year === null
      ? 'There are too few packets for a forecast, which needs a thousand.'
      : `In a year: ${megabytes(bytes_in_a_year)} MB, at ${bytes_per_packet} bytes kept for each packet, if none is deleted permanently.`,
  );
}

const megabytes = (bytes: number): string => (bytes / 1_000_000).toFixed(1);

const storageColumns: readonly Column<Growth['tables'][number]>[] = [
  { title: 'Table', value: ({ table }) => table },
  { title: 'Rows', value: ({ rows }) => rows },
  { title: 'MB', value: ({ bytes }) => megabytes(bytes) },
  { title: 'Bytes a row', value: ({ rows, bytes }) => (rows === 0 ? '' : Math.round(bytes / rows)) },
  { title: 'Kept', value: ({ is_kept }) => (is_kept ? 'until deleted' : 'for a time') },
];

/** The commands that work on the database directly. */
export const maintenance: readonly Row[] = [
  {
    name: 'storage',
    text: 'show the rows and bytes of each table, and how large the database will be in a year',
    operands: [],
    flags: [configFile],
    run: showStorage,
  },
  ...maintenanceCommands.map(([name, operand, text]) => ({
    name,
    text: name === 'import' ? `${text}; a file of one tenant into any database that does not have it` : text,
    operands: [{ name: 'file', text: operand, ...(name === 'export' ? { optional: true as const } : {}) }],
    flags: [
      configFile,
      ...(name === 'export'
        ? [
            { flags: '--tenant <id>', text: 'only this tenant, to move it to another deployment' },
            { flags: checkFlag[0], text: checkFlag[1] },
          ]
        : []),
    ],
    run: onDatabase(name),
  })),
];
