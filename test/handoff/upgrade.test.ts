import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import pg from 'pg';

import { maintain } from '../../src/handoff/maintenance.ts';
import { migrations } from '../../src/handoff/store/migrations/index.ts';
import { assertSound, looking } from '../support/consistency.ts';
import { answersTo, continues, fillSettings } from '../support/filled.ts';
import { temporaryFolder } from '../support/folder.ts';
import { createPacket, startService, TestClock, type TestService } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';
import { until } from '../support/until.ts';
import { assertAdditive, assertAnswers, databasesOf, type ExpectedOfHandoff, handoff, schemaOf } from '../support/upgrade.ts';

const { fixtures, expectedOf, openFixture } = databasesOf(handoff);

/** A service on the database at the time at which the earlier version stopped. */
const upgraded = (t: TestContext, databaseUrl: string, { now }: ExpectedOfHandoff): Promise<TestService> =>
  startService(t, { databaseUrl, clock: new TestClock(now), settings: fillSettings });

for (const fixture of fixtures) {
  for (const store of storesOfSeveral) {
    describe(`A database of version ${fixture} on ${store.name}`, () => {
      test('is brought up to date at the start: every answer is as before, and its schema is that of a new database', async (t) => {
        const expected = await expectedOf(fixture);
        const { url, drop } = await openFixture[store.name]!(fixture);
        const service = await upgraded(t, url, expected);
        t.after(drop);
        assert.equal(service.handoff.adminKey, undefined);
        assertAnswers(await answersTo(service, expected.filled), expected.answers);
        await continues(t, service, expected.filled);
        await assertSound(url);
        const fresh = await startService(t, { store });
        assert.deepEqual(await schemaOf(url), await schemaOf(fresh.databaseUrl));
      });

      test('can be exported as it is, and its export be imported', async (t) => {
        const expected = await expectedOf(fixture);
        const { url, drop } = await openFixture[store.name]!(fixture);
        t.after(drop);
        const target = await store.open();
        const folder = temporaryFolder(t);
        const file = join(folder, 'data.jsonl');
        const sourceOf = (databaseUrl: string) => ({ environment: { SERVICE_DATABASE_URL: databaseUrl }, config: undefined });
        const applied = () => looking(url, ({ query }) => query('select name from migrations order by name'));
        const before = await applied();
        await maintain('export', file, sourceOf(url), () => undefined);
        assert.deepEqual(await applied(), before);
        await maintain('import', file, sourceOf(target.url), () => undefined);
        const service = await upgraded(t, target.url, expected);
        t.after(target.drop);
        assertAnswers(await answersTo(service, expected.filled), expected.answers);
      });
    });
  }

  test(`Two instances that start at once on a PostgreSQL of version ${fixture}, while that version works on it, lose nothing`, async (t) => {
    const expected = await expectedOf(fixture);
    const { url, drop } = await openFixture.PostgreSQL!(fixture);
    let ended = false;
    const callers = [1, 2, 3].map((number) => earlierVersion(url, number, () => ended));
    const instances = await whileLocked(url, () => Promise.all([upgraded(t, url, expected), upgraded(t, url, expected)])).finally(() => {
      ended = true;
    });
    t.after(drop);
    const written = await Promise.all(callers);
    assert.ok(
      written.every((count) => count > 0),
      `${written}`,
    );
    const found = await looking(url, ({ query }) => query(`select value from counters where tenant = 9 order by name`));
    assert.deepEqual(
      found.map(({ value }) => value),
      written,
    );
    const applied = await looking(url, ({ query }) => query('select name from migrations order by name'));
    assert.deepEqual(
      applied.map(({ name }) => name),
      migrations.map(({ name }) => name),
    );
    for (const one of instances) assertAnswers(await answersTo(one, expected.filled), expected.answers);
    const made = await Promise.all(instances.flatMap((one) => [createPacket(one), createPacket(one)]));
    assert.equal(new Set(made.map(({ id }) => id)).size, 4);
    await assertSound(url);
  });
}

/** Starts instances on a database whose table of migrations is locked until two of them wait, so that none is done before another begins. */
async function whileLocked<T>(url: string, start: () => Promise<T>): Promise<T> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query('begin; lock table migrations in access exclusive mode');
    const starting = start();
    const state = { ended: false };
    const end = () => {
      state.ended = true;
    };
    starting.then(end, end);
    const waiting = `select count(*)::integer as count from pg_locks where not granted and locktype in ('relation', 'advisory')
      and database = (select oid from pg_database where datname = current_database())`;
    await until(async () => state.ended || (await client.query(waiting)).rows[0].count >= 2);
    await client.query('commit');
    return await starting;
  } finally {
    await client.end();
  }
}

/**
 * Writes as an instance of the earlier version does, in transactions of several tables that it repeats after a deadlock, until
 * `ended`; returns how many it committed. The tenant of the rows is unknown to the service.
 */
async function earlierVersion(url: string, number: number, ended: () => boolean): Promise<number> {
  const client = new pg.Client(url);
  await client.connect();
  let count = 0;
  try {
    while (!ended() || count === 0) {
      try {
        await client.query('begin');
        await client.query(`update deliveries set updated_at = updated_at where seq = (select min(seq) from deliveries)`);
        await client.query(`update packets set updated_at = updated_at where seq = $1`, [number]);
        await client.query(
          `insert into counters (tenant, name, value) values (9, $1, 1) on conflict (tenant, name) do update set value = counters.value + 1`,
          [`earlier:${number}`],
        );
        await client.query('commit');
        count += 1;
      } catch (error) {
        await client.query('rollback');
        if (!['40001', '40P01'].includes((error as { code?: string }).code ?? '')) throw error;
      }
    }
    return count;
  } finally {
    await client.end();
  }
}

describe('Migrations after the first schema', () => {
  test('only add a table, an index, a column that may be null or has a default, or values, or replace an index, so that the previous version works on', () => {
    assertAdditive(migrations.slice(1));
  });

  test('are recorded in the order of their names', () => {
    const names = migrations.map(({ name }) => name);
    assert.deepEqual(names, names.toSorted());
  });
});
