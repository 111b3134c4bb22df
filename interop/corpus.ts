import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parse } from 'yaml';

import type { ChainDefinition, ChainRequest, Provider } from '../src/fallback/model/chain.ts';
import type { Warning } from '../src/fallback/model/common.ts';
import { concerns, type Finding } from '../src/fallback/model/finding.ts';
import type { ExportFormat } from '../src/fallback/model/targets.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { createEngine } from '../src/fallback/rules/engine.ts';
import { reasonsOf } from '../src/fallback/rules/finding-list.ts';
import { modelName } from '../src/fallback/rules/kinds.ts';
import { type Apart, agreesAsDrawn } from '../src/fallback/rules/rehearsal.ts';
import { importChain } from '../src/fallback/rules/targets/import.ts';
import { asRequested } from '../src/fallback/rules/targets/portkey/names.ts';
import { redirectFile } from '../src/fallback/rules/targets/portkey/own-file.ts';
import { exported } from './chains.ts';
import { completion, type WayName, ways } from './fakes.ts';

/** A file as people have it, and what became of it: the chain, its export, and all that import and export say of differences. */
interface CorpusFile {
  name: string;
  text: string;
  chain: ChainDefinition;
  exported: string;
  findings: readonly Finding[];
  warnings: readonly Warning[];
  /** The providers of which the program calls one for each prompt. */
  apart?: Apart | undefined;
}

/** The files of a program, imported and exported again. */
export function corpusOf(format: ExportFormat & ('litellm' | 'portkey')): CorpusFile[] {
  const folder = new URL(`corpus/${format}/`, import.meta.url);
  return readdirSync(folder).map((file) => {
    const text = readFileSync(new URL(file, folder), 'utf8');
    assert.match(text, /^(#|\/\/) Source: /, `${file} names its source`);
    const value: unknown = format === 'litellm' ? parse(text, { merge: true }) : JSON.parse(withoutComments(text));
    const { request, findings } = importChain({ format, value });
    const chain = define(request as ChainRequest);
    const { content, warnings } = exported(chain, format);
    const apart = format === 'portkey' ? redirectFile(value, 'http://127.0.0.1', { keepState: false }).apart : undefined;
    return { name: file.replace(/\.\w+$/, ''), text, chain, exported: content, findings, warnings, apart };
  });
}

/** The text of a JSON file without its comments at the beginning. */
export const withoutComments = (text: string) => text.replace(/^\/\/.*\n/gm, '');

/** A failure of the provider that is called first, or of all of them. */
export interface Scene {
  way: WayName | null;
  everywhere: boolean;
}

/** One failure for each condition that a program can see, none, and an outage of all. */
export const scenes: readonly Scene[] = [
  { way: null, everywhere: false },
  ...(
    [
      ...['rate_limit', 'quota', 'server_error', 'unavailable', 'gateway_timeout', 'unauthorized', 'forbidden'],
      ...['bad_request', 'not_found', 'too_long', 'filtered'],
    ] as WayName[]
  ).map((way): Scene => ({ way, everywhere: false })),
  { way: 'server_error', everywhere: true },
];

/** The name of a scene in the messages of tests. */
const nameOf = ({ way, everywhere }: Scene) => (way === null ? 'no failure' : `${way}${everywhere ? ' everywhere' : ''}`);

/** The models that were called, in order, each with its host and, if they share it, its key. */
export type Calls = readonly string[];

/** A sentence for each difference between the calls of the file and of its export that no finding and no warning explains. */
export function unexplained(file: CorpusFile, runs: readonly { scene: Scene; before: Calls; after: Calls }[]): string[] {
  return runs.flatMap(({ scene, before, after }) =>
    String(before) === String(after) || isExplained(file, scene, before, after)
      ? []
      : [`${nameOf(scene)}: ${before.join(', ')} became ${after.join(', ')}`],
  );
}

/**
 * Whether a finding or a warning is about the failure after which the calls part: it names that provider and that condition.
 * Without a failure, one that the called model is drawn from several explains another call. That it is drawn and the others are not
 * called explains what the chain does without them, as in a rehearsal.
 */
function isExplained(file: CorpusFile, scene: Scene, before: Calls, after: Calls): boolean {
  const { chain, warnings } = file;
  const { way } = scene;
  const asDrawn = isAsDrawn(file, scene, before);
  const findings = file.findings.filter(({ kind }) => kind !== 'one_target' || asDrawn);
  const parted = before.findIndex((call, index) => call !== after[index]);
  const last = Math.max((parted === -1 ? before.length : parted) - 1, 0);
  const names = chain.providers.map(({ name }) => name);
  const isCalled = (call: string | undefined, provider: string) =>
    chain.providers.some((one) => one.name === provider && call !== undefined && isCallOf(one, call));
  const either = [before[last], after[last]];
  if (way === null)
    return findings.some(
      ({ kind, provider }) =>
        ['load_balanced', 'one_target'].includes(kind) && provider !== null && either.some((call) => isCalled(call, provider)),
    );
  const { condition } = ways[way].fault;
  const said = [...findings.filter(({ provider }) => provider !== null), ...warnings.flatMap((warning) => reasonsOf(warning, names))];
  return names.some(
    (provider) =>
      either.some((call) => isCalled(call, provider)) && said.some((reason) => reason.loss && concerns(reason, { provider, condition })),
  );
}

/** Whether the file's calls are those of the chain without the models that were not drawn. */
function isAsDrawn({ chain, apart = new Map() }: CorpusFile, { way, everywhere }: Scene, calls: Calls): boolean {
  const attempts = calls.map((call) => {
    const { name } = chain.providers.find((provider) => isCallOf(provider, call)) ?? { name: call };
    const fails = way !== null && (everywhere || call === calls[0]);
    return { provider: name, condition: null, status_code: 200, ...(fails && ways[way].fault) };
  });
  const { provider = null, condition } = attempts.at(-1) ?? { condition: 'timeout' };
  const success = condition === null;
  return agreesAsDrawn(createEngine(chain), { attempts, served_by: success ? provider : null, success }, apart);
}

/** Whether a call can be one of this provider, by the model, the host and the key. */
function isCallOf(provider: Provider, call: string): boolean {
  const [, model, host, account] = /^(.*) at (\S+?)(?: with (\w+))?$/.exec(call)!;
  const { model_id, api_base, api_key_env } = provider;
  return (
    (model_id === asRequested || modelName(provider) === model) &&
    (api_base === null || new URL(api_base).hostname === host) &&
    (account === undefined || api_key_env === account)
  );
}

/** Providers of all hosts on loopback; a program is made to call `<origin>/<host>/<path>` instead of `https://<host>/<path>`. */
interface Internet {
  origin: string;
  /** Starts a scene. Its calls have a key that ends in `.<number>`; without such a key they belong to the latest. */
  play(scene: Scene): number;
  calls(run: number): Calls;
  stop(): Promise<void>;
}

interface Run {
  scene: Scene;
  first: string | undefined;
  calls: string[];
}

/** Starts these providers. */
export async function startInternet(): Promise<Internet> {
  const runs: Run[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const key = `${request.headers.authorization ?? ''} ${request.headers['x-api-key'] ?? ''} ${request.headers['api-key'] ?? ''} ${request.url!}`;
    const run = runs[Number(/\.run(\d+)\b/.exec(key)?.[1] ?? runs.length - 1)]!;
    const path = decodeURIComponent(request.url!);
    const body = text.startsWith('{') ? (JSON.parse(text) as { model?: string }) : {};
    // Azure calls the deployment of the path, whatever model the body names.
    const model = /(?:deployments|models?)\/([^/]+?)(?::generateContent|\/|\?|$)/.exec(path)?.[1] ?? body.model ?? '?';
    const account = /\b(\w+_KEY_(?:ONE|TWO))\b/.exec(key)?.[1];
    const provider = `${model} at ${path.split('/')[1]}${account === undefined ? '' : ` with ${account}`}`;
    run.first ??= provider;
    run.calls.push(provider);
    const { way, everywhere } = run.scene;
    if (way !== null && (everywhere || run.first === provider)) ways[way].answer(response);
    else answer(path, response);
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    play: (scene) => runs.push({ scene, first: undefined, calls: [] }) - 1,
    calls: (run) => runs[run]!.calls,
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Answers in the protocol of the path. */
function answer(path: string, response: ServerResponse): void {
  const bodies: [RegExp, unknown][] = [
    [
      /:generateContent/,
      {
        candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP', index: 0 }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      },
    ],
    [
      /\/converse$/,
      {
        output: { message: { role: 'assistant', content: [{ text: 'ok' }] } },
        stopReason: 'end_turn',
        usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
        metrics: { latencyMs: 1 },
      },
    ],
    [
      /\/(messages|invoke)$/,
      {
        ...{ id: 'm', type: 'message', role: 'assistant', model: 'm', content: [{ type: 'text', text: 'ok' }] },
        ...{ stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } },
      },
    ],
    [/./, completion('ok')],
  ];
  const [, body] = bodies.find(([pattern]) => pattern.test(path.split('?')[0]!))!;
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
