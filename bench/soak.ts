import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { check, MemorySamples } from './soak/checks.ts';
import { create, createCaller, Ledger, Listener, read, startReceiver, testChains, work } from './soak/load.ts';
import { type Instance, type Places, startPlaces } from './soak/places.ts';

/**
 * `npm run soak -- --minutes N`: mixed load on both services while instances are killed and stopped, and Redis and PostgreSQL
 * come and go; with `--sqlite` one instance on SQLite.
 * At the end everything that callers, receivers and listeners were promised is compared with what they got and with what is
 * stored. Exits 1 if a promise was broken.
 */
const { values } = parseArgs({ options: { minutes: { type: 'string', default: '30' }, sqlite: { type: 'boolean', default: false } } });
const minutes = Number(values.minutes);
if (!(minutes > 0)) {
  console.error('--minutes must be a positive number.');
  process.exit(2);
}

/** The time between two disturbances, in milliseconds. */
const betweenMs = 10_000;

/** The part of the time in which every process is restarted. Afterwards the last instance runs on, and its memory is watched. */
const restartsUntil = 0.4;

const ledger = new Ledger();
let disturbances = 0;

async function killed(instance: Instance): Promise<void> {
  await instance.kill();
  await sleep(1000);
  await instance.start();
}

async function stopped(instance: Instance): Promise<void> {
  const begin = performance.now();
  const code = await instance.stop();
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  if (code !== 0) {
    const last = instance.lastProblem() ?? 'it said nothing';
    ledger.violation(`${instance.name} ended with ${code}, ${seconds} s after SIGTERM: ${last}`);
  }
  await instance.start();
}

/** The disturbances of a part of the run, in turn. */
function disturbancesOf({ handoff, fallback, redis, postgres }: Places, isFirstPart: boolean): (() => Promise<void>)[] {
  const [a, b] = handoff as [Instance, Instance?];
  const ofRedis =
    redis === undefined
      ? []
      : [
          async () => {
            await redis.stop();
            await sleep(8000);
            await redis.start();
          },
          async () => {
            redis.freeze();
            await sleep(5000);
            redis.thaw();
          },
        ];
  const ofPostgres =
    postgres === undefined
      ? []
      : [
          async () => {
            await postgres.pause();
            await sleep(3000);
            await postgres.resume();
          },
        ];
  const ofA = [() => killed(a), () => stopped(a)];
  if (!isFirstPart) return b === undefined ? [] : [...ofA, ...ofRedis, ...ofPostgres];
  const others = [fallback, ...(b === undefined ? [] : [b])];
  return [...ofA, ...others.flatMap((instance) => [() => killed(instance), () => stopped(instance)]), ...ofRedis, ...ofPostgres];
}

async function disturb(places: Places, end: number): Promise<void> {
  const begin = Date.now();
  for (let turn = 0; ; turn += 1) {
    await sleep(Math.min(betweenMs, Math.max(0, end - Date.now())));
    if (Date.now() >= end) return;
    const list = disturbancesOf(places, Date.now() < begin + (end - begin) * restartsUntil);
    if (list.length === 0) continue;
    await list[turn % list.length]!();
    disturbances += 1;
  }
}

const places = await startPlaces({ onSqlite: values.sqlite });
const call = createCaller(places.handoff, ledger);
const callFallback = createCaller([places.fallback], ledger);
const receiver = await startReceiver(ledger);
const watched = [new MemorySamples(places.handoff.at(-1)!), new MemorySamples(places.fallback)];
const loads = new AbortController();
const streams = new AbortController();
console.log(`Soaking ${places.description}, and the fallback service on SQLite, for ${minutes} minutes.`);
try {
  const events = ['packet.created', 'packet.completed'];
  await call('POST', '/api/v1/hooks', { body: { url: receiver.url, secret: 'a-secret-of-the-soak-0123456789', events } });
  ledger.listeners.push(new Listener(), new Listener());
  const listening = ledger.listeners.map((listener) => listener.listen(places.handoff, ledger, streams.signal));
  await sleep(1000);
  const four = [0, 1, 2, 3];
  const loading = [
    ...four.map((index) => create(call, ledger, `creator-${index}`, loads.signal)),
    ...four.map((index) => work(call, ledger, `worker-${index}`, loads.signal)),
    read(call, ledger, loads.signal),
    ...[0, 1].map((index) => testChains(callFallback, ledger, `chain-${index}`, loads.signal)),
  ];
  const sampling = setInterval(() => {
    for (const samples of watched) samples.take();
  }, 1000);
  await disturb(places, Date.now() + minutes * 60_000);
  clearInterval(sampling);
  loads.abort();
  await Promise.all(loading);
  await check(call, callFallback, ledger);
  streams.abort();
  await Promise.all(listening);
  report();
} finally {
  receiver.close();
  await places.stop();
}

function report(): void {
  const { created, completed, counts, deliveries, listeners, tests, broken } = ledger;
  for (const instance of [...places.handoff, places.fallback]) {
    const [first] = instance.errors();
    if (first !== undefined) console.log(`${instance.name} logged ${instance.errors().length} errors since its start, first: ${first}`);
  }
  const memory = watched.map((samples) => samples.judge());
  for (const { text, isFlat } of memory) if (!isFlat) ledger.violation(`memory grew: ${text}`);
  const testCount = [...tests.values()].reduce((sum, { size }) => sum + size, 0);
  console.log(`${counts.requests} requests, of which ${counts.retried} attempts were repeated; ${disturbances} disturbances`);
  console.log(`${created.size} packets created, ${counts.claims} claims, ${completed.size} completed; ${counts.reads} reads`);
  console.log(
    `${deliveries.size} deliveries in ${counts.posts} posts; ${listeners.map((one) => one.events).join(' and ')} events on streams`,
  );
  console.log(`${tests.size} chains, ${testCount} tests`);
  for (const { text } of memory) console.log(text);
  for (const samples of watched) console.log(samples.curve());
  console.log(broken.length === 0 ? 'Nothing was lost, and nothing came twice.' : `${broken.length} promises were broken.`);
  process.exitCode = broken.length === 0 ? 0 : 1;
}
