import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createParser } from 'eventsource-parser';
import pg from 'pg';

import { createExample } from '../src/handoff/model/examples.ts';
import { freePort } from '../src/kit/free-port.ts';
import { startPostgres } from '../test/support/postgres.ts';
import { startProgram } from '../test/support/program.ts';
import { findProgram } from '../test/support/programs.ts';
import { createRedis, skipWithoutRedis } from '../test/support/redis.ts';
import { adminKey, Instance } from './soak/places.ts';

/**
 * `npx node bench/rolling.ts --restarts N`: replaces two instances behind nginx with `deploy/nginx/baton.conf` one after the other,
 * N times, under mixed load that repeats only a request with an idempotency key that was answered 502, once. Exits 1 if a request failed, an event of a stream was lost or came twice, or a
 * packet that was created is not there.
 */
const { values } = parseArgs({ options: { restarts: { type: 'string', default: '20' }, drain: { type: 'string', default: '5' } } });
const restarts = Number(values.restarts);
if (!Number.isInteger(restarts) || restarts < 1) throw new Error('--restarts must be a whole number from 1 on.');

/** How long an instance to which nginx sends requests again runs before the next one is stopped. */
const betweenMs = 3000;

/** Within which time an instance must be ready, and nginx use it again. */
const replacedWithinMs = 60_000;

const { hitl: _, ...packetRequest } = createExample;
const target = createExample.metadata.target_agent!.id;
const statuses = new Map<string, Map<number, number>>();
const failures: string[] = [];
let repeated = 0;
const created = new Set<string>();
const completed = new Set<string>();

function fail(sentence: string): void {
  failures.push(sentence);
  if (failures.length <= 20) console.log(`FAILED: ${sentence}`);
}

const secondsSince = (began: number) => ((performance.now() - began) / 1000).toFixed(1);

interface Request {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly isRepeat?: boolean;
}

/**
 * Sends a request, and repeats one with an idempotency key that was answered 502, as clients do: nginx does not know whether the
 * instance that stopped has carried it out. Any other status than those expected is a failure.
 */
async function send(base: string, name: string, path: string, expected: readonly number[], request: Request = {}) {
  const { body, headers = {} } = request;
  const [method = 'GET'] = name.split(' ');
  const given = body === undefined ? {} : { body: JSON.stringify(body) };
  const type = body === undefined ? {} : { 'content-type': 'application/json' };
  const began = performance.now();
  try {
    const answer = await fetch(`${base}/api/v1${path}`, { method, headers: { 'x-api-key': adminKey, ...type, ...headers }, ...given });
    const text = await answer.text();
    const counts = statuses.get(name) ?? statuses.set(name, new Map()).get(name)!;
    counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
    if (expected.includes(answer.status)) return text === '' ? undefined : JSON.parse(text);
    if (answer.status === 502 && 'idempotency-key' in headers && !request.isRepeat) {
      repeated += 1;
      return await send(base, name, path, expected, { ...request, isRepeat: true });
    }
    fail(`${method} ${path} was answered ${answer.status} after ${secondsSince(began)} s: ${text.slice(0, 200)}`);
  } catch (error) {
    fail(
      `${method} ${path} got no answer in ${secondsSince(began)} s: ${(error as Error).message} ${String((error as Error).cause ?? '')}`,
    );
  }
  return undefined;
}

async function create(base: string, name: string, over: AbortSignal): Promise<void> {
  for (let index = 0; !over.aborted; index += 1) {
    const headers = { 'idempotency-key': `${name}-${index}` };
    const packet = await send(base, 'POST create', '/packets', [201], { body: packetRequest, headers });
    if (packet !== undefined) created.add(packet.id);
    await sleep(100);
  }
}

async function work(base: string, name: string, over: AbortSignal): Promise<void> {
  for (let index = 0; !over.aborted; index += 1) {
    const body = { agent_id: name, target_agent: target, lease_seconds: 60, wait_seconds: 5 };
    const claim = { 'idempotency-key': `${name}-${index}-claim` };
    const held = await send(base, 'POST claim-next', '/packets/claim-next', [200, 204], { body, headers: claim });
    if (held === undefined) continue;
    const headers = { 'x-lease-token': held.lease.token, 'idempotency-key': `${name}-${index}` };
    const progress = { ...headers, 'idempotency-key': `${name}-${index}-progress` };
    const path = `/packets/${held.id}`;
    await send(base, 'PATCH progress', path, [200], { body: { status: 'in_progress' }, headers: progress });
    const done = await send(base, 'PATCH complete', path, [200], { body: { status: 'completed' }, headers });
    if (done !== undefined) completed.add(held.id);
  }
}

async function read(base: string, over: AbortSignal): Promise<void> {
  const paths = ['/packets?limit=50', '/packets/search?q=charged', '/stats', '/agents', '/audit?limit=20'];
  for (let index = 0; !over.aborted; index += 1) {
    const newest = [...created].at(-1);
    const own = newest === undefined ? [] : [`/packets/${newest}`, `/packets/${newest}/history`, `/packets/${newest}/brief`];
    await send(base, 'GET', [...paths, ...own][index % (paths.length + own.length)]!, [200]);
    await sleep(50);
  }
}

/** Follows a stream, and resumes it each time that an instance ends it. Resolves with how often it was opened. */
async function follow(base: string, seen: Set<string>, over: AbortSignal): Promise<number> {
  let lastId = '';
  let opened = 0;
  const parser = () =>
    createParser({
      onEvent({ event, id, data }) {
        if (id !== undefined) lastId = id;
        if (event === 'reset') fail(`a stream was reset: ${data}`);
        if (event !== 'packet.created' && event !== 'packet.completed') return;
        const name = `${event} ${JSON.parse(data).packet_id}`;
        if (seen.has(name)) fail(`${name} came twice on a stream`);
        seen.add(name);
      },
    });
  while (!over.aborted) {
    const headers = { 'x-api-key': adminKey, ...(lastId === '' ? {} : { 'last-event-id': lastId }) };
    try {
      const answer = await fetch(`${base}/events`, { headers, signal: over });
      opened += 1;
      if (answer.status !== 200) fail(`a stream was answered ${answer.status}`);
      const [events, decoder] = [parser(), new TextDecoder()];
      for await (const chunk of answer.body!) events.feed(decoder.decode(chunk, { stream: true }));
    } catch (error) {
      if (!over.aborted) fail(`a stream broke: ${(error as Error).message} ${String((error as Error).cause ?? '')}`);
    }
  }
  return opened;
}

/** nginx with the shipped file, in which only addresses and the path of the log are replaced. */
async function startNginx(folder: string, ports: readonly number[]) {
  const [front, fallback] = [await freePort(), await freePort()];
  const shipped = readFileSync(fileURLToPath(new URL('../deploy/nginx/baton.conf', import.meta.url)), 'utf8');
  const here = shipped
    .replace('handoff-1:8080', `127.0.0.1:${ports[0]}`)
    .replace('handoff-2:8080', `127.0.0.1:${ports[1]}`)
    .replace('fallback:8000', `127.0.0.1:${fallback}`)
    .replace('listen 8080', `listen 127.0.0.1:${front}`)
    .replace('listen 8000', `listen 127.0.0.1:${fallback}`)
    .replaceAll('/var/log/nginx/access.log', join(folder, 'access.log'));
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${join(folder, name)};`).join(' ');
  const whole = `daemon off; worker_processes 1; pid ${join(folder, 'pid')}; events { worker_connections 1024; } http { ${paths}\n${here}\n}`;
  writeFileSync(join(folder, 'nginx.conf'), whole);
  const error = join(folder, 'error.log');
  return {
    base: `http://127.0.0.1:${front}`,
    access: join(folder, 'access.log'),
    error,
    program: startProgram([findProgram('nginx')!, '-c', join(folder, 'nginx.conf'), '-e', error]),
  };
}

/** Resolves when something holds, which a sentence says. @throws Error when it does not in a minute */
async function holds(what: string, doesHold: () => boolean | Promise<boolean>): Promise<void> {
  const began = performance.now();
  while (!(await doesHold())) {
    if (performance.now() - began > replacedWithinMs) throw new Error(`In a minute it never was so: ${what}.`);
    await sleep(100);
  }
}

const whenReady = (url: string): Promise<void> =>
  holds(`${url} is ready`, () =>
    fetch(`${url}/ready`, { signal: AbortSignal.timeout(replacedWithinMs) }).then(
      ({ ok }) => ok,
      () => false,
    ),
  );

/**
 * Resolves when nginx uses the instance again: it has logged more answers of it than the given number. nginx tries an instance that
 * it left out with one request every two seconds. If the other one were stopped before one of these was answered, which takes
 * seconds on a busy machine, nginx would have none.
 */
async function whenUsed(log: string, url: string, before: number): Promise<void> {
  await holds(`nginx uses ${url} again`, () => answersOf(log, url) > before);
}

/** Stops an instance and starts it again. Resolves when nginx uses it. */
async function replace(instance: Instance, log: string): Promise<void> {
  const code = await instance.stop();
  if (code !== 0) fail(`${instance.name} ended with ${code}: ${instance.lastProblem()}`);
  await instance.start();
  const before = answersOf(log, instance.url);
  await whenReady(instance.url);
  await whenUsed(log, instance.url, before);
}

/** How many requests an instance has answered at the first attempt, by the log of nginx. */
const answersOf = (log: string, url: string) =>
  readFileSync(log, 'utf8').split(new RegExp(String.raw`[\d.]+ ${new URL(url).host} (?!502)\d{3} `)).length - 1;

/** Fails for each event of an answered request that is not among those of a stream. */
function requireAll(events: ReadonlySet<string>): void {
  for (const id of created) if (!events.has(`packet.created ${id}`)) fail(`packet.created ${id} never came on a stream`);
  for (const id of completed) if (!events.has(`packet.completed ${id}`)) fail(`packet.completed ${id} never came on a stream`);
}

/** How many requests were answered. */
const answered = () => [...statuses.values()].flatMap((counts) => [...counts.values()]).reduce((sum, one) => sum + one, 0);

async function main(folder: string, databaseUrl: string, redisUrl: string): Promise<void> {
  const env = {
    SERVICE_DATABASE_URL: databaseUrl,
    SERVICE_REDIS_URL: redisUrl,
    SERVICE_ADMIN_KEY: adminKey,
    ...{ SERVICE_HOST: '127.0.0.1', SERVICE_LOG_LEVEL: 'error', SERVICE_LOG_FORMAT: 'json', SERVICE_DRAIN_SECONDS: values.drain },
    ...{ SERVICE_RATE_LIMIT_PER_MINUTE: '10000000', SERVICE_HOURLY_QUOTA_BUSINESS: '1000000000' },
  };
  const ports = [await freePort(), await freePort()];
  const program = fileURLToPath(new URL('../bin/service-cli.js', import.meta.url));
  const instances = ports.map(
    (port, index) => new Instance(`instance ${index + 1}`, port, [program, 'serve'], { ...env, SERVICE_PORT: String(port) }),
  );
  for (const instance of instances) await instance.start();
  const nginx = await startNginx(folder, ports);
  const [loads, streams] = [new AbortController(), new AbortController()];
  try {
    await whenReady(nginx.base);
    const seen = [new Set<string>(), new Set<string>()];
    const following = seen.map((one) => follow(nginx.base, one, streams.signal));
    await sleep(1000);
    const more = [0, 1, 2];
    const loading = [
      ...more.map((index) => create(nginx.base, `creator-${index}`, loads.signal)),
      ...more.map((index) => work(nginx.base, `worker-${index}`, loads.signal)),
      ...[0, 1].map(() => read(nginx.base, loads.signal)),
    ];
    for (let turn = 0; turn < restarts; turn += 1) {
      await replace(instances[turn % instances.length]!, nginx.access);
      await sleep(betweenMs);
      console.log(`${turn + 1}. restart: ${answered()} requests, ${failures.length} failures`);
    }
    loads.abort();
    await Promise.all(loading);
    await sleep(5000);
    streams.abort();
    const opened = await Promise.all(following);
    for (const one of seen) requireAll(one);
    const { total } = (await send(nginx.base, 'GET', '/packets?limit=1', [200])) as { total: number };
    if (total !== created.size) fail(`${created.size} creates were answered 201, and there are ${total} packets`);
    for (const [name, counts] of statuses)
      console.log(`${name}: ${[...counts].map(([status, count]) => `${count} × ${status}`).join(', ')}`);
    console.log(`${opened.join(' and ')} times two streams were opened; ${seen[0]!.size} events on each`);
    console.log(`${restarts} restarts, ${failures.length} failures, ${repeated} requests repeated after a 502`);
  } finally {
    loads.abort();
    streams.abort();
    for (const instance of instances) await instance.kill();
    nginx.program.child.kill('SIGTERM');
    await nginx.program.ended;
    const log = readFileSync(nginx.error, 'utf8')
      .split('\n')
      .filter((line) => /upstream/.test(line));
    console.log(`nginx turned to the other instance, or gave up, ${log.length} times${log.length === 0 ? '' : `; last: ${log.at(-1)}`}`);
  }
}

if (findProgram('nginx') === undefined || skipWithoutRedis !== false) throw new Error('It needs nginx and redis-server.');
const folder = await mkdtemp(join(tmpdir(), 'baton-rolling-'));
const [postgres, redis] = [await startPostgres(), await createRedis()];
try {
  await redis.start();
  const client = new pg.Client(`${postgres.url}/postgres`);
  await client.connect();
  await client.query('create database rolling');
  await client.end();
  await main(folder, `${postgres.url}/rolling`, redis.url);
} finally {
  await redis.stop();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
process.exitCode = failures.length === 0 ? 0 : 1;
