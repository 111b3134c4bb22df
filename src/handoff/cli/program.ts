import { Command, CommanderError, Option } from 'commander';

import packageJson from '../../../package.json' with { type: 'json' };
import { refuseSurplusWords } from '../../kit/usage.ts';
import { commands, groups } from './commands.ts';
import { completion } from './completion.ts';
import { createContext, type GlobalOptions } from './context.ts';
import { explain } from './errors.ts';
import { addRow } from './rows.ts';
import type { Terminal } from './terminal.ts';

/** Makes the command tree from the table of commands. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command('service-cli')
    .description('Hand work from agent to agent: the client of the handoff packet service, and the service itself.')
    .version(packageJson.version, '--version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .option('--server-url <url>', 'the base URL of the API (SERVICE_URL; default http://localhost:8080/api/v1)')
    .option('--api-key <key>', 'the API key (SERVICE_API_KEY)')
    .addOption(new Option('--format <format>', 'the output format').choices(['table', 'json']).default('table'))
    .option('-v, --verbose', 'log requests and answers to standard error')
    .option('-q, --quiet', 'print only ids, and no messages')
    .configureHelp({ showGlobalOptions: true })
    .exitOverride()
    .configureOutput({
      writeOut: (text) => terminal.out.block(text),
      writeErr: (text) => terminal.err.block(text.replace(/^error: /, 'service-cli: ')),
    });
  refuseSurplusWords(program);
  const parents: Record<string, Command> = {};
  for (const row of [...commands, ...completion(program)]) {
    const words = row.name.split(' ');
    const last = words.pop()!;
    parents[row.name] = addRow(parentOf(words), last, row, terminal);
    if (row.short) addRow(program.commandsGroup(`Shortcuts of ${words[0]}:`), last, row, terminal);
  }
  return program;

  /** The command with this name, or the group of commands. */
  function parentOf(words: readonly string[]): Command {
    const name = words.join(' ');
    if (name === '') return program.commandsGroup('Commands:');
    parents[name] ??= parentOf(words.slice(0, -1)).command(words.at(-1)!).description(groups[name]!);
    return parents[name];
  }
}

/** Runs a command line and returns its exit code: 0 done, 1 the server refused the request, 2 wrong usage, 3 the server is unreachable. */
export async function runCli(terminal: Terminal): Promise<number> {
  const program = createProgram(terminal);
  try {
    await program.parseAsync(terminal.args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const { message, exitCode } = await explain(error, createContext(program.opts<GlobalOptions>(), terminal));
    for (const line of message.split('\n')) terminal.err.line(`service-cli: ${line}`);
    return exitCode;
  }
}
