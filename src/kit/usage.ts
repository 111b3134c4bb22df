import type { Command, CommanderError } from 'commander';

/** Makes a program name the first surplus word of a command line, which commander only counts. Its subcommands do the same. */
export function refuseSurplusWords(program: Command): Command {
  return program.allowExcessArguments().hook('preAction', (_, command) => {
    const { registeredArguments, args } = command;
    const surplus = registeredArguments.at(-1)?.variadic ? undefined : args[registeredArguments.length];
    if (surplus !== undefined) command.error(`error: unexpected argument '${surplus}'`, { code: 'commander.excessArguments' });
  });
}

/** Ends the process with 2 at a usage error, and with 0 after help. For `exitOverride`. */
export function exitForUsage({ exitCode }: CommanderError): never {
  process.exit(exitCode === 0 ? 0 : 2);
}

/** The commands of both programs that work on a database directly: name, operand `file`, and description. */
export const maintenanceCommands = [
  ['backup', 'the new file, which must not exist', 'copy the SQLite database into a new file, even while the service runs'],
  [
    'export',
    'the new file, which must not exist',
    'write everything in the database into a new file (JSON Lines), to move it to another database',
  ],
  ['import', 'the file', 'read a file of `export` into an empty database, all of it or nothing'],
] as const;

/** The flag of `export` with which it has no file. */
export const checkFlag = ['--check', 'read everything and write no file: whether an export is possible, and of how many rows'] as const;

/** What `export` is told wrongly: it writes a file, or it checks; undefined if nothing. */
export function exportProblem(file: string | undefined, check: boolean): string | undefined {
  if (check === (file === undefined)) return undefined;
  return check ? 'with --check no file is written; leave it out' : "missing required argument 'file'";
}
