import { Command, CommanderError, Option } from 'commander';

import packageJson from '../../../package.json' with { type: 'json' };
import { addAgentCommand } from './agents.ts';
import { addCompletionCommand } from './completion.ts';
import { act, createContext, type GlobalOptions } from './context.ts';
import { explain } from './errors.ts';
import { addHookCommands } from './hooks.ts';
import { addKeyCommands } from './keys.ts';
import { addPacketCommands } from './packets.ts';
import { addRespondCommand } from './respond.ts';
import { addServiceCommands } from './serve.ts';
import { addTenantCommands } from './tenants.ts';
import type { Terminal } from './terminal.ts';
import { addTrailCommands } from './trail.ts';

/** The command line of the handoff service, as a tree of commands. */
export function createProgram(terminal: Terminal): Command {
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
  addPacketCommands(program, terminal);
  program.commandsGroup('Commands:');
  addTrailCommands(program, terminal);
  addRespondCommand(program, terminal);
  addAgentCommand(program, terminal);
  addHookCommands(program, terminal);
  addKeyCommands(program, terminal);
  addTenantCommands(program, terminal);
  addServiceCommands(program, terminal);
  const open = program.command('open').description("print the address of the service's interactive documentation");
  act(open, terminal, async ({ config, print }) => print(`${(await config()).serverUrl.replace(/\/api\/v1$/, '')}/docs`));
  addCompletionCommand(program, terminal);
  return program;
}

/** Carries out what the arguments say; gives the exit code: 0 done, 1 the server refused, 2 wrong usage, 3 unreachable. */
export async function runCli(terminal: Terminal): Promise<number> {
  const program = createProgram(terminal);
  try {
    await program.parseAsync(terminal.args, { from: 'user' });
    return 0;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    const { message, exitCode } = await explain(error, createContext(program.opts<GlobalOptions>(), terminal).config);
    for (const line of message.split('\n')) terminal.stderr.write(`service-cli: ${line}\n`);
    return exitCode;
  }
}
