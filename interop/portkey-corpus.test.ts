import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';

import type { ChainRequest } from '../src/fallback/model/chain.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { portkeyKinds } from '../src/fallback/rules/kind-lists.ts';
import { type Random, seeded } from '../src/fallback/rules/random.ts';
import { importChain } from '../src/fallback/rules/targets/import.ts';
import { redirectFile } from '../src/fallback/rules/targets/portkey/own-file.ts';
import { type Calls, corpusOf, type Scene, scenes, startInternet, unexplained, withoutComments } from './corpus.ts';
import { isFull } from './extent.ts';
import { completion } from './fakes.ts';
import { startGateway } from './portkey.ts';
import { patientMs, startSceneGateway } from './portkey-scenes.ts';
import { failures, healthyStreams, judge, type Model, streamFailures } from './scenes.ts';

const internet = await startInternet();
const gateway = await startGateway(internet.origin);
after(async () => {
  gateway.stop();
  await internet.stop();
});

/** What Portkey keeps behind virtual keys and slugs, which only its hosted gateway knows. */
const vault: Readonly<Record<string, object>> = {
  'openai-prod': { provider: 'openai', api_key: 'vault' },
  'anthropic-prod': { provider: 'anthropic', api_key: 'vault' },
  'groq-prod': { provider: 'groq', api_key: 'vault' },
};

/** A configuration as the hosted gateway sees it, with keys that name the run. */
function unlocked(text: string, run: number): string {
  return JSON.stringify(JSON.parse(withoutComments(text)), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value;
    const { virtual_key, provider, ...target } = value as { virtual_key?: string; provider?: string };
    const slug = virtual_key ?? (provider?.startsWith('@') ? provider : undefined);
    return slug === undefined ? value : { ...vault[slug.replace('@', '')], ...target };
  })
    .replaceAll(/\$\{(\w+)\}/g, `$1.run${run}`)
    .replaceAll('"vault"', `"vault.run${run}"`);
}

async function callsOf(text: string, scene: Scene): Promise<Calls> {
  const run = internet.play(scene);
  const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-portkey-config': unlocked(text, run) },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Say OK.' }], max_tokens: 16 }),
  });
  const answer = await response.text();
  if (scene.way === null) assert.equal(response.status, 200, answer);
  return internet.calls(run);
}

describe('A file that was imported and exported again makes the calls that it made before, except for what the findings say', () => {
  for (const file of corpusOf('portkey')) {
    test(file.name, async () => {
      const runs = await Promise.all(
        scenes.map(async (scene) => {
          const [before, after] = await Promise.all([callsOf(file.text, scene), callsOf(file.exported, scene)]);
          return { scene, before, after };
        }),
      );
      assert.deepEqual(unexplained(file, runs), []);
    });
  }
});

/** A strategy or a target of a configuration. */
interface Node {
  name?: string;
  strategy?: { mode: string; on_status_codes?: number[] };
  targets?: Node[];
  retry?: { attempts: number; on_status_codes?: number[] };
  weight?: number;
}

const sceneGateway = await startGateway();
const scenePlayer = await startSceneGateway(sceneGateway);
after(async () => {
  sceneGateway.stop();
  await scenePlayer.stop();
});

/** The strategies of a configuration with targets that lead to hosts of their own, and the models behind these by host. */
function withHosts(root: Node): { config: Node; models: Map<string, Omit<Model, 'host'>> } {
  const models = new Map<string, Omit<Model, 'host'>>();
  const walk = ({ targets, ...node }: Node, drawn: string | null): Node => {
    if (targets === undefined) {
      const host = `m-${models.size}.test`;
      models.set(host, { pool: drawn ?? host });
      const { name, retry, weight, strategy } = node;
      const target = { provider: 'openai', api_key: 'any', custom_host: `http://${host}/v1`, request_timeout: patientMs };
      return JSON.parse(JSON.stringify({ name, retry, weight, strategy, ...target, override_params: { model: host } })) as Node;
    }
    const pool = drawn ?? (node.strategy?.mode === 'loadbalance' ? `group ${models.size}` : null);
    return { ...node, targets: targets.map((target) => walk(target, pool)) };
  };
  return { config: walk(root, null), models };
}

/** Imports a configuration and compares the gateway with its chain; returns the differences that no finding explains. */
async function judged(name: string, root: Node, { tried, streams }: Pick<Parameters<typeof judge>[2], 'tried' | 'streams'> = {}) {
  const { config, models } = withHosts(root);
  const { request, findings } = importChain({ format: 'portkey', value: config, name });
  const chain = define(request as ChainRequest);
  const byProvider = new Map(
    chain.providers.map(({ name: provider, api_base }): [string, Model] => {
      const { hostname: host } = new URL(api_base!);
      return [provider, { host, ...models.get(host)! }];
    }),
  );
  const file = { config: JSON.stringify(config), group: name, fresh: false, ...(tried && { tried }), ...(streams && { streams }) };
  const { apart } = redirectFile(config, 'http://127.0.0.1', { keepState: false });
  return judge(scenePlayer, { name: `${name} ${file.config}`, chain, findings, models: byProvider, apart }, file);
}

const together = { concurrency: 4 };

describe("Portkey's gateway does with a file what the imported chain says, except for what a finding names", together, () => {
  for (const [index, { name, text }] of corpusOf('portkey').entries()) {
    const root = () => JSON.parse(withoutComments(text)) as Node;
    // A call without an answer takes as long as its time-out: CI has it with every other file, and a part of the streams with each.
    const isIn = (place: number, share: number) => isFull || (place + index) % share === 0;
    const whole = failures.filter(({ refusal }) => refusal !== 'timeout' || isIn(0, 2));
    test(name, async () => assert.deepEqual((await judged(name, root(), { tried: whole })).unexplained, []));
    test(`${name}, streamed`, async () => {
      for (const hasTools of isFull ? [false, true] : [index % 2 === 0]) {
        const refusals = failures.filter(({ refusal, condition }) => typeof refusal === 'object' && condition !== 'invalid_response');
        const tried = [...streamFailures(hasTools, false), ...refusals].filter((_, place) => isIn(place, 4));
        assert.deepEqual((await judged(name, root(), { tried, streams: healthyStreams(hasTools) })).unexplained, []);
      }
    });
  }
});

test("request_timeout of Portkey's gateway limits the time until the status of an answer, and no silence behind it [F168]", async (t) => {
  const healthy = healthyStreams(false).chat;
  const called: string[] = [];
  const silence = () => new Promise((resolve) => setTimeout(resolve, 3_000));
  const server = createServer(async (request, response) => {
    const way = request.url!.split('/')[1]!;
    called.push(way);
    request.resume();
    if (way === 'status') await silence();
    const [body, type] = way === 'whole' ? [JSON.stringify(completion('OK')), 'application/json'] : [healthy, 'text/event-stream'];
    response.writeHead(200, { 'content-type': type }).flushHeaders();
    const first = way === 'head' ? 0 : 200;
    response.write(body.slice(0, first));
    if (['head', 'content', 'whole'].includes(way)) await silence();
    response.end(body.slice(first));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const target = (way: string) => ({
    ...{ provider: 'openai', api_key: 'any', override_params: { model: way } },
    custom_host: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${way}/v1`,
  });
  await Promise.all(
    ['status', 'head', 'content', 'whole'].map(async (way) => {
      const config = { strategy: { mode: 'fallback' }, targets: [{ ...target(way), request_timeout: 1_000 }, target(`after-${way}`)] };
      const response = await fetch(`http://127.0.0.1:${sceneGateway.port}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-portkey-config': JSON.stringify(config) },
        body: JSON.stringify({ model: 'm', stream: way !== 'whole', messages: [{ role: 'user', content: 'Say OK.' }] }),
      });
      assert.equal(response.status, 200);
      assert.match(await response.text(), way === 'whole' ? /"OK"/ : /\[DONE\]/);
    }),
  );
  assert.deepEqual(called.toSorted(), ['after-status', 'content', 'head', 'status', 'whole']);
});

/** A configuration as people could write it: strategies in one another, with statuses and retries. */
function generated(random: Random, depth = 0): Node {
  const chance = (share: number) => random() < share;
  const some = () => [401, 408, 429, 500, 502, 503, 504].filter(() => chance(0.5));
  const codes = (share: number) => (chance(share) ? { on_status_codes: [...some(), 429] } : {});
  if (depth === 2 || (depth === 1 && chance(0.6))) return chance(0.4) ? { retry: { attempts: 1, ...codes(0.6) } } : {};
  const targets = Array.from({ length: 2 + Math.floor(random() * 2) }, () => generated(random, depth + 1));
  if (depth > 0 && chance(0.3)) return { strategy: { mode: 'loadbalance' }, targets };
  return { strategy: { mode: 'fallback', ...codes(0.6) }, targets };
}

test("Portkey's gateway does with generated files what the imported chain says, except for what a finding names", async () => {
  const firstSeed = process.env.SEED === 'random' ? Math.floor(Math.random() * 1_000_000) : Number(process.env.SEED ?? 70_000);
  const seeds = Array.from({ length: isFull ? 20 : 8 }, (_, index) => firstSeed + index);
  // A call without an answer takes as long as its time-out.
  const quick = failures.filter(({ refusal }) => refusal !== 'timeout');
  let [scenes, excused] = [0, 0];
  const unexplained: string[] = [];
  for (const seed of seeds) {
    const judgement = await judged(`seed ${seed}`, generated(seeded(seed)), { tried: quick });
    scenes += judgement.scenes;
    excused += judgement.excused;
    unexplained.push(...judgement.unexplained);
  }
  console.log(`Seeds ${firstSeed} to ${seeds.at(-1)}: ${scenes} scenes, ${excused} differences with a finding.`);
  assert.deepEqual(unexplained, []);
});

/** The accepted values of `provider` in the gateway, whose minified program has them as one list of constants. */
function providersOfGateway(): string[] {
  const program = readFileSync(new URL('node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url), 'utf8');
  const lists = [...program.matchAll(/=\[((?:"[\w-]+"|[\w$]+)(?:,(?:"[\w-]+"|[\w$]+)){60,})\]/g)];
  const list = lists.find(([, members]) => members!.includes('"milvus"'))!;
  const before = program.slice(0, list.index);
  return list[1]!.split(',').map((member) => {
    if (member.startsWith('"')) return member.slice(1, -1);
    const name = member.replaceAll('$', '\\$');
    return [...before.matchAll(new RegExp(`[, ]${name}="([^"]*)"`, 'g'))].at(-1)![1]!;
  });
}

test("the list of Portkey's providers is that of the gateway", () => {
  assert.deepEqual([...portkeyKinds].sort(), [...new Set(providersOfGateway())].sort());
});
