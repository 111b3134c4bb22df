import { Command, CommanderError, Option } from 'commander';

import packageJson from '../../../package.json' with { type: 'json' };
import { act, createContext, type GlobalOptions } from './context.ts';
import type { Terminal } from './terminal.ts';

/** A part of the command tree: the top-level commands that a module adds. */
interface Part {
  readonly names: readonly string[];
  /** @param name the command to add; undefined: all of `names` */
  add(program: Command, terminal: Terminal, name: string | undefined): Promise<void>;
}

/** The parts in the order in which help shows them. Each command loads only its own part, to start fast. */
const parts: readonly Part[] = [
  {
    names: ['packets', 'list', 'create', 'claim', 'get', 'search'],
    add: async (program, terminal, name) => (await import('./packets.ts')).addPacketCommands(program, terminal, name),
  },
  { names: ['history', 'audit'], add: async (program, terminal) => (await import('./trail.ts')).addTrailCommands(program, terminal) },
  { names: ['respond'], add: async (program, terminal) => (await import('./respond.ts')).addRespondCommand(program, terminal) },
  { names: ['agents'], add: async (program, terminal) => (await import('./agents.ts')).addAgentCommand(program, terminal) },
  { names: ['hooks'], add: async (program, terminal) => (await import('./hooks.ts')).addHookCommands(program, terminal) },
  { names: ['keys'], add: async (program, terminal) => (await import('./keys.ts')).addKeyCommands(program, terminal) },
  { names: ['tenants'], add: async (program, terminal) => (await import('./tenants.ts')).addTenantCommands(program, terminal) },
  { names: ['serve', 'admin-key'], add: async (program, terminal) => (await import('./serve.ts')).addServiceCommands(program, terminal) },
  { names: ['open'], add: async (program, terminal) => addOpenCommand(program, terminal) },
];

function addOpenCommand(program: Command, terminal: Terminal): void {
  const open = program.command('open').description("print the address of the service's interactive documentation");
  act(open, terminal, async ({ config, print }) => print(`${(await config()).serverUrl.replace(/\/api\/v1$/, '')}/docs`));
}

/** Makes the command tree: the whole tree, or only the part with one top-level command. */
export async function createProgram(terminal: Terminal, name?: string): Promise<Command> {
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
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text.replace(/^error: /, 'service-cli: ')),
    });
  const wanted = parts.filter(({ names }) => name !== undefined && names.includes(name));
  if (wanted.length > 0) {
    for (const { add } of wanted) await add(program, terminal, name);
    return program;
  }
  for (const { add } of parts) {
    await add(program, terminal, undefined);
    program.commandsGroup('Commands:');
  }
  const { addCompletionCommand } = await import('./completion.ts');
  addCompletionCommand(program, terminal);
  return program;
}

/** Runs a command line and returns its exit code: 0 done, 1 the server refused, 2 wrong usage, 3 the server is unreachable. */
export async function runCli(terminal: Terminal): Promise<number> {
  // If an option with a value precedes the command, this is that value, and the whole tree is made.
  const program = await createProgram(
    terminal,
    terminal.args.find((word) => !word.startsWith('-')),
  );
  try {
    await program.parseAsync(terminal.args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const { explain } = await import('./errors.ts');
    const { message, exitCode } = await explain(error, createContext(program.opts<GlobalOptions>(), terminal).config);
    for (const line of message.split('\n')) terminal.stderr.write(`service-cli: ${line}\n`);
    return exitCode;
  }
}
