import type { Command } from 'commander';

import type { ClientNote } from '../../kit/connection.ts';
import type { HandoffClient } from '../client/client.ts';
import type { CliConfig } from './config.ts';
import type { Terminal } from './terminal.ts';

/** The options that every command takes. */
export interface GlobalOptions {
  readonly serverUrl?: string;
  readonly apiKey?: string;
  readonly format: 'table' | 'json';
  readonly verbose?: true;
  readonly quiet?: true;
}

/** The context of a command. Answers go to standard output, everything else to standard error. */
export interface Context {
  readonly terminal: Terminal;
  readonly format: 'table' | 'json';
  readonly quiet: boolean;
  config(): Promise<CliConfig>;
  /** Loads the client, which help and completions don't need. */
  client(): Promise<HandoffClient>;
  /** Writes a line of the answer. */
  print(line: string): void;
  /** Writes a message, unless --quiet is set. */
  say(line: string): void;
}

/** Makes the context of a command from its global options. */
export function createContext(options: GlobalOptions, terminal: Terminal): Context {
  const quiet = options.quiet ?? false;
  const say = (line: string) => void (quiet || terminal.stderr.write(`${line}\n`));
  const trace = options.verbose ? (line: string) => void terminal.stderr.write(`${line}\n`) : () => undefined;
  let read: Promise<CliConfig> | undefined;
  const config = () => {
    read ??= import('./config.ts').then(({ readConfig }) => readConfig(options, terminal));
    return read;
  };
  return {
    terminal,
    format: options.format,
    quiet,
    config,
    async client() {
      const { serverUrl, apiKey, sources } = await config();
      trace(`server ${serverUrl} (${sources.serverUrl}), API key ${apiKey === undefined ? 'none' : `hidden (${sources.apiKey})`}`);
      const [{ createHandoffClient }, { nodeTransport }] = await Promise.all([
        import('../client/client.ts'),
        import('../../kit/node-transport.ts'),
      ]);
      const onNote = (note: ClientNote) => {
        if (note.kind === 'wait') say(`${note.error.message} Trying again in ${Math.ceil(note.seconds)} s.`);
        else trace(lineOf(note));
      };
      return createHandoffClient({ baseUrl: serverUrl, apiKey, transport: nodeTransport, retryUnreachable: false, onNote });
    },
    print: (line) => void terminal.stdout.write(`${line}\n`),
    say,
  };
}

function lineOf(note: Exclude<ClientNote, { kind: 'wait' }>): string {
  if (note.kind === 'request') return `> ${note.method} ${note.url}`;
  return `< ${note.status}${note.request_id === undefined ? '' : ` request ${note.request_id}`}`;
}

/** Sets the action of a command: `run` gets its options, including the global ones, and its arguments. */
export function act<Options>(
  command: Command,
  terminal: Terminal,
  run: (context: Context, options: Options & GlobalOptions, ...args: string[]) => Promise<void>,
): Command {
  return command.action(async (...parts: unknown[]) => {
    const options = (parts.at(-1) as Command).optsWithGlobals<Options & GlobalOptions>();
    const args = parts.slice(0, -2).filter((part) => part !== undefined) as string[];
    await run(createContext(options, terminal), options, ...args);
  });
}
