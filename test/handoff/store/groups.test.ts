import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';
import { GroupCommit, type Outcome } from '../../../src/handoff/store/engine/groups.ts';
import { inSession } from '../../../src/handoff/store/engine/in-session.ts';
import type { Session } from '../../../src/handoff/store/engine/session.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import type { Database, DatabaseOptions } from '../../../src/kit/sql/dialect.ts';
import { looking } from '../../support/consistency.ts';
import { injectFault } from '../../support/faults.ts';
import type { TestStore } from '../../support/store.ts';
import { everyStore } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

interface Tables {
  notes: { id: number; text: string };
}

/** A unit that writes a row, is refused, or throws an unexpected exception. */
type Unit = { id: number; text?: string; refused?: boolean; faulty?: boolean; background?: boolean };

interface Bench {
  url: string;
  database: Database<Tables>;
  submit: (unit: Unit) => Promise<unknown>;
  waiting(): number;
  /** The units of every transaction that was started, in order. */
  transactions: Unit[][];
  /** The stored rows. */
  ids: () => Promise<number[]>;
  /** Runs after each commit. */
  tell: () => void;
  /** Runs in the next transaction, between its reads and its writes. */
  meanwhile: (() => Promise<void>) | undefined;
}

/** A database with one table, and groups that write notes into it. */
async function open(t: TestContext, store: TestStore, options: DatabaseOptions = {}): Promise<Bench> {
  const { url, drop } = await store.open();
  const database = openDatabase<Tables>(url, options);
  await database.transaction(async (tx) => {
    await sql.raw('create table notes (id integer primary key, text text not null, owner integer, position integer)').execute(tx);
  });
  t.after(async () => {
    await database.close();
    await drop();
  });
  const transactions: Unit[][] = [];
  const bench: Pick<Bench, 'url' | 'database' | 'transactions' | 'tell' | 'meanwhile'> = {
    ...{ url, database, transactions, meanwhile: undefined },
    tell: () => undefined,
  };

  async function runGroup(session: Session, units: readonly Unit[]): Promise<Outcome<unknown>[]> {
    transactions.push([...units]);
    await session.find(
      'notes',
      ['id'],
      units.map(({ id }) => ({ id })),
    );
    const interrupt = bench.meanwhile;
    bench.meanwhile = undefined;
    await interrupt?.();
    if (units.some(({ faulty }) => faulty)) throw new TypeError('a fault of the program');
    const written = units.filter(({ refused }) => !refused);
    session.insert(
      'notes',
      written.map(({ id, text = '' }) => ({ id, text })),
    );
    return units.map((unit) => (unit.refused ? { error: new ServiceError('CONFLICT', `no ${unit.id}`) } : { result: unit.id }));
  }

  const groups = new GroupCommit<Unit>({
    database,
    async write(units) {
      const outcomes = await inSession(database, (session) => runGroup(session, units), { pipelined: true });
      return { outcomes, tell: () => bench.tell() };
    },
    isBackground: ({ background }) => background === true,
    sizeOf: () => 0,
  });
  const ids = async () => (await database.reads.selectFrom('notes').select('id').orderBy('id').execute()).map(({ id }) => id);
  return Object.assign(bench, { submit: (unit: Unit) => groups.submit(unit), waiting: () => groups.waiting, ids });
}

const range = (count: number, from = 1) => Array.from({ length: count }, (_, index) => from + index);
const notes = (from: number, to: number) => range(to - from + 1, from).map((id) => ({ id, text: 'long', owner: 0 }));
const submitAll = ({ submit }: Bench, units: Unit[]) => Promise.allSettled(units.map(submit));
const sizes = ({ transactions }: Bench) => transactions.map(({ length }) => length);
const reasonsOf = (settled: PromiseSettledResult<unknown>[]) => settled.map((one) => (one.status === 'rejected' ? one.reason : undefined));

for (const store of everyStore) {
  describe(`Group commit on ${store.name}`, () => {
    test('concurrent units share one transaction, in their order, and each gets its own result', async (t) => {
      const bench = await open(t, store);
      const submitted = submitAll(
        bench,
        range(20).map((id) => ({ id })),
      );
      assert.equal(bench.waiting(), 20);
      assert.deepEqual(
        (await submitted).map((one) => one.status === 'fulfilled' && one.value),
        range(20),
      );
      assert.deepEqual(
        bench.transactions.map((units) => units.map(({ id }) => id)),
        [range(20)],
      );
      assert.equal(bench.waiting(), 0);
      assert.deepEqual(await bench.ids(), range(20));
    });

    test('what throws after a commit ends the process, and no unit is written again or refused', async (t) => {
      const bench = await open(t, store);
      const thrown: unknown[] = [];
      process.setUncaughtExceptionCaptureCallback((error) => thrown.push(error));
      t.after(() => process.setUncaughtExceptionCaptureCallback(null));
      const fault = new TypeError('a fault of the program');
      bench.tell = () => {
        throw fault;
      };
      const submitted = await submitAll(bench, [{ id: 1 }, { id: 2 }]);
      assert.deepEqual(
        submitted.map(({ status }) => status),
        ['fulfilled', 'fulfilled'],
      );
      await until(() => thrown.length > 0);
      assert.deepEqual([thrown, sizes(bench)], [[fault], [2]]);
    });

    test('units of the next two turns join the transaction; a unit that arrives alone does not wait', async (t) => {
      const bench = await open(t, store);
      const turn = () => new Promise((resolve) => void setImmediate(resolve));
      const submitted: Promise<unknown>[] = [];
      for (let id = 1; id <= 8; id += 2) {
        submitted.push(submitAll(bench, [{ id }, { id: id + 1 }]));
        await turn();
      }
      await Promise.all(submitted);
      assert.deepEqual(sizes(bench).slice(0, 1), [6]);
      const alone = bench.submit({ id: 9 });
      await turn();
      assert.equal(bench.waiting(), 0, 'the unit does not wait');
      await alone;
      assert.deepEqual(await bench.ids(), range(9));
    });

    test('background units wait for one another for up to 16 turns, or for the next unit of a request', async (t) => {
      const bench = await open(t, store);
      const turn = () => new Promise((resolve) => void setImmediate(resolve));
      const submitted: Promise<unknown>[] = [];
      for (let id = 1; id <= 16; id += 1) {
        submitted.push(bench.submit({ id, background: true }));
        await turn();
      }
      await Promise.all(submitted);
      assert.deepEqual(sizes(bench), [16]);
      submitted.push(
        submitAll(bench, [
          { id: 17, background: true },
          { id: 18, background: true },
        ]),
      );
      await turn();
      submitted.push(bench.submit({ id: 19 }));
      await turn();
      await turn();
      assert.equal(bench.waiting(), 0, 'the unit of a request does not wait');
      await Promise.all(submitted);
      assert.deepEqual(sizes(bench), [16, 3]);
    });

    test('units submitted during a transaction wait for the next one, at most 256 together', async (t) => {
      const bench = await open(t, store);
      let later: Promise<unknown> = Promise.resolve();
      bench.meanwhile = async () => {
        later = submitAll(
          bench,
          range(600, 2).map((id) => ({ id })),
        );
      };
      await bench.submit({ id: 1 });
      await later;
      assert.deepEqual(sizes(bench), [1, 256, 256, 88]);
      assert.deepEqual(await bench.ids(), range(601));
    });

    test('a unit is answered once its row is visible to everybody', async (t) => {
      const bench = await open(t, store);
      await bench.submit({ id: 1 });
      assert.deepEqual(await looking(bench.url, async ({ query }) => (await query('select id from notes')).map(({ id }) => id)), [1]);
    });

    test('every write of a session is committed with it, whatever its size and whether or not it is awaited', async (t) => {
      const { database, ids } = await open(t, store, { charactersPerTurn: 1 });
      await inSession(database, async (session) => {
        session.insert('notes', notes(1, 5));
        session.insert('notes', notes(6, 10));
      });
      assert.deepEqual(await ids(), range(10));
    });

    test('a session that fails writes nothing, even if some of its writes are still running', async (t) => {
      const { database, ids } = await open(t, store, { charactersPerTurn: 1 });
      const sessions: Session[] = [];
      const failed = inSession(database, async (session) => {
        sessions.push(session);
        session.insert('notes', notes(1, 50));
        await Promise.all([session.insert('notes', notes(51, 100)), Promise.reject(new Error('no'))]);
      });
      await assert.rejects(failed, /no/);
      await assert.rejects(async () => sessions[0]!.insert('notes', notes(101, 101)), /has ended/);
      await assert.rejects(async () => sessions[0]!.find('notes', ['id'], [{ id: 1 }]), /has ended/);
      // The next transaction of the same connection contains nothing of the failed one.
      await inSession(database, async (session) => session.insert('notes', notes(200, 200)));
      assert.deepEqual(await ids(), [200]);
    });

    test('a transaction that cannot begin writes nothing', async (t) => {
      const { database, ids } = await open(t, store);
      const fault = injectFault(1);
      t.after(fault.remove);
      const write = inSession(
        database,
        async (session) => {
          await Promise.all([session.begun, session.find('notes', ['id'], [{ id: 1 }])]);
          session.insert('notes', notes(1, 2));
        },
        { pipelined: true },
      );
      await assert.rejects(write);
      fault.remove();
      await inSession(database, async (session) => session.insert('notes', notes(3, 3)));
      assert.deepEqual(await ids(), [3]);
    });

    test('a unit is answered once its commit is on disk', async (t) => {
      const { database } = await open(t, store);
      const isPostgres = store.name === 'PostgreSQL';
      if (isPostgres)
        await database.transaction((tx) =>
          sql.raw("alter table notes add column flushed text default current_setting('synchronous_commit')").execute(tx),
        );
      const read = async (session: Session): Promise<unknown> => {
        await session.begun;
        session.insert('notes', [{ id: 1, text: '' }]);
        const [found] = isPostgres
          ? await session.find('notes', ['flushed'], [{ id: 1 }])
          : await session.find(
              'pragma_synchronous',
              ['synchronous'],
              [1, 2].map((synchronous) => ({ synchronous })),
            );
        return found![0];
      };
      assert.equal(await inSession(database, read, { pipelined: true }), isPostgres ? 'on' : 2);
    });

    test('a refused unit writes nothing and does not affect the others of its transaction', async (t) => {
      const bench = await open(t, store);
      const settled = await submitAll(bench, [{ id: 1 }, { id: 2, refused: true }, { id: 3 }]);
      assert.deepEqual(
        reasonsOf(settled).map((reason) => reason?.code),
        [undefined, 'CONFLICT', undefined],
      );
      assert.deepEqual(sizes(bench), [3]);
      assert.deepEqual(await bench.ids(), [1, 3]);
    });

    test('the units of a group that the database rejects run one by one, so that only the bad one fails', async (t) => {
      const bench = await open(t, store);
      await bench.submit({ id: 2 });
      const settled = await submitAll(
        bench,
        range(4).map((id) => ({ id })),
      );
      const reasons = reasonsOf(settled);
      assert.deepEqual(
        reasons.map((reason) => reason !== undefined),
        [false, true, false, false],
      );
      assert.ok(bench.database.isDuplicate(reasons[1]));
      // On PostgreSQL another instance may just have written the row, and the unit may act differently once it reads it.
      const attempts = store.name === 'PostgreSQL' ? [1, 1, 1] : [1];
      assert.deepEqual(sizes(bench), [1, 4, 1, ...attempts, 1, 1]);
      assert.deepEqual(await bench.ids(), range(4));
    });

    test('an unexpected exception fails only its own unit: the others run, and so does the next group', async (t) => {
      const bench = await open(t, store);
      const settled = await submitAll(bench, [{ id: 1 }, { id: 2, faulty: true }, { id: 3 }]);
      assert.deepEqual(
        reasonsOf(settled).map((reason) => reason?.constructor),
        [undefined, TypeError, undefined],
      );
      assert.equal(await bench.submit({ id: 4 }), 4);
      assert.deepEqual(await bench.ids(), [1, 3, 4]);
    });

    test('an unavailable database fails the whole group with 503 without a retry; later groups run', async (t) => {
      const bench = await open(t, store);
      await bench.submit({ id: 1 });
      // One megabyte each: more than the free pages.
      const units = range(5, 2).map((id) => ({ id, text: 'x'.repeat(1_000_000) }));
      const { breakIt, mend } = store.name === 'PostgreSQL' ? cutConnections(bench) : fillDisk(bench);
      await breakIt();
      const settled = await submitAll(bench, units);
      for (const reason of reasonsOf(settled)) {
        assert.ok(reason instanceof ServiceError);
        assert.equal(reason.code, 'SERVICE_UNAVAILABLE');
        assert.ok(bench.database.isUnavailable(reason.cause), String(reason.cause));
      }
      assert.deepEqual(sizes(bench), [1, 5]);
      await mend();
      assert.deepEqual(await bench.ids(), [1]);
      assert.equal(await bench.submit({ id: 9 }), 9);
      assert.deepEqual(await bench.ids(), [1, 9]);
    });
  });
}

type Outage = { breakIt: () => Promise<unknown>; mend: () => Promise<unknown> };

/** Limits SQLite to its current pages, which acts like a full disk. */
function fillDisk({ database }: Bench): Outage {
  const limitPages = (count: number) => database.transaction((tx) => sql.raw(`pragma max_page_count = ${count}`).execute(tx));
  return { breakIt: () => limitPages(1), mend: () => limitPages(1_000_000) };
}

/** More connections than the pool for reads has. */
const connections = 20;

/** Terminates every connection to the database while the group's transaction is open. */
function cutConnections(bench: Bench): Outage {
  return {
    async breakIt() {
      bench.meanwhile = async () => {
        const client = new pg.Client(bench.url);
        await client.connect();
        await client.query(
          'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
        );
        await client.end();
      };
    },
    // A read may be the first to use a terminated connection: it fails, and the pool discards the connection.
    async mend() {
      for (let cut = 0; cut < connections; cut += 1) {
        const failure = await bench.database.ping().then(
          () => undefined,
          (error: unknown) => error,
        );
        if (failure === undefined) return;
        assert.ok(bench.database.isUnavailable(failure), String(failure));
      }
    },
  };
}
