import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { sql } from 'kysely';

import { systemClock } from '../../src/kit/clock.ts';
import { databaseUrlProblem, openDatabase } from '../../src/kit/sql/database.ts';
import { compileOnce, type Database, Turns } from '../../src/kit/sql/dialect.ts';
import { createGroups, type Outcome } from '../../src/kit/sql/groups.ts';
import { type Migration, migrate } from '../../src/kit/sql/migrate.ts';
import { openPostgresDatabase, stores, type TestStore } from '../support/stores.ts';

interface Tables {
  things: { id: string; kind: string; value: number | null };
}

const things: Migration = {
  name: '0001-things',
  up: () => ['create table things (id text not null, kind text not null, value integer, primary key (kind, id))'],
};

/** An empty database with one table. */
async function openThings(t: TestContext, store: TestStore): Promise<{ database: Database<Tables>; url: string }> {
  const { url, drop } = await store.open();
  const database = openDatabase<Tables>(url);
  t.after(async () => {
    await database.close();
    await drop();
  });
  await migrate(database, [things], systemClock);
  return { database, url };
}

const row = (id: string, value: number | null = 1, kind = 'a') => ({ id, kind, value });
const all = async (database: Database<Tables>) =>
  (await database.reads.selectFrom('things').selectAll().orderBy('kind').orderBy('id').execute()).map((found) => ({ ...found }));

for (const store of stores) {
  describe(`A session on ${store.name}`, () => {
    test('writes rows and finds them by their keys', async (t) => {
      const { database } = await openThings(t, store);
      await database.session(async (session) => {
        await session.insert('things', [row('1', 10), row('2', null), row('1', 30, 'b')]);
        const found = await session.find(
          'things',
          ['id', 'value'],
          [
            { kind: 'a', id: '1' },
            { kind: 'a', id: '2' },
            { kind: 'a', id: '3' },
          ],
        );
        assert.deepEqual(found, [
          ['1', 10],
          ['2', null],
        ]);
      });
      assert.deepEqual(await all(database), [row('1', 10), row('2', null), row('1', 30, 'b')]);
    });

    test('makes what is missing, overwrites, adds, changes and removes, each over many rows', async (t) => {
      const { database } = await openThings(t, store);
      await database.session(async (session) => {
        await session.insert('things', [row('1', 1), row('2', 2), row('3', 3), row('4', 4)]);
        await session.insertMissing('things', [row('1', 100), row('5', 5)]);
        await session.put('things', ['kind', 'id'], [row('2', 20), row('6', 6)]);
        await session.update('things', ['kind', 'id'], [row('3', 30), row('nowhere', 0)]);
        await session.add('things', ['kind', 'id'], 'value', [row('4', 40), row('7', 7)]);
        await session.add('things', ['kind', 'id'], 'value', [row('7', -3)]);
        await session.remove('things', [
          { kind: 'a', id: '5' },
          { kind: 'b', id: '1' },
        ]);
      });
      assert.deepEqual(await all(database), [row('1', 1), row('2', 20), row('3', 30), row('4', 44), row('6', 6), row('7', 4)]);
    });

    test('reads unlocked what a found row guards', async (t) => {
      const { database } = await openThings(t, store);
      await database.session((session) => Promise.resolve(session.insert('things', [row('1', 10), row('2', 20)])));
      await database.session(async (session) => {
        const read = await session.read('things', ['value'], [{ kind: 'a', id: '2' }]);
        assert.deepEqual(read, [[20]]);
      });
    });

    test('does nothing for no rows', async (t) => {
      const { database } = await openThings(t, store);
      await database.session(async (session) => {
        await session.insert('things', []);
        await session.insertMissing('things', []);
        await session.put('things', ['kind', 'id'], []);
        await session.update('things', ['kind', 'id'], []);
        await session.add('things', ['kind', 'id'], 'value', []);
        await session.remove('things', []);
        assert.deepEqual(await session.find('things', ['id'], []), []);
      });
      assert.deepEqual(await all(database), []);
    });

    test('keeps every text as it came: quotes, line ends, emoji, what looks like SQL', async (t) => {
      const { database } = await openThings(t, store);
      const texts = ["'; drop table things; --", '"', '\\', '\n\r\t', '\u{1f600}', '$1', '?', '{}', 'null', ''];
      await database.session((session) =>
        Promise.resolve(
          session.insert(
            'things',
            texts.map((text) => row(text)),
          ),
        ),
      );
      assert.deepEqual((await all(database)).map(({ id }) => id).toSorted(), texts.toSorted());
    });

    test('writes nothing when its work fails, and the next one goes on', async (t) => {
      const { database } = await openThings(t, store);
      const failing = database.session(async (session) => {
        await session.insert('things', [row('1')]);
        throw new Error('changed my mind');
      });
      await assert.rejects(failing, /changed my mind/);
      await database.session((session) => Promise.resolve(session.insert('things', [row('2')])));
      assert.deepEqual(await all(database), [row('2')]);
    });

    test('fails as a whole when a row is there already, and the error says so', async (t) => {
      const { database } = await openThings(t, store);
      await database.session((session) => Promise.resolve(session.insert('things', [row('1')])));
      const again = database.session(async (session) => {
        await session.insert('things', [row('2')]);
        await session.insert('things', [row('1')]);
      });
      await assert.rejects(again, (error) => database.isDuplicate(error) && !database.isUnavailable(error));
      assert.deepEqual(await all(database), [row('1')]);
    });

    test('runs alone: 50 that each read and write one number lose none', async (t) => {
      const { database } = await openThings(t, store);
      await database.session((session) => Promise.resolve(session.insert('things', [row('1', 0)])));
      const key = { kind: 'a', id: '1' };
      await Promise.all(
        Array.from({ length: 50 }, () =>
          database.session(async (session) => {
            const [found] = await session.find('things', ['value'], [key]);
            await session.update('things', ['kind', 'id'], [row('1', (found![0] as number) + 1)]);
          }),
        ),
      );
      assert.deepEqual(await all(database), [row('1', 50)]);
      assert.equal(database.waiting(), 0);
    });
  });

  describe(`A transaction on ${store.name}`, () => {
    test('is seen by nobody before its end, and leaves nothing when it fails', async (t) => {
      const { database } = await openThings(t, store);
      let seen: Promise<unknown[]> | undefined;
      await database.transaction(async (tx) => {
        await tx.insertInto('things').values(row('1')).execute();
        seen = all(database);
        // On PostgreSQL and on disk the read is answered meanwhile; in memory it waits.
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

    test('a query compiled once gives what its parameters say, constants included', async (t) => {
      const { database } = await openThings(t, store);
      await database.session((session) =>
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

  describe(`Units that wait together on ${store.name}`, () => {
    interface Unit {
      id: string;
      refuse?: boolean;
    }

    function groupsOf(database: Database<Tables>) {
      const sizes: number[] = [];
      const groups = createGroups<Tables, Unit>(database, async (session, units) => {
        sizes.push(units.length);
        const outcomes = units.map(({ id, refuse }): Outcome<unknown> => (refuse ? { error: new Error(`refused ${id}`) } : { result: id }));
        await session.insert(
          'things',
          units.filter(({ refuse }) => !refuse).map(({ id }) => row(id)),
        );
        return outcomes;
      });
      return { ...groups, sizes };
    }

    test('share one transaction, and each gets its own answer', async (t) => {
      const { database } = await openThings(t, store);
      const { submit, sizes } = groupsOf(database);
      assert.deepEqual(await Promise.all(['1', '2', '3'].map((id) => submit({ id }))), ['1', '2', '3']);
      assert.deepEqual(sizes, [3]);
      assert.equal((await all(database)).length, 3);
    });

    test('are at most 256 a transaction', async (t) => {
      const { database } = await openThings(t, store);
      const { submit, sizes, waiting } = groupsOf(database);
      await Promise.all(Array.from({ length: 600 }, (_, index) => submit({ id: String(index) })));
      assert.deepEqual(sizes, [256, 256, 88]);
      assert.equal(waiting(), 0);
    });

    test('one that is refused leaves the others alone', async (t) => {
      const { database } = await openThings(t, store);
      const { submit } = groupsOf(database);
      const [first, second, third] = await Promise.allSettled([
        submit({ id: '1' }),
        submit({ id: '2', refuse: true }),
        submit({ id: '3' }),
      ]);
      assert.deepEqual([first!.status, second!.status, third!.status], ['fulfilled', 'rejected', 'fulfilled']);
      assert.deepEqual(
        (await all(database)).map(({ id }) => id),
        ['1', '3'],
      );
    });

    test('one that the database refuses fails alone, and what waits behind goes on', async (t) => {
      const { database } = await openThings(t, store);
      const { submit } = groupsOf(database);
      await submit({ id: '2' });
      const settled = await Promise.allSettled(['1', '2', '3'].map((id) => submit({ id })));
      assert.deepEqual(
        settled.map(({ status }) => status),
        ['fulfilled', 'rejected', 'fulfilled'],
      );
      assert.deepEqual(
        (await all(database)).map(({ id }) => id),
        ['1', '2', '3'],
      );
      assert.equal(await submit({ id: '4' }), '4');
    });
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

    test('that fail leave the schema as it was', async (t) => {
      const { database } = await openThings(t, store);
      const broken: Migration = { name: '0002-broken', up: () => ['create table half (id text)', 'this is no SQL'] };
      await assert.rejects(migrate(database, [things, broken], systemClock));
      await assert.rejects(sql`select * from half`.execute(database.reads));
      await migrate(database, [things, more], systemClock);
      assert.equal((await all(database)).length, 1);
    });

    test('of a newer program are not touched', async (t) => {
      const { database } = await openThings(t, store);
      await migrate(database, [things, more], systemClock);
      await assert.rejects(migrate(database, [things], systemClock), /another version.*0002-more/);
    });
  });
}

test('Ten programs that start at once on one PostgreSQL migrate it once', async (t) => {
  const { url, drop } = await stores.find(({ name }) => name === 'PostgreSQL')!.open();
  const databases = Array.from({ length: 10 }, () => openDatabase<Tables>(url));
  t.after(async () => {
    await Promise.all(databases.map((database) => database.close()));
    await drop();
  });
  await Promise.all(databases.map((database) => migrate(database, [things], systemClock)));
  assert.deepEqual(await all(databases[3]!), []);
});

describe('Turns', () => {
  test('are taken one after the other, in order, and one that fails does not end them', async () => {
    const turns = new Turns();
    const log: string[] = [];
    const work = (name: string) => async () => {
      log.push(`${name} begins`);
      await new Promise(setImmediate);
      log.push(`${name} ends`);
      if (name === 'b') throw new Error(name);
      return name;
    };
    const taken = await Promise.allSettled([turns.take(work('a')), turns.take(work('b')), turns.take(work('c'))]);
    assert.deepEqual(
      taken.map(({ status }) => status),
      ['fulfilled', 'rejected', 'fulfilled'],
    );
    assert.deepEqual(log, ['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
    await turns.idle();
    assert.equal(turns.waiting, 0);
  });

  test('idle waits for those taken meanwhile as well', async () => {
    const turns = new Turns();
    let second = false;
    void turns.take(async () => {
      void turns.take(async () => {
        second = true;
      });
    });
    await turns.idle();
    assert.equal(second, true);
  });
});

test('A PostgreSQL database that could not keep every text is refused, and the sentence says what it must be', async (t) => {
  const { url, drop } = await openPostgresDatabase("encoding 'LATIN1' lc_collate 'C' lc_ctype 'C' template template0");
  const database = openDatabase<Tables>(url);
  t.after(async () => {
    await database.close();
    await drop();
  });
  await assert.rejects(migrate(database, [things], systemClock), /must have the encoding UTF8, not LATIN1/);
});

test('A query compiled once binds a parameter wherever it stands, and null where none was given', async () => {
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

test('A database address that is none is told with the forms there are, and its password is not', () => {
  assert.equal(databaseUrlProblem('sqlite://./data/x.db'), undefined);
  assert.match(databaseUrlProblem('mysql://me:s3cret@host/x')!, /^sqlite:\/\/PATH, sqlite::memory: or postgres:/);
  assert.doesNotMatch(databaseUrlProblem('mysql://me:s3cret@host/x')!, /s3cret/);
});

for (const store of stores) {
  describe(`A view on ${store.name}`, () => {
    const countOf = (database: Database<Tables>) =>
      database.query<Record<string, never>, { count: number }>((db) => db.selectFrom('things').select(sql<number>`count(*)`.as('count')));
    const add = (database: Database<Tables>, id: string) => database.session(async (session) => session.insert('things', [row(id)]));

    test('ends before a commit of its own program: what is written is read at once', async (t) => {
      const { database } = await openThings(t, store);
      const count = countOf(database);
      database.beginView();
      assert.equal(Number((await count.first({}))!.count), 0);
      await add(database, '1');
      assert.equal(Number((await count.first({}))!.count), 1);
    });

    test('ends with the turn: the next one sees what another program committed', async (t) => {
      const { database, url } = await openThings(t, store);
      const other = url === 'sqlite::memory:' ? database : openDatabase<Tables>(url);
      if (other !== database) t.after(() => other.close());
      const count = countOf(database);
      database.beginView();
      assert.equal(Number((await count.first({}))!.count), 0);
      await add(other, '1');
      await new Promise(setImmediate);
      assert.equal(Number((await count.first({}))!.count), 1);
    });

    test('shares what was asked in it under one name, until it ends', async (t) => {
      const { database } = await openThings(t, store);
      let asked = 0;
      const ask = () => database.inView('things', () => (asked += 1));
      ask();
      ask();
      assert.equal(asked, 2, 'no view is open');
      database.beginView();
      ask();
      ask();
      const shares = store.name === 'SQLite on disk';
      assert.equal(asked, shares ? 3 : 4);
      await add(database, '1');
      ask();
      assert.equal(asked, shares ? 4 : 5, 'a commit ended it');
      database.beginView();
      ask();
      await new Promise(setImmediate);
      database.beginView();
      ask();
      assert.equal(asked, shares ? 6 : 7, 'the turn ended it');
    });

    test('shares nothing that has to be waited for', async (t) => {
      const { database } = await openThings(t, store);
      database.beginView();
      const first = database.inView('later', () => Promise.resolve(1));
      const second = database.inView('later', () => Promise.resolve(2));
      assert.deepEqual([await first, await second], [1, 2]);
    });

    test('may be open when the database is closed', async (t) => {
      const { url, drop } = await store.open();
      t.after(drop);
      const database = openDatabase<Tables>(url);
      database.beginView();
      await database.close();
      await new Promise(setImmediate);
    });
  });
}
