import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Kysely, sql } from 'kysely';

import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { phrasesOf } from '../../../src/handoff/rules/tokenizer.ts';
import { openWithReaders } from '../../../src/handoff/store/readers.ts';
import { openStore, type Store } from '../../../src/handoff/store/store.ts';
import type { Tables } from '../../../src/handoff/store/tables.ts';
import type { ServiceError } from '../../../src/kit/errors.ts';
import { createIds } from '../../../src/kit/id.ts';
import { connectTo } from '../../support/databases.ts';
import { TestClock } from '../../support/service.ts';
import type { TestStore } from '../../support/store.ts';
import { onDisk, postgresql } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

const agent = { id: 'a', name: 'A', framework: 'f' };
const newId = createIds();

/** Stores three packets for a tenant. */
async function fill(store: Store, tenant: number): Promise<void> {
  await store.whole(tenant).commit({
    work({ packets }) {
      for (let index = 0; index < 3; index += 1) {
        const request = { metadata: { source_agent: agent, target_agent: agent }, context: { summary: 'a '.repeat(200) } };
        packets.insert(newPacket(request, { id: newId(new Date()), now: new Date(), agentId: undefined }).packet);
      }
    },
  });
}

const page = { limit: 20, offset: 0 };
const list = { ...page, full: false };

/** The long reads of a tenant. */
const longReads: Record<string, (store: Store, tenant: number) => unknown> = {
  searches: (store, tenant) => store.whole(tenant).packets.search({ ...page, phrases: phrasesOf('a'), filter: {}, from: undefined }),
  'filtered lists': (store, tenant) => store.whole(tenant).packets.page({ ...list, filter: { tags: ['x'], source_agent: 'a' } }),
  'deep pages': (store, tenant) => store.whole(tenant).packets.page({ ...list, offset: 2000, filter: {} }),
  'the audit log': (store, tenant) => store.whole(tenant).trail.audit({ actor: 'a' }, page),
  deliveries: (store, tenant) => store.whole(tenant).deliveries.of('webhook', 'unknown', undefined, page),
  'dead letters': (store, tenant) => store.whole(tenant).deliveries.deadLetters(undefined, page),
  'retried deliveries': (store, tenant) => store.whole(tenant).deliveries.failed({ due: undefined }, 20),
  agents: (store, tenant) => store.whole(tenant).agents.page(page),
};

/** The tenants, how many reads one of them begins, and how many the other begins after them. */
const hostile = 7;
const victim = 8;
const flood = 24;
const few = 3;

/** Opens a store with packets of both tenants. */
async function opened(t: TestContext, kind: TestStore): Promise<{ store: Store; clock: TestClock; url: string }> {
  const { url, drop } = await kind.open('handoff');
  const clock = new TestClock();
  const store = await openStore({ databaseUrl: url, clock: clock.read, newId: () => newId(clock.read()) });
  t.after(async () => {
    await store.close();
    await drop();
  });
  await fill(store, hostile);
  await fill(store, victim);
  return { store, clock, url };
}

const beginAll = (begin: (tenant: number) => Promise<unknown>): Promise<unknown> =>
  Promise.all([...Array<number>(flood).fill(hostile), ...Array<number>(few).fill(victim)].map(begin));

// A store in memory reads synchronously, so nothing waits there.
test('long reads alternate between tenants on SQLite: a tenant with a few does not wait for a flood of another [H98]', async (t) => {
  const { store, clock } = await opened(t, onDisk);
  for (const [name, read] of Object.entries(longReads)) {
    // Threads start at their first use, which can take long enough to send a tenant to the slow lane.
    await Promise.all([hostile, victim].map((tenant) => read(store, tenant)));
    clock.turn(30);
    const ended: number[] = [];
    await beginAll(async (tenant) => {
      await read(store, tenant);
      ended.push(tenant);
    });
    const before = ended.slice(0, ended.lastIndexOf(victim)).filter((tenant) => tenant === hostile).length;
    // In the order of their beginning, the whole flood would end first.
    assert.ok(before <= flood / 2, `${name}: ${before} of ${flood} ended first`);
  }
});

test('long reads of one tenant use at most two of the four connections for them on PostgreSQL [H98]', async (t) => {
  const { store, url } = await opened(t, postgresql);
  const [lock, observer] = await Promise.all([connectTo(t, url), connectTo(t, url)]);
  // Lists of packets, searches and the audit log are other works of the same queue.
  for (const name of ['dead letters', 'retried deliveries', 'agents']) {
    await lock.query('begin');
    await lock.query('lock table deliveries, agents in access exclusive mode');
    const cancelled: number[] = [];
    const ended = beginAll(async (tenant) => {
      const error = await Promise.resolve(longReads[name]!(store, tenant)).then(
        () => undefined,
        (refusal: ServiceError) => refusal,
      );
      if (error === undefined) return;
      assert.equal(error.code, 'SERVICE_UNAVAILABLE');
      cancelled.push(tenant);
    });
    const pids = `select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await until(async () => (await observer.query(pids)).rowCount! >= 4);
    // The server does not show whose reads are running; their failure does.
    await observer.query(`select pg_cancel_backend(pid) from (${pids}) as waiting`);
    await lock.query('rollback');
    await ended;
    assert.deepEqual(cancelled.toSorted(), [hostile, hostile, victim, victim], name);
  }
});

/** Lanes with their readers on an empty SQLite. */
async function openLanes(t: TestContext) {
  const { url, drop } = await onDisk.open();
  const { database, lanes, stopReaders } = openWithReaders(url, () => new Date());
  t.after(async () => {
    await stopReaders();
    await database.close();
    await drop();
  });
  return { database, lanes };
}

/** A query that takes time: it counts to a number. */
const count = (most: number) => (db: Kysely<Tables>) =>
  sql`with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ${most}) select count(*) from numbers`.execute(
    db,
  );

test('in the slow lane on SQLite a tenant does not wait for the statements of three others [H98]', async (t) => {
  const { lanes } = await openLanes(t);
  const ended: number[] = [];
  const read = (tenant: number, most: number) => lanes.run(tenant, (reader) => reader.read(count(most)), { long: true });
  // Starts the threads, which can take longer than a statement.
  await Promise.all([1, 2, 3, victim].map((tenant) => read(tenant, 1)));
  const others = [1, 2, 3].map((tenant) => read(tenant, 2_000_000).then(() => ended.push(tenant)));
  await read(victim, 1).then(() => ended.push(victim));
  assert.deepEqual(ended, [victim]);
  await Promise.all(others);
});

// Only there are reads measured by the time of a thread.
test('a read on SQLite is charged with its own queries, not with those of jobs, metrics and other reads', async (t) => {
  const { database, lanes } = await openLanes(t);
  const countLong = count(1_000_000);
  let tookMs = 0;
  const read = (tenant: number, work: (db: Kysely<Tables>) => Promise<unknown>) =>
    lanes.run(tenant, async (reader) => {
      const timed = await reader.read(work);
      tookMs = timed.tookMs;
      return timed;
    });
  await read(hostile, countLong);
  const longMs = tookMs;
  // Another tenant, in the fast lane.
  await read(victim, async (db) => {
    const short = sql`select 1`;
    await short.execute(db);
    await countLong(database.longReads);
    await short.execute(db);
  });
  assert.ok(tookMs < longMs / 2, `${tookMs} of ${longMs} ms`);
});
