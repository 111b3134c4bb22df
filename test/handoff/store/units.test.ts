import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import type { Packet } from '../../../src/handoff/model/packet.ts';
import type { Delivery } from '../../../src/handoff/model/webhook.ts';
import type { KeyFamily } from '../../../src/handoff/rules/exclusion.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { deliveries as deliveryNoun } from '../../../src/handoff/store/deliveries.ts';
import { createDueWalks } from '../../../src/handoff/store/due-walk.ts';
import { migrations } from '../../../src/handoff/store/migrations/index.ts';
import type { ReadDependencies } from '../../../src/handoff/store/noun.ts';
import type { Tables } from '../../../src/handoff/store/tables.ts';
import type { Unit } from '../../../src/handoff/store/units.ts';
import { createUnits } from '../../../src/handoff/store/units.ts';
import { noChannel } from '../../../src/handoff/store/webhooks.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { createIds, createSalts } from '../../../src/kit/id.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import { migrate } from '../../../src/kit/sql/migrate.ts';
import type { TestStore } from '../../support/store.ts';
import { everyStore, postgresql } from '../../support/stores.ts';
import { countTurns } from '../../support/until.ts';

for (const store of everyStore) {
  test(`a large unit has a transaction of its own, in turns with all others, on ${store.name}`, async (t) => {
    const { units } = await openUnits(t, store);
    const done: string[] = [];
    const turnOf = new Map<string, number>();
    await countTurns((turn) =>
      Promise.all(
        Object.entries({ a: 900_000, b: 300_000, c: 0, d: 3_000_000, e: 10, f: 0 }).map(([name, size]) =>
          units.commit({ tenant_number: 1 }, { size, work: () => void turnOf.set(name, turn()) }).then(() => done.push(name)),
        ),
      ),
    );
    assert.equal(done.join(''), 'acefbd');
    assert.deepEqual([turnOf.get('c'), turnOf.get('e')], [turnOf.get('e'), turnOf.get('f')]);
    assert.equal(new Set(turnOf.values()).size, 4);
  });
}

for (const store of everyStore) {
  test(`a packet's row has the root of its chain and the sources of its question, also of units of the same group, on ${store.name}`, async (t) => {
    const { units } = await openUnits(t, store);
    const key = (origin: string): KeyFamily => ({ origin, lineage: [] });
    const now = new Date();
    const source_agent = { id: 'a', name: 'A', framework: 'f' };
    const request = { metadata: { source_agent, target_agent: { id: 'b', name: 'B' } }, context: { summary: 'Work' } };
    const [one, two, three] = ['a', 'b', 'c'].map(
      (last) => newPacket(request, { id: `0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8${last}`, now, agentId: undefined }).packet as Packet,
    ) as [Packet, Packet, Packet];
    await units.commit(
      { tenant_number: 1 },
      {
        work({ packets }) {
          packets.insert(one, { source: key('creator') });
          packets.insert(two, { parent: one.id });
        },
      },
    );
    await units.commit(
      { tenant_number: 1 },
      { packets: [two.id], work: ({ packets }) => packets.insert(three, { parent: two.id, source: key('other') }) },
    );
    const saved = (source: KeyFamily | null) =>
      units.commit({ tenant_number: 1 }, { packets: [one.id], work: ({ packets }) => packets.save(one, { searchable: false, source }) });
    await Promise.all([saved(key('changer')), saved(null), saved(key('creator')), saved(key('changer'))]);
    const ids = [one.id, two.id, three.id];
    const read = await units.commit(
      { tenant_number: 1 },
      {
        packets: ids,
        work: ({ packets }) => ids.map((id) => [packets.root(id), packets.depth(id), packets.sources(id)]),
      },
    );
    assert.deepEqual(read, [
      [one.id, 1, ['creator', 'changer']],
      [one.id, 2, []],
      [one.id, 3, ['other']],
    ]);
  });
}

/** Units of work on a database with the schema of the service. */
async function openUnits(t: TestContext, store: TestStore) {
  const { url, drop } = await store.open('handoff');
  const database = openDatabase<Tables>(url);
  t.after(async () => {
    await database.close();
    await drop();
  });
  await migrate(database, migrations, systemClock);
  const newId = createIds();
  const units = createUnits(database, {
    newId: () => newId(new Date()),
    newSalt: createSalts(),
    clock: systemClock,
    walks: createDueWalks(true),
  });
  /** Creates a packet of a source agent; returns how many open packets the agent had before. */
  const create = (tenant: number, agent: string) =>
    units.commit(
      { tenant_number: tenant },
      {
        packets: [],
        openPacketsOf: [agent],
        work({ packets, openPacketCounts: open }) {
          const before = open.count(agent);
          open.add(agent);
          const source_agent = { id: agent, name: agent, framework: 'f' };
          const request = { metadata: { source_agent, target_agent: { id: 'b', name: 'B' } }, context: { summary: 'Work' } };
          packets.insert(newPacket(request, { id: newId(new Date()), now: new Date(), agentId: undefined }).packet);
          return before;
        },
      },
    );
  return { database, units, create };
}

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

for (const store of everyStore) {
  describe(`Counts of open packets on ${store.name}`, () => {
    test('are those of each source agent, also within a group and after a unit that is refused', async (t) => {
      const { units, create } = await openUnits(t, store);
      assert.deepEqual(await Promise.all([create(1, 'a'), create(1, 'a'), create(1, 'b'), create(2, 'a')]), [0, 1, 0, 0]);
      const refused = units.commit(
        { tenant_number: 1 },
        {
          openPacketsOf: ['a'],
          work({ openPacketCounts: open }) {
            open.add('a');
            throw new Error('refused');
          },
        },
      );
      const [, after] = await Promise.allSettled([refused, create(1, 'a')]);
      assert.deepEqual(after, { status: 'fulfilled', value: 2 });
    });

    test('add no counters for the source agents that callers name', async (t) => {
      const { database, create } = await openUnits(t, store);
      const names = async () =>
        (await database.reads.selectFrom('counters').select('name').orderBy('name').execute()).map(({ name }) => name);
      await create(1, 'a');
      const before = await names();
      await Promise.all(range(50).map((index) => create(1, `agent ${index}`)));
      assert.deepEqual(await names(), before);
    });
  });
}

test('on PostgreSQL the statements of a unit do not grow with the names that it gives, only with its searches for a packet', async (t) => {
  const { units } = await openUnits(t, postgresql);
  let statements = 0;
  const { query } = pg.Client.prototype;
  pg.Client.prototype.query = function (this: pg.Client, ...given: unknown[]) {
    statements += 1;
    return Reflect.apply(query, this, given);
  } as typeof query;
  t.after(() => {
    pg.Client.prototype.query = query;
  });
  const statementsOf = async (...work: Omit<Unit<unknown>, 'work'>[]): Promise<number> => {
    statements = 0;
    await Promise.all(work.map((needs) => units.commit({ tenant_number: 1 }, { ...needs, work: () => undefined })));
    return statements;
  };
  const names = (count: number) => range(count).map((index) => `name ${index}`);
  for (const need of ['openPacketsOf', 'counters', 'packets', 'webhooks', 'deliveryIds'] as const)
    assert.equal(await statementsOf({ [need]: names(100) }), await statementsOf({ [need]: names(1) }), need);
  const next = (target_agent: string, priorities: readonly string[]) => ({ claims: { target_agent, tags: [], priorities } });
  const one = await statementsOf(next('a', ['high']));
  assert.equal(await statementsOf(next('a', ['low', 'normal', 'high', 'critical'])), one);
  // A search, a look at where the next one begins, and a setting of their plans before and after.
  assert.equal(await statementsOf(...names(10).map((agent) => next(agent, ['high']))), one + 9 * 4);
});

for (const store of everyStore) {
  test(`the body of an event is kept until the last delivery that needs it is removed, on ${store.name}`, async (t) => {
    const { database, units } = await openUnits(t, store);
    const deliveries = deliveryNoun.reads({ database } as ReadDependencies).ofAll;
    const day = (number: number) => new Date(Date.UTC(2026, 0, number));
    const hook = {
      kind: 'webhook',
      ...noChannel,
      url: 'https://a.example',
      events: ['packet.created'],
      secret: 's',
      old_secret: null,
      old_secret_until: null,
      active: true,
    } as const;
    const dates = { failing_since: null, created_at: '', updated_at: '', removed_at: null, disabled_reason: null };
    await units.commit(
      { tenant_number: 1 },
      {
        work({ webhooks }) {
          for (const id of ['one', 'two']) webhooks.insert({ seq: 0, id, ...hook, ...dates });
        },
      },
    );
    const announce = (id: string, packet_id: string | null) =>
      units.commit(
        { tenant_number: 1 },
        {
          allWebhooks: true,
          work: (tx) => {
            const event = { id, type: 'ping', packet_id, timestamp: day(1).toISOString(), body: () => `body of ${id}` };
            return tx.deliveries.send(event, packet_id === null ? tx.webhooks.all().slice(0, 1) : tx.webhooks.all());
          },
        },
      );
    const [first, second] = (await announce('event', 'packet')) as [Delivery, Delivery];
    const [third] = (await announce('ping', null)) as [Delivery];
    const end = ({ id }: Delivery, on: Date) =>
      units.commit(
        { tenant_number: 1 },
        {
          deliveryIds: [id],
          work(tx) {
            const delivery = tx.deliveries.byId(id)!;
            tx.deliveries.update(delivery, { ...delivery, status: 'delivered', due_at: null }, on);
          },
        },
      );
    const bodies = async () => [(await deliveries.message(1, 'event'))?.body, (await deliveries.message(1, 'ping'))?.body];
    await end(first, day(2));
    assert.equal(await deliveries.forget('ended', day(2), 10), 0);
    assert.equal(await deliveries.forget('ended', day(3), 10), 1);
    assert.deepEqual(await bodies(), ['body of event', 'body of ping']);
    await end(second, day(4));
    await end(third, day(5));
    assert.equal(await deliveries.forget('ended', day(6), 1), 1);
    assert.deepEqual(await bodies(), [undefined, 'body of ping']);
    assert.equal(await deliveries.forget('ended', day(6), 10), 1);
    assert.deepEqual(await bodies(), [undefined, undefined]);
  });
}
