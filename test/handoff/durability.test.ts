import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';

import type { Packet } from '../../src/handoff/model/packet.ts';
import { startProcess, type TestProcess } from '../support/process.ts';
import { startReceiver, type TestReceiver } from '../support/receiver.ts';
import { adminKey, packetRequest, startService, type TestAnswer, TestClock, type TestService } from '../support/service.ts';
import type { TestStore } from '../support/store.ts';
import { storesOfSeveral } from '../support/stores.ts';
import { openEvents, type TestEvent } from '../support/streams.ts';
import { secret } from '../support/webhooks.ts';

const rounds = 6;
const callers = 8;
const settings = { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' };

/** The lease of a delivery: when it expires the delivery is due again, even if the process that took it has died. */
const leaseSeconds = 20;

/**
 * The number of answered requests, or received posts, after which a round kills its program: early or late, a different
 * one in each round.
 */
const killAfter = (round: number) => 5 + ((round * 37) % 60);

/** What clients and receivers have seen of the programs that were killed. */
interface Known {
  readonly receiver: TestReceiver;
  /** Called for each post before it is answered. */
  onPost: () => void;
  /** Every idempotency key that was used; below, the last answer by key and by packet. */
  readonly keys: Set<string>;
  readonly created: Map<string, TestAnswer>;
  readonly last: Map<string, Packet>;
  /** The events of all streams, each of which resumed after the previous one. */
  readonly heard: TestEvent[];
  lastEventId: string | undefined;
}

const requestOf = (key: string) => packetRequest({ context: { summary: `charged ${key.replace('-', 'x')}` } });
const create = ({ call }: Pick<TestService, 'call'>, key: string) =>
  call('POST', '/packets', { body: requestOf(key), headers: { 'Idempotency-Key': key } });

/** Creates, claims and moves packets with several callers until the program is killed, after an answer or during a post. */
async function loadAndKill(program: TestProcess, round: number, known: Known): Promise<void> {
  const { keys, created, last, receiver } = known;
  let answered = 0;
  let killed: Promise<void> | undefined;
  const kill = () => {
    killed ??= program.kill();
  };
  const postsAtStart = receiver.posts.length;
  known.onPost = () => {
    // The receiver answers, but the program dies before it can record that.
    if (round % 2 === 1 && receiver.posts.length - postsAtStart >= killAfter(round)) kill();
  };
  const keep = (answer: TestAnswer, expected: number): Packet => {
    assert.equal(answer.status, expected, answer.text);
    last.set(answer.body.id, answer.body);
    answered += 1;
    if (round % 2 === 0 && answered >= killAfter(round)) kill();
    return answer.body;
  };
  const work = async (caller: number) => {
    for (let turn = 0; killed === undefined; turn += 1) {
      const key = `${round}c${caller}-${turn}`;
      keys.add(key);
      const answer = await create(program, key);
      created.set(key, answer);
      const { id } = keep(answer, 201);
      if (turn % 2 === 0) continue;
      keep(await program.call('POST', `/packets/${id}/claim`, { body: { agent_id: `a${caller}` } }), 200);
      const body = { status: 'in_progress', metadata: { tags: [`caller-${caller}`] } };
      keep(await program.call('PATCH', `/packets/${id}`, { body }), 200);
    }
  };
  // `fetch` rejects with a TypeError when the connection breaks; any other error fails the test.
  const ends = await Promise.allSettled(Array.from({ length: callers }, (_, caller) => work(caller)));
  for (const end of ends) if (end.status === 'rejected' && !(end.reason instanceof TypeError)) throw end.reason;
  await killed;
}

/** Repeats every create without an answer under its key, and one with an answer, which must be the same again. */
async function askAgain(service: Pick<TestService, 'call'>, { keys, created, last }: Known): Promise<void> {
  const answeredOnce = [...created.keys()].at(-1);
  for (const key of keys) {
    const first = created.get(key);
    if (first !== undefined && key !== answeredOnce) continue;
    const again = await create(service, key);
    assert.equal(again.status, 201, again.text);
    if (first !== undefined) assert.deepEqual([again.text, again.headers['idempotency-replayed']], [first.text, 'true']);
    created.set(key, again);
    if (first === undefined) last.set(again.body.id, again.body);
  }
}

/** A round: starts the program on the database of the last one, repeats requests, opens a stream, adds load and kills it. */
async function playRound(t: TestContext, databaseUrl: string, round: number, known: Known): Promise<void> {
  const program = await startProcess({ databaseUrl, settings });
  t.after(() => program.kill());
  if (round === 0) {
    const hook = await program.call('POST', '/hooks', { body: { url: known.receiver.url, secret } });
    assert.equal(hook.status, 201);
  }
  const query = known.lastEventId === undefined ? '' : `?last_event_id=${known.lastEventId}`;
  const stream = await openEvents(program.address, query, { 'x-api-key': adminKey });
  assert.equal(stream.status, 200);
  await askAgain(program, known);
  await loadAndKill(program, round, known);
  await stream.ended;
  hear(known, stream.events.all);
}

function hear(known: Known, events: readonly TestEvent[]): void {
  known.heard.push(...events.filter(({ event }) => event !== 'connected'));
  known.lastEventId = events.at(-1)?.id ?? known.lastEventId;
}

/** Every item of a paged list. */
async function readAll<Item>({ call }: Pick<TestService, 'call'>, path: string, name: string): Promise<Item[]> {
  const items: Item[] = [];
  for (;;) {
    const { status, body } = await call('GET', `${path}&limit=200&offset=${items.length}`);
    assert.equal(status, 200);
    items.push(...body[name]);
    if (items.length >= body.total) return items;
  }
}

const packetsOf = (service: Pick<TestService, 'call'>) => readAll<Packet>(service, '/packets?view=full', 'packets');
const totalOf = async ({ call }: Pick<TestService, 'call'>, path: string): Promise<number> => (await call('GET', path)).body.total;

/** Every write in progress when the program ended is stored completely or not at all, and all counts agree. */
async function assertWhole(service: Pick<TestService, 'call'>, packets: readonly Packet[]): Promise<void> {
  assert.equal(await totalOf(service, '/packets?limit=1'), packets.length);
  assert.equal(await totalOf(service, '/packets/search?q=charged&limit=1'), packets.length);
  for (const status of ['created', 'claimed', 'in_progress', 'completed']) {
    const expected = packets.filter((packet) => packet.status === status).length;
    assert.equal(await totalOf(service, `/packets?limit=1&status=${status}`), expected, status);
    // The same counted from the rows instead of from the counters.
    assert.equal(await totalOf(service, `/packets?limit=1&status=${status}&source_agent=frontline`), expected, status);
  }
  for (let caller = 0; caller < callers; caller += 1) {
    const tag = `caller-${caller}`;
    const expected = packets.filter(({ metadata }) => metadata.tags.includes(tag)).length;
    assert.equal(await totalOf(service, `/packets?limit=1&tags=${tag}`), expected);
  }
}

/** Every answered write is stored as answered, or changed by a later write whose answer was lost. */
async function assertKept(service: TestService, { keys, created, last }: Known): Promise<void> {
  const packets = await packetsOf(service);
  const byId = new Map(packets.map((packet) => [packet.id, packet]));
  for (const [id, answered] of last) {
    const kept = byId.get(id);
    assert.ok(kept !== undefined, 'an answered packet is lost');
    assert.ok(kept.revision >= answered.revision);
    if (kept.revision === answered.revision) assert.deepEqual(kept, answered);
  }
  await assertWhole(service, packets);
  assert.equal(packets.length, keys.size);
  const [key] = [...keys].slice(-1);
  const found = await service.call('GET', `/packets/search?q=${key!.replace('-', 'x')}`);
  assert.deepEqual([found.body.total, found.body.packets[0].id], [1, created.get(key!)!.body.id]);
}

interface Entry {
  readonly id: string;
  readonly packet_id: string;
  readonly action: string;
  readonly resource: string;
}

/** The trail's entries of packets: one for every revision. */
async function trailOf(service: TestService): Promise<Entry[]> {
  const entries = (await readAll<Entry>(service, '/audit?', 'entries')).filter(({ resource }) => resource === 'packet');
  const revisions = (await packetsOf(service)).reduce((sum, { revision }) => sum + revision, 0);
  assert.equal(entries.length, revisions);
  return entries;
}

/** The streams sent every event exactly once and in order, over all kills. */
async function assertHeard(service: TestService, known: Known, trail: readonly Entry[]): Promise<void> {
  const address = await service.handoff.start();
  const stream = await openEvents(address, `?last_event_id=${known.lastEventId}`, { 'x-api-key': adminKey });
  while (known.heard.length + stream.events.all.length - 1 < trail.length) await stream.events.next();
  stream.close();
  hear(known, stream.events.all);
  const positions = known.heard.map(({ id }) => Number(id!.split('-')[0]));
  for (const [index, position] of positions.entries()) assert.equal(position, positions[0]! + index);
  const texts = (list: readonly string[]) => list.toSorted();
  assert.deepEqual(
    texts(known.heard.map(({ event, data }) => `${data.packet_id} ${event}`)),
    texts(trail.map(({ packet_id, action }) => `${packet_id} packet.${action}`)),
  );
}

/** Every event reaches the receiver under one delivery id, and no delivery stays leased. */
async function assertDelivered(service: TestService, { receiver }: Known, trail: readonly Entry[]): Promise<void> {
  const interrupted = receiver.posts.at(-1)!.headers['x-service-delivery'];
  const postsOf = (delivery: unknown) => receiver.posts.filter(({ headers }) => headers['x-service-delivery'] === delivery).length;
  const before = postsOf(interrupted);
  const waiting = async () => Number(/^service_webhook_queue_length (\d+)$/m.exec((await service.call('GET', '//metrics')).text)![1]);
  assert.ok((await waiting()) > 0, 'the last kill left leased deliveries');
  service.clock.turn(leaseSeconds);
  for (let left = await waiting(); left > 0; ) {
    await service.handoff.runOnce.deliver();
    const now = await waiting();
    assert.ok(now < left, `${now} deliveries are stuck`);
    left = now;
  }
  // The receiver had accepted it, but that was not recorded, so it is posted once more.
  assert.equal(postsOf(interrupted), before + 1);
  const byEvent = Map.groupBy(receiver.posts, ({ headers }) => String(headers['webhook-id']));
  assert.deepEqual([...byEvent.keys()].toSorted(), trail.map(({ id }) => id).toSorted());
  for (const posts of byEvent.values()) {
    assert.equal(new Set(posts.map(({ headers }) => headers['x-service-delivery'])).size, 1);
    assert.equal(new Set(posts.map(({ body }) => body)).size, 1);
  }
  const [hook] = (await service.call('GET', '/hooks')).body;
  for (const status of ['pending', 'failed', 'dead_letter', 'cancelled'])
    assert.deepEqual((await service.call('GET', `/hooks/${hook.id}/deliveries?status=${status}`)).body, []);
}

async function killAgainAndAgain(t: TestContext, store: TestStore): Promise<void> {
  const { url, drop } = await store.open();
  t.after(drop);
  const receiver = await startReceiver(t, (response) => {
    known.onPost();
    response.writeHead(204).end();
  });
  const known: Known = {
    receiver,
    onPost: () => undefined,
    keys: new Set(),
    created: new Map(),
    last: new Map(),
    heard: [],
    lastEventId: undefined,
  };
  for (let round = 0; round < rounds; round += 1) await playRound(t, url, round, known);
  // The result is checked in this process, where the clock can be turned to the end of the last leases.
  const ends: (() => Promise<void>)[] = [];
  const scope = { after: (end: unknown) => void ends.push(end as () => Promise<void>) };
  const service = await startService(scope, { databaseUrl: url, clock: new TestClock(new Date().toISOString()), settings });
  try {
    await askAgain(service, known);
    await assertKept(service, known);
    const trail = await trailOf(service);
    await assertDelivered(service, known, trail);
    await assertHeard(service, known, trail);
  } finally {
    for (const end of ends) await end();
  }
}

describe('A program that ends', { concurrency: true }, () => {
  for (const store of storesOfSeveral) {
    test(`by kill -9 under load, ${rounds} times on ${store.name}: every answered write is stored, a retry creates nothing twice, streams and webhooks deliver every event [H128]`, (t) =>
      killAgainAndAgain(t, store));

    test(`by SIGTERM on ${store.name}: requests in progress are completed and answered, then it exits with 0 [H287]`, async (t) => {
      const { url, drop } = await store.open();
      t.after(drop);
      const program = await startProcess({ databaseUrl: url });
      const begun = await Promise.all(Array.from({ length: 20 }, (_, index) => beginRequest(program.address, requestOf(`s-${index}`))));
      const stopped = program.stop();
      const answers = await Promise.all(begun.map((finish) => finish()));
      for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 201 /);
      assert.equal(await stopped, 0);
      const again = await startProcess({ databaseUrl: url });
      const packets = await packetsOf(again);
      assert.equal(packets.length, 20);
      await assertWhole(again, packets);
      assert.equal(await again.stop(), 0);
    });
  }
});

/**
 * Sends the headers of a create request and resolves once the program has accepted them. The result sends the body and
 * resolves with the answer.
 */
async function beginRequest(address: string, body: unknown): Promise<() => Promise<string>> {
  const text = JSON.stringify(body);
  const { hostname, port } = new URL(address);
  const socket = connect({ host: hostname, port: Number(port) });
  const head = ['POST /api/v1/packets HTTP/1.1', 'Host: x', `X-API-Key: ${adminKey}`, 'Content-Type: application/json'];
  socket.write([...head, `Content-Length: ${Buffer.byteLength(text)}`, 'Expect: 100-continue', '', ''].join('\r\n'));
  const [goOn] = (await once(socket, 'data')) as [Buffer];
  assert.match(goOn.toString(), /^HTTP\/1\.1 100 /);
  return async () => {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk as Buffer));
    socket.write(text);
    // The program closes the connection after its answer.
    await once(socket, 'close');
    return Buffer.concat(chunks).toString();
  };
}
