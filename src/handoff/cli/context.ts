import type { ClientStep } from '../../kit/connection.ts';
import { createHandoffClient, type HandoffClient } from '../client/client.ts';
import { type CliConfig, readConfig } from './config.ts';
import { nodeTransport } from './node-transport.ts';
import type { Writer } from './output/writer.ts';
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
export interface Context extends Pick<Terminal, 'environment' | 'stdin' | 'isInteractive' | 'unknownVariables'> {
  readonly format: 'table' | 'json';
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly out: Writer;
  readonly err: Writer;
  /** The address and the key; read once. */
  readonly config: () => Promise<CliConfig>;
  client(): Promise<HandoffClient>;
  /** Writes a message, unless --quiet is set. */
  readonly say: (line: string) => void;
}

/** The warning about a secret in an argument, which the list of processes shows. */
export const onCommandLine = (what: string, instead: string): string =>
  `Other users of this machine can see ${what} on the command line; use ${instead}.`;

/** Makes the context of a command from its global options. */
export function createContext(
  options: GlobalOptions,
  { out, err, environment, stdin, isInteractive, unknownVariables }: Terminal,
): Context {
  const { quiet = false, verbose = false, format } = options;
  const say = (line: string) => {
    if (!quiet) err.line(line);
  };
  const trace = (line: string) => {
    if (verbose) err.line(line);
  };
  let read: Promise<CliConfig> | undefined;
  const config = () => {
    read ??= readConfig(options, environment);
    return read;
  };
  const onStep = (step: ClientStep) => {
    if (step.kind === 'wait') say(`${step.error.message} Trying again in ${Math.ceil(step.seconds)} s.`);
    else if (step.kind === 'request') trace(`> ${step.method} ${step.url}`);
    else trace(`< ${step.status}${step.request_id === undefined ? '' : ` request ${step.request_id}`}`);
  };
  return {
    ...(unknownVariables === undefined ? {} : { unknownVariables }),
    ...{ environment, stdin, isInteractive, format, quiet, verbose, out, err, config, say },
    async client() {
      const { serverUrl, apiKey, sources, file } = await config();
      trace(`server ${serverUrl} (${sources.serverUrl}), API key ${apiKey === undefined ? 'none' : `hidden (${sources.apiKey})`}`);
      if (sources.apiKey === '--api-key') say(onCommandLine('an API key', `SERVICE_API_KEY or api_key in ${file}`));
      return createHandoffClient({ baseUrl: serverUrl, apiKey, transport: nodeTransport, retryUnreachable: false, onStep });
    },
  };
}
