import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { describe, test } from 'node:test';
import { sql } from 'kysely';
import { inSession } from '../../src/handoff/store/engine/in-session.ts';
import type { Session } from '../../src/handoff/store/engine/session.ts';
import { systemClock } from '../../src/kit/clock.ts';
import { databaseUrlProblem, isShared, openDatabase } from '../../src/kit/sql/database.ts';
import { compileOnce, type Database, SerialQueue } from '../../src/kit/sql/dialect.ts';
import { type Migration, migrate } from '../../src/kit/sql/migrate.ts';
import { createTestDatabase } from '../support/databases.ts';
import { everyStore, onDisk, postgresql } from '../support/stores.ts';

import { all, openThings, row, type Tables, things } from '../support/things.ts';

for (const store of everyStore) {
  describe(`A transaction on ${store.name}`, () => {
    test('is invisible before its commit, and leaves nothing when it fails', async (t) => {
      const { database } = await openThings(t, store);
      let seen: Promise<unknown[]> | undefined;
      await database.transaction(async (tx) => {
        await tx.insertInto('things').values(row('1')).execute();
        seen = all(database);
        // On PostgreSQL and on disk the read is answered during the transaction; in memory it waits.
        if (store.name !== 'SQLite in memory') assert.deepEqual(await seen, []);
        await tx.insertInto('things').values(row('2')).execute();
      });
      if (store.name === 'SQLite in memory') assert.equal((await seen!).length, 2);
      await assert.rejects(
        database.transaction(async (tx) => {
          await tx.deleteFrom('things').execute();
          throw new Error('no');
        }),
        /^Error: no$/,
      );
      assert.equal((await all(database)).length, 2);
    });

    test('a query compiled once applies its parameters and its constants', async (t) => {
      const { database } = await openThings(t, store);
      await inSession(database, (session) =>
        Promise.resolve(session.insert('things', [row('1', 1), row('2', 2), row('3', 3), row('1', 9, 'b')])),
      );
      const query = database.query<{ least: number; kind: string }, { id: string }>((db, { kind, least }) =>
        db
          .selectFrom('things')
          .select('id')
          .where('kind', '=', kind)
          .where('value', '>=', least)
          .where('id', '<>', '3')
          .orderBy('id', 'desc'),
      );
      const found = async (least: number, kind: string) => (await query.all({ least, kind })).map(({ id }) => id);
      assert.deepEqual(await found(1, 'a'), ['2', '1']);
      assert.deepEqual(await found(2, 'a'), ['2']);
      assert.deepEqual(await found(1, 'b'), ['1']);
      assert.equal((await query.first({ least: 1, kind: 'a' }))!.id, '2');
      assert.equal(await query.first({ least: 10, kind: 'a' }), undefined);
    });
  });

  test(`A snapshot on ${store.name} sees one moment, and what is written meanwhile is there after it`, async (t) => {
    const { database, url } = await openThings(t, store);
    const write = (id: string) => inSession(database, async (session) => session.insert('things', [row(id)]));
    await write('1');
    let writing: Promise<void> | undefined;
    await database.snapshot(async (tx) => {
      const read = async () => (await tx.selectFrom('things').select('id').execute()).map(({ id }) => id);
      assert.deepEqual(await read(), ['1']);
      writing = write('2');
      // In memory the write waits for the snapshot.
      if (isShared(url)) await writing;
      assert.deepEqual(await read(), ['1']);
    });
    await writing;
    assert.equal((await all(database)).length, 2);
  });

  describe(`Migrations on ${store.name}`, () => {
    const more: Migration = {
      name: '0002-more',
      up: () => ['alter table things add column note text', "insert into things (id, kind, note) values ('m', 'a', 'made')"],
    };

    test('are each applied once, in order', async (t) => {
      const { database } = await openThings(t, store);
      await migrate(database, [things], systemClock);
      await migrate(database, [things, more], systemClock);
      await migrate(database, [things, more], systemClock);
      const applied = await sql<{ name: string }>`select name from migrations order by name`.execute(database.reads);
      assert.deepEqual(
        applied.rows.map(({ name }) => name),
        ['0001-things', '0002-more'],
      );
      assert.equal((await all(database)).length, 1);
    });

    test('that fail leave the schema unchanged', async (t) => {
      const { database } = await openThings(t, store);
      const broken: Migration = { name: '0002-broken', up: () => ['create table half (id text)', 'this is no SQL'] };
      await assert.rejects(migrate(database, [things, broken], systemClock));
      await assert.rejects(sql`select * from half`.execute(database.reads));
      await migrate(database, [things, more], systemClock);
      assert.equal((await all(database)).length, 1);
    });

    test('of two services in one database are recorded separately, and neither mistakes the other for another version of itself [F84]', async (t) => {
      const { database } = await openThings(t, store);
      const chains: Migration = { name: '0001-chains', up: () => ['create table chains (id text)'] };
      await migrate(database, [chains], systemClock, 'other_migrations');
      await migrate(database, [chains], systemClock, 'other_migrations');
      await migrate(database, [things], systemClock);
      const noted = await sql<{ name: string }>`select name from other_migrations`.execute(database.reads);
      assert.deepEqual(
        noted.rows.map(({ name }) => name),
        ['0001-chains'],
      );
    });

    test('of a newer program are not touched', async (t) => {
      const { database } = await openThings(t, store);
      await migrate(database, [things, more], systemClock);
      await assert.rejects(migrate(database, [things], systemClock), /another version.*0002-more/);
    });
  });
}

test('Ten instances that start together on one PostgreSQL migrate it once', async (t) => {
  const { url, drop } = await postgresql.open();
  const databases = Array.from({ length: 10 }, () => openDatabase<Tables>(url));
  t.after(async () => {
    await Promise.all(databases.map((database) => database.close()));
    await drop();
  });
  await Promise.all(databases.map((database) => migrate(database, [things], systemClock)));
  assert.deepEqual(await all(databases[3]!), []);
});

describe('A serial queue', () => {
  test('runs its work in order, one at a time, and continues after a failure', async () => {
    const queue = new SerialQueue();
    const log: string[] = [];
    const work = (name: string) => async () => {
      log.push(`${name} begins`);
      await new Promise(setImmediate);
      log.push(`${name} ends`);
      if (name === 'b') throw new Error(name);
      return name;
    };
    const taken = await Promise.allSettled([queue.run(work('a')), queue.run(work('b')), queue.run(work('c'))]);
    assert.deepEqual(
      taken.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(log, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    await queue.idle();
    assert.equal(queue.waiting, 0);
  });

  test('is idle when it has also run work that was added meanwhile', async () => {
    const queue = new SerialQueue();
    let second = false;
    void queue.run(async () => {
      void queue.run(async () => {
        second = true;
      });
    });
    await queue.idle();
    assert.equal(second, true);
  });
});

test('A PostgreSQL database that cannot store every text is refused, and the error names the required encoding [H288]', async (t) => {
  const { url, drop } = await createTestDatabase("encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0");
  const database = openDatabase<Tables>(url);
  t.after(async () => {
    await database.close();
    await drop();
  });
  await assert.rejects(migrate(database, [things], systemClock), /must have the encoding UTF8, not LATIN1/);
});

test('A query compiled once binds a parameter at every place, and null for a missing one', async () => {
  const database = openDatabase<Tables>('sqlite::memory:');
  const { sql: text, bind } = compileOnce<Tables, { id: string; value: number | null }, unknown>(database.reads, (db, { id, value }) =>
    db
      .selectFrom('things')
      .selectAll()
      .where('id', '=', id)
      .where('kind', '=', 'constant')
      .where('value', 'is', value)
      .where('id', '<>', id),
  );
  assert.equal(text.match(/\?/g)!.length, 4);
  assert.deepEqual(bind({ id: 'x', value: 5 }), ['x', 'constant', 5, 'x']);
  assert.deepEqual(bind({ id: 'x' } as never), ['x', 'constant', null, 'x']);
  await database.close();
});

test('The error for an invalid database URL lists the valid forms and leaves out the password', () => {
  assert.equal(databaseUrlProblem('sqlite://./data/x.db'), undefined);
  assert.match(databaseUrlProblem('mysql://me:s3cret@host/x')!, /^sqlite:\/\/PATH, sqlite::memory: or postgres:/);
  assert.doesNotMatch(databaseUrlProblem('mysql://me:s3cret@host/x')!, /s3cret/);
});

test('Errors of an unavailable database are distinguished from errors of a wrong statement', async (t) => {
  const errors = {
    sqlite: {
      // Busy, locked, read-only, I/O error, full, cannot open; and an extended code.
      unavailable: [5, 6, 8, 10, 13, 14, 266].map((errcode) => ({ errcode })),
      others: [1, 11, 19, 1555, 2067].map((errcode) => ({ errcode })),
    },
    postgres: {
      unavailable: ['08006', '53300', '57P01', '57P02', '57P03', '25006', '57014', 'ECONNRESET', 'ERR_SOCKET_CLOSED'].map((code) => ({
        code,
      })),
      others: ['23505', '40001', '40P01', '42601', '22001', 'ERR_INVALID_ARG_TYPE'].map((code) => ({ code })),
    },
  };
  for (const store of everyStore) {
    const { database } = await openThings(t, store);
    for (const error of errors[database.name].unavailable) assert.ok(database.isUnavailable(error), JSON.stringify(error));
    for (const error of [...errors[database.name].others, new Error('no'), undefined])
      assert.ok(!database.isUnavailable(error), JSON.stringify(error));
  }
});

test('The WAL of a SQLite file stays short, however much is written', async (t) => {
  const { database, url } = await openThings(t, onDisk);
  const value = 'x'.repeat(256 * 1024);
  for (let index = 0; index < 80; index += 1)
    await inSession(database, async (session) => session.put('things', ['kind', 'id'], [{ id: `${index}`, kind: value, value: index }]));
  assert.ok(statSync(`${url.slice('sqlite://'.length)}-wal`).size < 8 * 1024 * 1024);
});

test('Hanging long reads on PostgreSQL do not block short ones, and no statement hangs forever', async (t) => {
  const { database, url } = await openThings(t, postgresql);
  for (const [reads, statement_timeout] of [
    [database.reads, '30s'],
    [database.longReads, '5s'],
  ] as const)
    assert.deepEqual((await sql`show statement_timeout`.execute(reads)).rows, [{ statement_timeout }]);
  const locker = openDatabase<Tables>(url);
  t.after(() => locker.close());
  const held = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const locking = locker.transaction(async (tx) => {
    await sql`lock table things in access exclusive mode`.execute(tx);
    locked.resolve();
    await held.promise;
  });
  await locked.promise;
  const hanging = Array.from({ length: 40 }, () => database.longReads.selectFrom('things').selectAll().execute());
  try {
    await database.ping();
    assert.deepEqual((await sql`select 1 as one`.execute(database.reads)).rows, [{ one: 1 }]);
  } finally {
    held.resolve();
  }
  await locking;
  await Promise.all(hanging);
});

for (const store of everyStore) {
  test(`A commit waits for the disk on ${store.name}, unless it is asynchronous`, async (t) => {
    const { database } = await openThings(t, store);
    const flushed: unknown[] = [];
    const noteIn = async (session: Session) => {
      if (store.name !== 'PostgreSQL') {
        const levels = [1, 2].map((synchronous) => ({ synchronous }));
        flushed.push((await session.find('pragma_synchronous', ['synchronous'], levels))[0]![0]);
        return;
      }
      const [seq] = await session.reserve('commits', 'seq', 1);
      session.insert('commits', [{ seq: seq! }]);
      flushed.push((await session.find('commits', ['flushed'], [{ seq: seq! }]))[0]![0]);
    };
    await inSession(database, noteIn);
    await inSession(database, noteIn, { asyncCommit: true });
    await assert.rejects(
      inSession(
        database,
        async () => {
          throw new Error('given up');
        },
        { asyncCommit: true },
      ),
      /given up/,
    );
    await inSession(database, noteIn);
    const [full, not] = store.name === 'PostgreSQL' ? ['on', 'off'] : [2, 1];
    assert.deepEqual(flushed, [full, not, full]);
  });
}

for (const store of everyStore) {
  describe(`The reads of a turn on ${store.name}`, () => {
    const countOf = (database: Database<Tables>) =>
      database.query<Record<string, never>, { count: number }>((db) => db.selectFrom('things').select(sql<number>`count(*)`.as('count')));
    const add = (database: Database<Tables>, id: string) => inSession(database, async (session) => session.insert('things', [row(id)]));

    test('end before a commit of its own process, so that the next read sees the write', async (t) => {
      const { database } = await openThings(t, store);
      const count = countOf(database);
      database.beginTurnReads();
      assert.equal(Number((await count.first({}))!.count), 0);
      await add(database, '1');
      assert.equal(Number((await count.first({}))!.count), 1);
    });

    test('end with the turn: the next turn sees commits of other processes', async (t) => {
      const { database, url } = await openThings(t, store);
      const other = url === 'sqlite::memory:' ? database : openDatabase<Tables>(url);
      if (other !== database) t.after(() => other.close());
      const count = countOf(database);
      database.beginTurnReads();
      assert.equal(Number((await count.first({}))!.count), 0);
      await add(other, '1');
      await new Promise(setImmediate);
      assert.equal(Number((await count.first({}))!.count), 1);
    });

    test('share the result of reads with one name until they end', async (t) => {
      const { database } = await openThings(t, store);
      let asked = 0;
      const ask = () => database.shareInTurn('things', () => (asked += 1));
      ask();
      ask();
      assert.equal(asked, 2, 'no reads are shared');
      database.beginTurnReads();
      ask();
      ask();
      const shares = store.name === 'SQLite on disk';
      assert.equal(asked, shares ? 3 : 4);
      await add(database, '1');
      ask();
      assert.equal(asked, shares ? 4 : 5, 'a commit ended it');
      database.beginTurnReads();
      ask();
      await new Promise(setImmediate);
      database.beginTurnReads();
      ask();
      assert.equal(asked, shares ? 6 : 7, 'the turn ended it');
    });

    test('does not share asynchronous reads', async (t) => {
      const { database } = await openThings(t, store);
      database.beginTurnReads();
      const first = database.shareInTurn('later', () => Promise.resolve(1));
      const second = database.shareInTurn('later', () => Promise.resolve(2));
      assert.deepEqual([await first, await second], [1, 2]);
    });

    test('may be open when the database is closed', async (t) => {
      const { url, drop } = await store.open();
      t.after(drop);
      const database = openDatabase<Tables>(url);
      database.beginTurnReads();
      await database.close();
      await new Promise(setImmediate);
    });
  });
}

test('A transaction on PostgreSQL runs again after a deadlock or a serialization failure, up to five times', async (t) => {
  const { database } = await openThings(t, postgresql);
  const fail = `create function fail() returns trigger language plpgsql as $$ begin
    if nextval('failures') <= new.value then raise exception using errcode = new.kind; end if; return new; end $$`;
  const statements = [
    'create sequence failures',
    fail,
    'create trigger failing before insert on things for each row execute function fail()',
  ];
  for (const statement of statements) await database.transaction((tx) => sql.raw(statement).execute(tx));
  const reset = () => database.transaction((tx) => sql.raw("select setval('failures', 1, false)").execute(tx));

  const ways: Record<string, (given: ReturnType<typeof row>) => Promise<unknown>> = {
    'single statements': (given) => database.transaction((tx) => tx.insertInto('things').values(given).execute()),
    'a session': (given) => inSession(database, async (session) => session.insert('things', [given])),
    // The statement after the one that fails only reports that the transaction is aborted.
    'a session that reads after it has written': (given) =>
      inSession(database, async (session) => {
        session.insert('things', [given]);
        await session.find('things', ['id'], [{ kind: 'a', id: '1' }]);
      }),
  };
  for (const [name, write] of Object.entries(ways)) {
    for (const code of ['40P01', '40001']) {
      await reset();
      await write(row(name, 4, code));
      await reset();
      await assert.rejects(write(row(`${name} again`, 5, code)), { code }, name);
    }
    await reset();
    await assert.rejects(write(row(`${name} otherwise`, 1, '23514')), { code: '23514' }, name);
  }
  assert.deepEqual(
    (await all(database)).map(({ id }) => id).toSorted(),
    Object.keys(ways)
      .flatMap((name) => [name, name])
      .toSorted(),
  );
});
