import { existsSync } from 'node:fs';

import { readText } from '../../kit/text-file.ts';
import { CliError, type Terminal } from './terminal.ts';

/** The address of the server, the API key, and the source of each. */
export interface CliConfig {
  readonly serverUrl: string;
  readonly apiKey: string | undefined;
  /** The path of the user's configuration file, which may not exist. */
  readonly file: string;
  readonly sources: { readonly serverUrl: string; readonly apiKey: string };
}

const defaultServerUrl = 'http://localhost:8080/api/v1';
const fileKeys = ['server_url', 'api_key'] as const;

/** Reads the user's configuration. Flags take precedence over the environment, then the TOML file, then the defaults. */
export async function readConfig(
  flags: { serverUrl?: string | undefined; apiKey?: string | undefined },
  environment: Terminal['environment'],
): Promise<CliConfig> {
  const file = `${environment.XDG_CONFIG_HOME || `${environment.HOME ?? ''}/.config`}/service/config.toml`;
  const inFile = existsSync(file) ? await readToml(file) : {};
  const url = firstOf([
    [flags.serverUrl, '--server-url'],
    [environment.SERVICE_URL, 'SERVICE_URL'],
    [inFile.server_url, file],
    [defaultServerUrl, 'the default'],
  ]);
  const key = firstOf([
    [flags.apiKey, '--api-key'],
    [environment.SERVICE_API_KEY, 'SERVICE_API_KEY'],
    [inFile.api_key, file],
  ]);
  return {
    serverUrl: checkUrl(url.value!, url.source),
    apiKey: checkKey(key.value, key.source),
    file,
    sources: { serverUrl: url.source, apiKey: key.source },
  };
}

/** Returns the first value that is set. An empty variable counts as not set, as is common in shells. */
function firstOf(candidates: readonly (readonly [string | undefined, string])[]): { value: string | undefined; source: string } {
  const [value, source = 'nowhere'] = candidates.find(([text]) => (text ?? '') !== '') ?? [];
  return { value, source };
}

function checkUrl(text: string, source: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw new CliError(
      `The server's address ${JSON.stringify(text)} (${source}) must be an http or https URL, such as ${defaultServerUrl}.`,
    );
  }
  return text.replace(/\/+$/, '');
}

function checkKey(text: string | undefined, source: string): string | undefined {
  const key = text?.trim();
  if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) {
    throw new CliError(`The API key (${source}) must be visible ASCII characters without spaces.`);
  }
  return key;
}

async function readToml(file: string): Promise<Partial<Record<(typeof fileKeys)[number], string>>> {
  const { parse } = await import('smol-toml');
  let document: Record<string, unknown>;
  try {
    document = parse(readText(file));
  } catch (error) {
    // Only the first line of the message: the rest quotes the lines around the error, which may contain the key.
    throw new CliError(`The configuration file ${file} can't be read: ${(error as Error).message.split('\n')[0]}`);
  }
  for (const [name, value] of Object.entries(document)) {
    if (!fileKeys.includes(name as 'api_key'))
      throw new CliError(`${file} has an unknown key, ${name}; the keys are ${fileKeys.join(' and ')}.`);
    if (typeof value !== 'string') throw new CliError(`${name} in ${file} must be a string.`);
  }
  return document;
}
