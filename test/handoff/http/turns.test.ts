import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { Turns } from '../../../src/kit/turns.ts';
import { a2a } from '../../support/a2a.ts';
import { product } from '../../support/hostile-schemas.ts';
import { callTool } from '../../support/mcp.ts';
import { createPacket, packetRequest, startService, type TestService } from '../../support/service.ts';
import { onDisk } from '../../support/stores.ts';
import { countTurns } from '../../support/until.ts';

/** The processor time of the main thread in each turn of the event loop while the work lasts, in microseconds. */
async function costOf(work: () => Promise<unknown>): Promise<number[]> {
  const turns: number[] = [];
  let isOver = false;
  let before = process.threadCpuUsage();
  const next = () => {
    const { user, system } = process.threadCpuUsage(before);
    turns.push(user + system);
    before = process.threadCpuUsage();
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  try {
    await work();
  } finally {
    isOver = true;
  }
  // What is over before the next turn had all of it.
  return turns.length === 0 ? [1] : turns;
}

const count = 24;
const large = { summary: 's', conversation_state: [{ role: 'user', content: 'word '.repeat(50_000) }] };
const times = (work: () => Promise<unknown>) => Promise.all(Array.from({ length: count }, work));

/** What one caller may ask for at once, on packets of 250 KB. */
const attacks: Readonly<Record<string, (service: TestService) => Promise<() => Promise<unknown>>>> = {
  async 'calls of a tool of MCP'(service) {
    const { id } = await createPacket(service, { context: large });
    return () => times(() => callTool(service, 'get_packet', { packet_id: id }));
  },
  async 'an A2A list of tasks with their messages'(service) {
    for (let index = 0; index < 12; index += 1) await createPacket(service, { context: large });
    return async () => {
      const { body, text } = await a2a(service, 'ListTasks', { pageSize: 12, historyLength: 2 });
      assert.equal(body.result?.tasks.length, 12, text.slice(0, 200));
    };
  },
  async 'pages of answer links'(service) {
    const question = { required: true, reason: 'r', question: 'Go on?' };
    const paths: string[] = [];
    // A page that is drawn once is kept, so each is of a packet of its own.
    for (let index = 0; index < count; index += 1) {
      const { id } = await createPacket(service, { context: large, hitl: question });
      await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } });
      const made = await service.call('POST', `/packets/${id}/answer-links`);
      assert.equal(made.status, 201, made.text);
      paths.push(new URL(made.body.url).pathname);
    }
    return () => Promise.all(paths.map(async (path) => assert.equal((await service.call('GET', `/${path}`)).status, 200)));
  },
  async 'a batch under a contract that is slow to check'(service) {
    await service.call('PUT', '/agents/resolver/contract', { body: { schema: product('allOf', { type: 'object' }) } });
    const packets = Array.from({ length: count }, () => packetRequest());
    return async () => {
      const { body, text } = await service.call('POST', '/packets/batch', { body: { packets } });
      assert.deepEqual([body.errors.length, body.errors[0].code], [count, 'CONTRACT_VIOLATION'], text.slice(0, 200));
      assert.match(body.errors[0].error, /took too many steps/);
    };
  },
};

// On PostgreSQL each read waits for the server, so that others get their turn anyway.

describe("A caller's work on large packets", () => {
  for (const [name, prepare] of Object.entries(attacks))
    test(`${name}: no turn of the event loop has most of it`, async (t) => {
      const service = await startService(t, { store: onDisk });
      // The first round loads what is loaded once, and a collection of garbage may fall into any turn of a round. What takes no
      // turns has most of every round.
      let share = 1;
      for (let round = 0; round < 12 && share >= 0.6; round += 1) {
        const turns = await costOf(await prepare(service));
        service.clock.turn(60);
        const total = turns.reduce((sum, cost) => sum + cost, 0);
        // The clock of a thread's processor time may not have moved.
        if (total > 0) share = Math.min(share, Math.max(...turns) / total);
      }
      assert.ok(share < 0.6, `${Math.round(share * 100)} %`);
    });
});

test('a large batch is validated in several turns of the event loop', async (t) => {
  const service = await startService(t, { store: onDisk });
  const turnsOf = (items: number) =>
    countTurns(async (turn) => {
      const packets = Array<unknown>(items).fill({ large: 'x'.repeat(1_100_000) });
      const { status, body, text } = await service.call('POST', '/packets/batch', { body: { packets } });
      assert.deepEqual([status, body.errors?.length], [400, items], text.slice(0, 200));
      return turn();
    });
  const alone = await turnsOf(1);
  const several = await turnsOf(8);
  assert.ok(several - alone >= 7, `${alone} turns with one item, ${several} with eight`);
});

test('lists of tasks with their messages, asked for at once, hold no more bytes than the large answers of a tenant may [H234]', async (t) => {
  const service = await startService(t, { store: onDisk });
  const context = { ...large, conversation_state: [{ role: 'user', content: 'word '.repeat(180_000) }] };
  for (let index = 0; index < 4; index += 1) await createPacket(service, { context });
  const list = async () => {
    const { body } = await a2a(service, 'ListTasks', { pageSize: 4, historyLength: 1 });
    return body.result?.tasks.length ?? body.error.data[0].metadata?.code ?? body.error;
  };
  // Each reads 3.6 MB, and the limit for a tenant is 40 MiB.
  const answers = await Promise.all(Array.from({ length: 30 }, list));
  assert.deepEqual(new Set(answers), new Set([4, 'SERVICE_UNAVAILABLE']));
  assert.equal(await list(), 4);
});

test("a tenant's large bodies and its calls of tools wait in one line for their turns", async (t) => {
  const service = await startService(t, { store: onDisk });
  const next = t.mock.method(Turns.prototype, 'next');
  const { id } = await createPacket(service, { context: large });
  const ofBody = new Set(next.mock.calls.map(({ arguments: [owner] }) => owner));
  next.mock.resetCalls();
  await callTool(service, 'get_packet', { packet_id: id });
  const ofCall = new Set(next.mock.calls.map(({ arguments: [owner] }) => owner));
  assert.equal(ofBody.size, 1);
  assert.deepEqual(ofBody, ofCall);
});
