import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';

import { pauseFor } from '../../kit/awaitable.ts';
import { ApiError, ClientError } from '../../kit/client-errors.ts';
import { freePort } from '../../kit/free-port.ts';
import { createFallbackClient, type FallbackClient } from '../client/client.ts';
import { createFallback } from '../main.ts';
import type { Warning } from '../model/common.ts';
import type { Imported } from '../model/export.ts';
import { detectFormat, type ImportFormat, importFormats } from '../model/targets.ts';
import { type Preset, presets, type TestResult } from '../model/test.ts';
import type { Groups } from '../rules/rehearsal.ts';
import { yamlText } from '../rules/targets/export.ts';
import { redirectFile } from '../rules/targets/litellm/own-file.ts';
import { listed } from '../rules/wording.ts';
import { readFallbackSettings } from '../settings.ts';
import { type Explained, explained } from './explain.ts';
import { filledIn, type Program, RehearsalError, startProgram, wordsOf } from './program.ts';

/** The options of the command, as they are given. */
export interface RehearseOptions {
  readonly config: string;
  readonly format?: string;
  readonly group?: string;
  readonly run?: string;
  readonly gateway?: string;
  readonly model?: string;
  readonly apiKeyEnv?: string;
  /** Whether to rehearse the file itself; by default for files of LiteLLM. */
  readonly own?: boolean;
  readonly keepState?: true;
  readonly preset?: string;
  readonly prompts?: string;
  readonly deadline?: string;
  readonly port?: string;
  readonly token?: string;
}

/** A finished rehearsal. */
export interface Rehearsed {
  readonly result: TestResult;
  /** The differences, each with the findings that explain it. */
  readonly differences: readonly Explained[];
  /** What the rehearsal changed in the file, as sentences. */
  readonly notes: readonly string[];
}

/** What the rehearsal tells while it runs. */
interface Listener {
  onStep(sentence: string): void;
  onProgress(done: number, total: number): void;
}

/** How often the progress of the test is read, in milliseconds. */
const pollMs = 200;

/** The gateways that a configuration can be written for. */
type Target = 'litellm' | 'portkey';

/** The configuration of the gateway: its text, and what the service has to know of it. */
interface Configuration {
  readonly target: Target;
  readonly filename: string;
  readonly text: string;
  readonly model: string;
  readonly groups: Groups;
  readonly notes: readonly string[];
  readonly warnings: readonly Warning[];
}

/**
 * Rehearses a file: imports it into a service of its own in memory, starts the gateway with a configuration that leads to
 * the fake providers, and runs the test.
 * @throws RehearsalError for a wrong use, a file that can't be imported, and a program that does not run
 */
export async function rehearse(
  options: RehearseOptions,
  environment: NodeJS.ProcessEnv,
  listener: Listener,
  signal: AbortSignal,
): Promise<Rehearsed> {
  const { gateway, run } = options;
  if ((run === undefined) === (gateway === undefined))
    throw new RehearsalError('Give either --run, to start a gateway, or --gateway, for a running one.');
  const text = await readFile(options.config, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new RehearsalError(`${options.config} can't be read: ${error.message}`);
  });
  const format = formatOf(options, text);
  const words = run === undefined ? undefined : wordsOf(run);
  const gatewayPort = words === undefined ? undefined : await freePort();
  const url = gateway ?? `http://127.0.0.1:${gatewayPort}/v1`;
  if (!URL.canParse(url)) throw new RehearsalError(`--gateway must be a URL such as http://127.0.0.1:4000/v1, not ${url}.`);
  const groups = new Map<string, string>();
  const service = await startService(options, url, environment, groups);
  const folder = await mkdtemp(join(tmpdir(), 'rehearsal-'));
  let program: Program | undefined;
  try {
    const imported = await importFile(service.client, { text, format, group: options.group });
    const configuration = await configure(service, imported, { options, text, format, words });
    for (const [name, group] of configuration.groups) groups.set(name, group);
    const path = join(folder, configuration.filename);
    await writeFile(path, configuration.text);
    const key = `sk-rehearsal-${randomBytes(16).toString('hex')}`;
    if (words === undefined) listener.onStep(`The gateway must use the configuration ${path} (fake providers at ${service.base}).`);
    else {
      listener.onStep(`Starting ${words[0]} ...`);
      const filled = filledIn(words, { config: path, port: String(gatewayPort) });
      program = await startProgram(filled, url, programEnvironment(environment, configuration.target, key), signal);
    }
    const result = await runTest(service.client, imported.chain.id, requestOf(options, url, configuration, words && key), listener, signal);
    return { result, differences: explained(result, imported.findings, configuration.warnings), notes: configuration.notes };
  } catch (error) {
    throw told(error);
  } finally {
    await program?.stop();
    await rm(folder, { recursive: true, force: true });
    await service.stop();
  }
}

/** The error for the user: a refusal of the service is a wrong use. */
function told(error: unknown): unknown {
  if (error instanceof ClientError) return new RehearsalError(error.message);
  return error;
}

function formatOf({ config, format }: RehearseOptions, text: string): ImportFormat {
  if (format === undefined) return detectFormat(config, text);
  const known = importFormats.find((one) => one === format);
  if (known === undefined) throw new RehearsalError(`--format must be one of ${listed(importFormats)}, not ${format}.`);
  return known;
}

interface OwnService {
  readonly client: FallbackClient;
  readonly origin: string;
  /** The address of the fake providers; set when the chain is there. */
  base: string;
  stop(): Promise<void>;
}

/** Starts a service in memory on a free port of this machine, which may call the gateway. */
async function startService(
  { port = '0', token, keepState, apiKeyEnv }: RehearseOptions,
  gateway: string,
  environment: NodeJS.ProcessEnv,
  groups: Groups,
): Promise<OwnService> {
  const { hostname } = new URL(gateway);
  if (token !== undefined && !/^[0-9a-f]{32}$/.test(token))
    throw new RehearsalError('--token must be 32 hexadecimal digits in lower case.');
  const settings = readFallbackSettings({
    flags: { host: '127.0.0.1', port, storage: 'memory', allowLive: 'true' },
    environment: {
      SERVICE_LIVE_ALLOW: hostname.replace(/^\[|\]$/g, ''),
      SERVICE_LOG_LEVEL: 'silent',
      ...(apiKeyEnv === undefined ? {} : { SERVICE_LIVE_KEYS: `${apiKeyEnv}@${hostname}` }),
    },
  });
  const service = await createFallback(settings, {
    environment,
    rehearsal: { groups, ...(keepState ? { atOnce: 1 } : {}), ...(token === undefined ? {} : { token }) },
  });
  const origin = await service.start().catch(async (error: NodeJS.ErrnoException) => {
    await service.stop();
    throw new RehearsalError(error.code === 'EADDRINUSE' ? `Port ${port} is in use; choose another one with --port.` : error.message);
  });
  const client = createFallbackClient({ baseUrl: origin, headers: { prefer: 'respond-async' } });
  return { client, origin, base: '', stop: service.stop };
}

/** @throws RehearsalError if the file can't be imported, with the candidates for --group */
async function importFile(
  client: FallbackClient,
  { text, format, group }: { text: string; format: ImportFormat; group: string | undefined },
): Promise<Imported> {
  try {
    return await client.importChain({ query: { format, ...(group === undefined ? {} : { group }) }, body: { content: text } });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new RehearsalError(`The file can't be imported as ${format}: ${error.message.replace(/\bas group\b/, 'with --group')}`);
  }
}

interface ToConfigure {
  readonly options: RehearseOptions;
  readonly text: string;
  readonly format: ImportFormat;
  readonly words: readonly string[] | undefined;
}

/** Makes the configuration of the gateway: the file itself, or the export of the chain, with the addresses of the fake providers. */
async function configure(service: OwnService, { chain }: Imported, { options, text, format, words }: ToConfigure): Promise<Configuration> {
  const params = { id: chain.id };
  service.base = (await service.client.getRehearsalToken({ params })).base;
  const isOwn = options.own ?? format === 'litellm';
  const keepState = options.keepState === true;
  if (isOwn) {
    if (format !== 'litellm') throw new RehearsalError('--own is only for files of LiteLLM, which are rehearsed as they are.');
    const { file, groups, models, notes } = redirectFile(parse(text, { merge: true }), service.base, { keepState });
    const model = chain.providers.map(({ name }) => models.get(name)).find((group) => group !== undefined) ?? chain.name;
    return { target: 'litellm', filename: 'config.yaml', text: yamlText(file), model, groups, notes, warnings: [] };
  }
  const isPortkey = format === 'portkey' || (format !== 'litellm' && words?.some((word) => /portkey/.test(word)) === true);
  const target = isPortkey ? 'portkey' : 'litellm';
  const made = await service.client.exportChain({ params, query: { format: target, rehearsal: true } });
  const left = made.warnings.filter(({ code }) => code === 'left_out').map(({ detail }) => detail);
  const common = { target, groups: new Map<string, string>(), warnings: made.warnings } as const;
  if (isPortkey) return { ...common, filename: made.filename, text: made.content, model: chain.name, notes: left };
  const config = made.config as { model_list: { model_name: string }[]; router_settings: Record<string, unknown> };
  const model = config.model_list[0]!.model_name;
  if (!keepState) return { ...common, filename: 'config.yaml', text: made.content, model, notes: [...left, withoutCooldowns] };
  const { disable_cooldowns: _, ...router_settings } = config.router_settings;
  return { ...common, filename: 'config.yaml', text: yamlText({ ...config, router_settings }), model, notes: left };
}

const withoutCooldowns =
  'The export for LiteLLM switches cool-downs off (disable_cooldowns), so scenes do not disturb one another; --keep-state keeps them.';

/**
 * The environment of the gateway. LiteLLM's proxy refuses to start without a master key, and would fetch prices from the
 * network, which a rehearsal does not need.
 */
function programEnvironment(environment: NodeJS.ProcessEnv, target: Target, key: string): NodeJS.ProcessEnv {
  if (target !== 'litellm') return environment;
  return { LITELLM_LOCAL_MODEL_COST_MAP: 'True', ...environment, LITELLM_MASTER_KEY: key };
}

type TestRequest = NonNullable<Parameters<FallbackClient['runTest']>[0]['body']>;

/** The request of the test. @param key the key of a gateway that the command has started */
function requestOf(options: RehearseOptions, url: string, { target, model }: Configuration, key: string | undefined): TestRequest {
  const preset = (options.preset ?? 'coverage') as Preset;
  if (!presets.includes(preset)) throw new RehearsalError(`--preset must be one of ${listed(presets)}, not ${preset}.`);
  const headers = {
    ...(target === 'portkey' ? { 'x-portkey-config': '{config}' } : {}),
    ...(key === undefined || target === 'portkey' ? {} : { authorization: `Bearer ${key}` }),
  };
  return {
    mode: 'rehearsal',
    preset,
    seed: 1,
    ...(options.prompts === undefined ? {} : { prompt_count: wholeOf('--prompts', options.prompts) }),
    ...(options.deadline === undefined ? {} : { deadline_ms: wholeOf('--deadline', options.deadline) }),
    gateway: {
      url,
      model: options.model ?? model,
      headers,
      ...(options.apiKeyEnv === undefined ? {} : { api_key_env: options.apiKeyEnv }),
    },
  };
}

function wholeOf(flag: string, text: string): number {
  if (/^\d{1,7}$/.test(text)) return Number(text);
  throw new RehearsalError(`${flag} must be a whole number, not ${text}.`);
}

/** Runs the test and follows its progress. */
async function runTest(
  client: FallbackClient,
  id: string,
  body: TestRequest,
  listener: Listener,
  signal: AbortSignal,
): Promise<TestResult> {
  const started = await client.runTest({ params: { id }, body });
  const params = { id: started.id };
  for (;;) {
    const result = (await client.getTestResult({ params, query: { prompts: false } })) as TestResult;
    listener.onProgress(result.progress.done, result.progress.total);
    if (result.status !== 'running') return (await client.getTestResult({ params })) as TestResult;
    signal.throwIfAborted();
    await pauseFor(pollMs, signal);
  }
}
