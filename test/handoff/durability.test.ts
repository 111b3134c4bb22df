import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'node:test';

import type { Packet } from '../../src/handoff/model/packet.ts';
import { startProcess, type TestProcess } from '../support/process.ts';
import { adminKey, packetRequest, type TestAnswer } from '../support/service.ts';
import { stores } from '../support/stores.ts';

const rounds = 5;
const callers = 16;
/** How many requests are answered before the program is killed in the middle of the next ones. */
const answersARound = 240;

/** What callers know: every idempotency key they used, and the last answer about each packet. */
interface Known {
  readonly keys: Set<string>;
  readonly created: Map<string, TestAnswer>;
  readonly last: Map<string, Packet>;
}

const requestOf = (key: string) => packetRequest({ context: { summary: `charged ${key.replace('-', 'x')}` } });
const create = ({ call }: TestProcess, key: string) =>
  call('POST', '/packets', { body: requestOf(key), headers: { 'Idempotency-Key': key } });

/** Many callers create, claim and move packets, until the program is killed under their hands. */
async function loadAndKill(program: TestProcess, round: number, { keys, created, last }: Known): Promise<void> {
  let answered = 0;
  let killed: Promise<void> | undefined;
  const note = (answer: TestAnswer, expected: number): Packet => {
    assert.equal(answer.status, expected, answer.text);
    last.set(answer.body.id, answer.body);
    answered += 1;
    if (answered >= answersARound) killed ??= program.kill();
    return answer.body;
  };
  const work = async (caller: number) => {
    for (let turn = 0; ; turn += 1) {
      const key = `${round}c${caller}-${turn}`;
      keys.add(key);
      const answer = await create(program, key);
      created.set(key, answer);
      const { id } = note(answer, 201);
      if (turn % 2 === 0) continue;
      note(await program.call('POST', `/packets/${id}/claim`, { body: { agent_id: `a${caller}` } }), 200);
      note(
        await program.call('PATCH', `/packets/${id}`, { body: { status: 'in_progress', metadata: { tags: [`caller-${caller}`] } } }),
        200,
      );
    }
  };
  // `fetch` rejects when the connection breaks; any other failure is the test's.
  const ends = await Promise.allSettled(Array.from({ length: callers }, (_, caller) => work(caller)));
  for (const end of ends) if (end.status === 'rejected' && !(end.reason instanceof TypeError)) throw end.reason;
  await killed;
}

/** Every packet of the tenant, read page by page. */
async function readAll({ call }: TestProcess): Promise<Packet[]> {
  const packets: Packet[] = [];
  for (let cursor = ''; ; ) {
    const { status, body } = await call('GET', `/packets?view=full&limit=200${cursor}`);
    assert.equal(status, 200);
    packets.push(...body.packets);
    if (body.next_cursor === null) return packets;
    cursor = `&cursor=${body.next_cursor}`;
  }
}

const totalOf = async ({ call }: TestProcess, path: string): Promise<number> => (await call('GET', path)).body.total;

/** Whatever was being written when the program ended is there whole or not at all, and every count says the same. */
async function assertWhole(program: TestProcess, packets: readonly Packet[]): Promise<void> {
  assert.equal(await totalOf(program, '/packets?limit=1'), packets.length);
  assert.equal(await totalOf(program, '/packets/search?q=charged&limit=1'), packets.length);
  for (const status of ['created', 'claimed', 'in_progress', 'completed']) {
    const expected = packets.filter((packet) => packet.status === status).length;
    assert.equal(await totalOf(program, `/packets?limit=1&status=${status}`), expected, status);
    // The same counted from the rows instead of from the counters.
    assert.equal(await totalOf(program, `/packets?limit=1&status=${status}&source_agent=frontline`), expected, status);
  }
  for (let caller = 0; caller < callers; caller += 1) {
    const tag = `caller-${caller}`;
    const expected = packets.filter(({ metadata }) => metadata.tags.includes(tag)).length;
    assert.equal(await totalOf(program, `/packets?limit=1&tags=${tag}`), expected);
  }
  // One entry of the trail for every revision.
  const revisions = packets.reduce((sum, { revision }) => sum + revision, 0);
  assert.equal(await totalOf(program, '/audit?limit=1'), revisions);
  assert.equal(await totalOf(program, '/audit?limit=1&created_after=2000-01-01'), revisions);
}

for (const store of stores.slice(1)) {
  describe(`kill -9 on ${store.name}`, () => {
    test(`under load, ${rounds} times: every answered write is there, nothing is there by halves, and a retry creates nothing twice`, async (t) => {
      const { url, drop } = await store.open();
      const known: Known = { keys: new Set(), created: new Map(), last: new Map() };
      let program = await startProcess({ databaseUrl: url });
      t.after(async () => {
        await program.kill();
        await drop();
      });
      for (let round = 0; round < rounds; round += 1) {
        await loadAndKill(program, round, known);
        program = await startProcess({ databaseUrl: url });

        const packets = await readAll(program);
        const byId = new Map(packets.map((packet) => [packet.id, packet]));
        for (const [id, answered] of known.last) {
          const kept = byId.get(id);
          assert.ok(kept !== undefined, 'an answered packet is gone');
          // A later change may have been carried out without its answer arriving; an earlier state may not come back.
          assert.ok(kept.revision >= answered.revision);
          if (kept.revision === answered.revision) assert.deepEqual(kept, answered);
        }
        await assertWhole(program, packets);

        // Who got no answer asks again under the same key; who got one and asks again gets the same one.
        for (const key of known.keys) {
          const first = known.created.get(key);
          if (first !== undefined && !key.startsWith(`${round}c0-`)) continue;
          const again = await create(program, key);
          assert.equal(again.status, 201);
          if (first !== undefined) assert.deepEqual([again.text, again.headers['idempotency-replayed']], [first.text, 'true']);
          known.created.set(key, again);
          known.last.set(again.body.id, (await program.call('GET', `/packets/${again.body.id}`)).body);
        }
        assert.equal(await totalOf(program, '/packets?limit=1'), known.keys.size);
        const [key] = [...known.keys].slice(-1);
        const found = await program.call('GET', `/packets/search?q=${key!.replace('-', 'x')}`);
        assert.deepEqual([found.body.total, found.body.packets[0].id], [1, known.created.get(key!)!.body.id]);
      }
      assert.ok(known.created.size > rounds * 100);
      assert.equal(await program.stop(), 0);
    });

    test('SIGTERM: requests in hand are carried out and answered, then the program ends with 0', async (t) => {
      const { url, drop } = await store.open();
      t.after(drop);
      const program = await startProcess({ databaseUrl: url });
      const inHand = await Promise.all(Array.from({ length: 20 }, (_, index) => beginRequest(program.address, requestOf(`s-${index}`))));
      const stopped = program.stop();
      const answers = await Promise.all(inHand.map((finish) => finish()));
      for (const answer of answers) assert.match(answer, /^HTTP\/1\.1 201 /);
      assert.equal(await stopped, 0);
      const again = await startProcess({ databaseUrl: url });
      const packets = await readAll(again);
      assert.equal(packets.length, 20);
      await assertWhole(again, packets);
      assert.equal(await again.stop(), 0);
    });
  });
}

/** Sends a create request up to its body; when this resolves the program has it in hand. What it gives sends the rest. */
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
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.write(text);
    // The program closes behind its answer.
    await once(socket, 'close');
    return Buffer.concat(chunks).toString();
  };
}
