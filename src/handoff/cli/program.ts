import { Command, CommanderError, Option } from 'commander';

import packageJson from '../../../package.json' with { type: 'json' };
import { act, createContext, type GlobalOptions } from './context.ts';
import type { Terminal } from './terminal.ts';

/** A part of the tree: the commands at the top that it makes, and how. */
interface Part {
  readonly names: readonly string[];
  /** @param name the one of the names that is wanted; undefined: all of them */
  add(program: Command, terminal: Terminal, name: string | undefined): Promise<void>;
}

/** The parts in the order in which help shows them. A command loads its own part alone, since every module that is loaded costs time. */
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

/** The command line of the handoff service, as a tree of commands: all of it, or what a command at the top needs. */
export async function createProgram(terminal: Terminal, name?: string): Promise<Command> {
  const program = new Command('service-cli')
    .description('Hand work from agent to agent: the client of the handoff packet service, and the service itself.')
    .version(packageJson.version, '--version', 'show the version')
    .helpOption('-h, --help', 'show help')
    .option('--server-url <url>', 'where the API is (SERVICE_URL; default http://localhost:8080/api/v1)')
    .option('--api-key <key>', 'the API key (SERVICE_API_KEY)')
    .addOption(new Option('--format <format>', 'how the answer is shown').choices(['table', 'json']).default('table'))
    .option('-v, --verbose', 'tell on standard error what is sent and answered')
    .option('-q, --quiet', 'no messages; of what a table would show, only the ids')
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

/** Carries out what the arguments say; gives the exit code: 0 done, 1 the server refused, 2 wrong usage, 3 unreachable. */
export async function runCli(terminal: Terminal): Promise<number> {
  // Where an option with a value stands before the command this is the value, and the whole tree is made.
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
