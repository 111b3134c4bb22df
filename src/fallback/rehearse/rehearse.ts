import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { pauseFor } from '../../kit/awaitable.ts';
import { ApiError, ClientError } from '../../kit/client-errors.ts';
import { freePort } from '../../kit/free-port.ts';
import { createFallbackClient, type FallbackClient } from '../client/client.ts';
import { createFallback } from '../main.ts';
import type { Warning } from '../model/common.ts';
import type { Imported } from '../model/export.ts';
import { endpoints } from '../model/request.ts';
import {
  detectFormat,
  type GatewayFormat,
  gatewayFormats,
  gatewayOf,
  type ImportFormat,
  importFormats,
  targets,
} from '../model/targets.ts';
import { type Preset, presets, type TestResult } from '../model/test.ts';
import type { Reason } from '../rules/finding-list.ts';
import type { Apart, Groups } from '../rules/rehearsal.ts';
import { gateways } from '../rules/targets/table.ts';
import { parseFile, yamlText } from '../rules/targets/yaml.ts';
import { listed } from '../rules/wording.ts';
import { readFallbackSettings } from '../settings.ts';
import { type Explained, explained } from './explain.ts';
import { type OutageOptions, timelineFrom, wholeOf } from './outages.ts';
import { filledIn, type Program, RehearsalError, startProgram, textOf, wordsOf } from './program.ts';
import { type RealRequest, readRequests } from './requests.ts';
import { versionAt } from './version.ts';

/** The options of the command, as they are given. */
export interface RehearseOptions extends OutageOptions {
  readonly config: string;
  readonly format?: string;
  readonly group?: string;
  readonly run?: string;
  readonly gateway?: string;
  readonly model?: string;
  readonly apiKeyEnv?: string;
  /** Whether to rehearse the file itself; by default for files that can be redirected. */
  readonly own?: boolean;
  readonly keepState?: true;
  /** Whether answers are streamed; by default both. */
  readonly stream?: boolean;
  readonly both?: true;
  readonly endpoint?: string;
  readonly tools?: true;
  /** A file with real requests, one a line. */
  readonly requests?: string;
  readonly deadline?: string;
  readonly port?: string;
  readonly token?: string;
}

/** A finished rehearsal. */
export interface Rehearsed {
  readonly result: TestResult;
  /** The program that was rehearsed. */
  readonly program: RehearsedProgram;
  /** The differences, each with the findings that explain it. */
  readonly differences: readonly Explained[];
  /** What the rehearsal changed in the file, as sentences. */
  readonly notes: readonly string[];
}

/** A gateway that was rehearsed. */
export interface RehearsedProgram {
  readonly label: string;
  /** The version that it told; null if it told none. */
  readonly version: string | null;
  /** The versions whose behaviour the findings and the warnings describe. */
  readonly measured: readonly string[];
}

/** What is called while the rehearsal runs. */
interface Listener {
  onStep(sentence: string): void;
  onProgress(done: number, total: number): void;
}

/** How long the own service may take to answer: on a busy machine, an import that it could do in a second takes a minute. */
const answerSeconds = 300;

/** How often the progress of the test is read, in milliseconds. */
const pollMs = 200;

/** The configuration of the gateway: its text, and what the service has to know of it. */
interface Configuration {
  readonly gateway: GatewayFormat;
  readonly filename: string;
  readonly text: string;
  readonly model: string;
  readonly groups: Groups;
  readonly apart?: Apart | undefined;
  readonly weights?: ReadonlyMap<string, number> | undefined;
  readonly cooldownMs?: number | undefined;
  readonly notes: readonly string[];
  readonly warnings: readonly Warning[];
  /** What the changes of a file make different from it. */
  readonly reasons?: readonly Reason[];
  /** The user's own file with other addresses and keys; undefined for an export. */
  readonly own?: unknown;
}

/**
 * Rehearses a file: imports it into a service of its own in memory, starts the gateway with a configuration that leads to
 * the fake providers, and runs the test.
 * @throws RehearsalError for a wrong use, a file that can't be imported, and a program that does not run
 */
export async function rehearse(
  given: RehearseOptions,
  environment: NodeJS.ProcessEnv,
  listener: Listener,
  signal: AbortSignal,
): Promise<Rehearsed> {
  const timeline = timelineFrom(given);
  // What a gateway remembers is what outages are about.
  const options: RehearseOptions = timeline === undefined ? given : { ...given, keepState: true };
  requireOneGateway(options);
  const text = textOf(options.config);
  const requests = options.requests === undefined ? undefined : readRequests(options.requests);
  const words = options.run === undefined ? undefined : wordsOf(options.run);
  const formats = formatsOf(options, text, words);
  const { label, measured = [] } = targets[formats.gateway];
  if (formats.isAssumed) listener.onStep(`Neither --format nor the words of --run name a gateway; it is taken for ${label}.`);
  const gatewayPort = words === undefined ? undefined : await freePort();
  const url = options.gateway ?? `http://127.0.0.1:${gatewayPort}/v1`;
  const known: Known = { groups: new Map(), weights: new Map(), cooldownMs: undefined, config: undefined };
  // A running gateway keeps what its own configuration says.
  const keepsState = options.keepState === true || (words === undefined && gateways[formats.gateway].memory !== undefined);
  const service = await startService(options, url, environment, {
    ...{ groups: known.groups, weights: known.weights, ownCooldownMs: () => known.cooldownMs, config: () => known.config },
    ...(keepsState && { atOnce: 1, keepsState }),
  });
  const folder = await mkdtemp(join(tmpdir(), 'rehearsal-'));
  let program: Program | undefined;
  try {
    const { content, changes } = fileOf(options, text, formats);
    const imported = await importFile(service.client, { content, format: formats.format, group: options.group });
    const configuration = await configure(service, imported, { options, content, changes, formats });
    learn(known, configuration);
    const path = join(folder, configuration.filename);
    await writeFile(path, configuration.text);
    const key = `sk-rehearsal-${randomBytes(16).toString('hex')}`;
    if (words === undefined) listener.onStep(`The gateway must lead its calls to the fake providers at ${service.base}/{provider}.`);
    else {
      listener.onStep(`Starting ${words[0]} ...`);
      const filled = filledIn(words, { config: path, port: String(gatewayPort) });
      program = await startProgram(filled, url, gateways[configuration.gateway].environmentOf(environment, key), signal);
    }
    const request = requestOf(options, url, configuration, { key: words && key, requests, timeline });
    const told = words === undefined ? environment[options.apiKeyEnv ?? ''] : key;
    const version = await versionAt(url, gateways[configuration.gateway], told);
    const result = await runTest(service.client, imported.chain.id, request, listener, signal);
    return {
      result,
      program: { label, version, measured },
      differences: differencesOf(result, imported, configuration),
      // The notes describe the configuration that we made. They hold if we started a program with it, or sent it with each request.
      notes: words === undefined && gatewayOf(configuration.gateway).configHeader === null ? [] : configuration.notes,
    };
  } catch (error) {
    throw forUser(error);
  } finally {
    await program?.stop();
    await rm(folder, { recursive: true, force: true });
    await service.stop();
  }
}

/** What the service has to know of a configuration, which is made when the service runs. */
interface Known {
  readonly groups: Map<string, string>;
  readonly weights: Map<string, number>;
  cooldownMs: number | undefined;
  config: unknown;
}

function learn(known: Known, { groups, weights = new Map(), cooldownMs, own }: Configuration): void {
  for (const [name, group] of groups) known.groups.set(name, group);
  for (const [name, weight] of weights) known.weights.set(name, weight);
  Object.assign(known, { cooldownMs, config: own });
}

/** @throws RehearsalError unless either a program or the address of a running gateway is given */
function requireOneGateway({ gateway, run }: RehearseOptions): void {
  if (gateway !== undefined && !URL.canParse(gateway))
    throw new RehearsalError(`--gateway must be a URL such as http://127.0.0.1:4000/v1, not ${gateway}.`);
  if ((run === undefined) === (gateway === undefined))
    throw new RehearsalError('Give either --run, to start a gateway, or --gateway, for a running one.');
}

/** What differs, with what explains it: of a file, the findings of its import; of an export, its warnings, and what the gateway does with streams. */
function differencesOf(result: TestResult, { findings }: Imported, { gateway, reasons = [], warnings, own, apart, groups }: Configuration) {
  const known = own === undefined ? (gateways[gateway].ofStreams?.(result.chain) ?? []) : findings;
  return explained(result, [...known, ...reasons], warnings, { apart, groups });
}

/** The error for the user: a refusal of the service is a wrong use. */
function forUser(error: unknown): unknown {
  if (error instanceof ClientError) return new RehearsalError(error.message);
  return error;
}

/** The formats of a rehearsal. */
interface Formats {
  /** That of the file. */
  readonly format: ImportFormat;
  readonly gateway: GatewayFormat;
  /** Whether nothing names the gateway. */
  readonly isAssumed: boolean;
}

/** The gateway whose file it is, else the gateway that `--format` names, else the gateway that the command of `--run` names. */
function formatsOf({ config, format }: RehearseOptions, text: string, words: readonly string[] = []): Formats {
  const known = importFormats.find((one) => one === format);
  if (format !== undefined && known === undefined)
    throw new RehearsalError(`--format must be one of ${listed(importFormats)}, not ${format}.`);
  const isGateway = (one: ImportFormat | undefined): one is GatewayFormat => gatewayFormats.some((gateway) => gateway === one);
  const detected = detectFormat(config, text);
  const isChain = isGateway(known) && hasProviders(text, detected);
  const fileFormat = isChain ? detected : (known ?? detected);
  const named = isGateway(fileFormat)
    ? fileFormat
    : isGateway(known)
      ? known
      : gatewayFormats.findLast((one) => words.some((word) => word.includes(one)));
  const [usual] = gatewayFormats as [GatewayFormat];
  return { format: fileFormat, gateway: named ?? usual, isAssumed: named === undefined };
}

/** Whether a file is a chain. */
function hasProviders(text: string, format: ImportFormat): boolean {
  try {
    const file = parseFile(text, format);
    return typeof file === 'object' && file !== null && 'providers' in file;
  } catch {
    // The import says what is wrong with the file.
    return false;
  }
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
  { port = '0', token, apiKeyEnv }: RehearseOptions,
  gateway: string,
  environment: NodeJS.ProcessEnv,
  rehearsed: NonNullable<Parameters<typeof createFallback>[1]>['rehearsal'],
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
    rehearsal: { ...rehearsed, ...(token === undefined ? {} : { token }) },
  });
  const origin = await service.start().catch(async (error: NodeJS.ErrnoException) => {
    await service.stop();
    throw new RehearsalError(error.code === 'EADDRINUSE' ? `Port ${port} is in use; choose another one with --port.` : error.message);
  });
  const client = createFallbackClient({ baseUrl: origin, headers: { prefer: 'respond-async' }, timeoutSeconds: answerSeconds });
  return { client, origin, base: '', stop: service.stop };
}

/** @throws RehearsalError if the file can't be imported, with the candidates for --group */
async function importFile(
  client: FallbackClient,
  { content, format, group }: { content: unknown; format: ImportFormat; group: string | undefined },
): Promise<Imported> {
  try {
    return await client.importChain({ query: { format, ...(group === undefined ? {} : { group }) }, body: { content } });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    throw new RehearsalError(`The file can't be imported as ${format}: ${error.message.replace(/\bas group\b/, 'with --group')}`);
  }
}

/** The timeout of models that have none in their file, in milliseconds. */
const ownTimeoutMs = 10_000;

/** A file as it is imported and rehearsed. */
interface OwnFile {
  readonly content: unknown;
  /** What is changed in it, as sentences. */
  readonly changes: readonly string[];
}

/**
 * The file, which a rehearsal of it gives to the gateway without its memory, and with timeouts. A running gateway has its own
 * configuration.
 */
function fileOf({ own, keepState, gateway: running }: RehearseOptions, text: string, { format, gateway }: Formats): OwnFile {
  const { redirectFile, memory, withTimeouts } = gateways[gateway];
  const isOwn = own ?? (format === gateway && redirectFile !== undefined);
  const isGiven = running === undefined || gatewayOf(gateway).configHeader !== null;
  const given: OwnFile = { content: text, changes: [] };
  if (!isOwn || !isGiven) return given;
  try {
    const file = parseFile(text, format);
    const limited = withTimeouts?.(file, ownTimeoutMs) ?? null;
    const note = `Where the file has no timeout, the rehearsed gateway and the chain have one of ${ownTimeoutMs / 1000} s; otherwise ${targets[gateway].label} waits longer than a rehearsal can.`;
    const changes = limited === null ? [] : [note];
    if (memory !== undefined && !keepState) return { content: memory.without(limited ?? file), changes };
    return limited === null ? given : { content: limited, changes };
  } catch {
    // The import says what is wrong with the file.
    return given;
  }
}

interface ToConfigure extends OwnFile {
  readonly options: RehearseOptions;
  readonly formats: Formats;
}

/** Makes the configuration of the gateway: the file itself, or the export of the chain, with the addresses of the fake providers. */
async function configure(
  service: OwnService,
  { chain }: Imported,
  { options, content, changes, formats }: ToConfigure,
): Promise<Configuration> {
  const params = { id: chain.id };
  service.base = (await service.client.getRehearsalToken({ params })).base;
  const { format, gateway } = formats;
  const { modelOf, memory, redirectFile } = gateways[gateway];
  const keepState = options.keepState === true;
  if (options.own ?? (format === gateway && redirectFile !== undefined)) {
    if (format !== gateway || redirectFile === undefined)
      throw new RehearsalError(`--own is only for files of ${listed(redirectable)}, which are rehearsed as they are.`);
    const names = chain.providers.map(({ name }) => name);
    const {
      file,
      groups,
      apart,
      weights,
      cooldownMs,
      models,
      notes,
      reasons = [],
    } = redirectFile(typeof content === 'string' ? parseFile(content, format) : content, service.base, {
      keepState,
      providers: names,
      group: options.group,
    });
    const model = options.group ?? names.map((name) => models.get(name)).find((group) => group !== undefined) ?? chain.name;
    const { ending, contentType } = targets[gateway];
    const written = contentType === 'application/yaml' ? yamlText(file) : `${JSON.stringify(file, null, 2)}\n`;
    return {
      gateway,
      filename: `config.${ending}`,
      text: written,
      model,
      groups,
      apart,
      weights,
      cooldownMs,
      notes: [...notes, ...changes],
      reasons,
      warnings: [],
      own: file,
    };
  }
  const made = await service.client.exportChain({ params, query: { format: gateway, rehearsal: true, keep_state: keepState } });
  const left = made.warnings.filter(({ code }) => code === 'left_out').map(({ detail }) => detail);
  const notes = memory === undefined || keepState ? left : [...left, memory.note('--keep-state')];
  const { filename, warnings } = made;
  return { gateway, filename, text: made.content, model: modelOf(chain), groups: new Map(), warnings, notes };
}

/** The labels of the gateways whose own files can be rehearsed. */
const redirectable = gatewayFormats.filter((format) => gateways[format].redirectFile !== undefined).map((format) => targets[format].label);

type TestRequest = NonNullable<Parameters<FallbackClient['runTest']>[0]['body']>;

/** What a test needs besides the options. */
interface ForTest {
  /** The key of a gateway that the command has started. */
  readonly key: string | undefined;
  readonly requests: readonly RealRequest[] | undefined;
  readonly timeline: TestRequest['timeline'];
}

/** The shape of the requests. @throws RehearsalError for options that exclude one another */
function shapeOf(
  { stream, both, endpoint, tools }: RehearseOptions,
  { requests, timeline }: Omit<ForTest, 'key'>,
): NonNullable<TestRequest['request']> {
  if (both && stream !== undefined) throw new RehearsalError(`Give either --both or ${stream ? '--stream' : '--no-stream'}.`);
  if (requests !== undefined && tools)
    throw new RehearsalError('--tools cannot be given together with --requests, which has tools of its own.');
  const known = endpoints.find((one) => one === endpoint);
  if (endpoint !== undefined && known === undefined)
    throw new RehearsalError(`--endpoint must be one of ${listed(endpoints)}, not ${endpoint}.`);
  return {
    stream: stream ?? (timeline === undefined || both ? 'both' : false),
    ...(known && { endpoint: known }),
    ...(tools && { tools }),
    ...(requests && { requests: [...requests] }),
  };
}

/** The request of the test. */
function requestOf(options: RehearseOptions, url: string, { gateway, model }: Configuration, parts: ForTest): TestRequest {
  const { key, timeline } = parts;
  const preset = (options.preset ?? 'coverage') as Preset;
  if (!presets.includes(preset)) throw new RehearsalError(`--preset must be one of ${listed(presets)}, not ${preset}.`);
  const { configHeader } = gatewayOf(gateway);
  const authorization = key === undefined ? {} : { authorization: `Bearer ${key}` };
  return {
    mode: 'rehearsal',
    ...(timeline ? { timeline } : { preset }),
    seed: 1,
    request: shapeOf(options, parts),
    ...(options.prompts === undefined ? {} : { prompt_count: wholeOf('--prompts', options.prompts) }),
    ...(options.deadline === undefined ? {} : { deadline_ms: wholeOf('--deadline', options.deadline) }),
    gateway: {
      url,
      model: options.model ?? model,
      export_format: gateway,
      headers: configHeader === null ? authorization : { [configHeader]: '{config}' },
      ...(options.apiKeyEnv === undefined ? {} : { api_key_env: options.apiKeyEnv }),
    },
  };
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
