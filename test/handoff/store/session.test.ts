import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { inSession } from '../../../src/handoff/store/engine/in-session.ts';
import type { Session } from '../../../src/handoff/store/engine/session.ts';
import type { Row } from '../../../src/kit/sql/dialect.ts';
import { injectFault } from '../../support/faults.ts';
import { everyStore, postgresql } from '../../support/stores.ts';
import { all, openThings, row } from '../../support/things.ts';

for (const store of everyStore) {
  describe(`A session on ${store.name}`, () => {
    test('writes rows and finds them by their keys', async (t) => {
      const { database } = await openThings(t, store);
      await inSession(database, async (session) => {
        session.insert('things', [row('1', 10), row('2', null), row('1', 30, 'b')]);
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

    test('inserts missing rows, overwrites, adds, updates and removes, each over many rows', async (t) => {
      const { database } = await openThings(t, store);
      await inSession(database, async (session) => {
        session.insert('things', [row('1', 1), row('2', 2), row('3', 3), row('4', 4)]);
        session.insertMissing('things', [row('1', 100), row('5', 5)]);
        session.put('things', ['kind', 'id'], [row('2', 20), row('6', 6)]);
        session.update('things', ['kind', 'id'], [row('3', 30), row('nowhere', 0)]);
        session.add('things', ['kind', 'id'], 'value', [row('4', 40), row('7', 7)]);
        session.add('things', ['kind', 'id'], 'value', [row('7', -3)]);
        session.remove('things', [
          { kind: 'a', id: '5' },
          { kind: 'b', id: '1' },
        ]);
      });
      assert.deepEqual(await all(database), [row('1', 1), row('2', 20), row('3', 30), row('4', 44), row('6', 6), row('7', 4)]);
    });

    test('reads rows with a value of the rows of the same tenant that belong to them', async (t) => {
      const { database } = await openThings(t, store);
      await inSession(database, async (session) => {
        const [one, two] = await session.reserve('owners', 'seq', 2);
        session.insert('owners', [
          { seq: one!, name: 'one' },
          { seq: two!, name: 'two' },
        ]);
        session.insert('belongings', [
          { tenant: 1, owner: one!, what: 'hat' },
          { tenant: 2, owner: two!, what: 'gloves' },
          { tenant: 1, owner: two!, what: 'coat' },
        ]);
        const names = [{ name: 'two' }, { name: 'nobody' }];
        const what = { table: 'belongings', column: 'what', by: 'owner' };
        assert.deepEqual(await session.findWith('owners', ['name', 'seq'], what, names), [['two', two, 'coat']]);
        assert.deepEqual(await session.findWith('owners', ['seq'], what, []), []);
      });
    });

    test('reads rows without locking them, by keys that may be null', async (t) => {
      const { database } = await openThings(t, store);
      await inSession(database, async (session) => {
        session.insert('belongings', [
          { owner: 1, what: 'hat' },
          { owner: 1, what: null },
          { owner: 2, what: null },
        ]);
        const read = async (keys: Row[]) => (await session.read('belongings', ['owner', 'what'], keys)).map(String).toSorted();
        assert.deepEqual(await read([{ owner: 1 }, { owner: 3 }]), ['1,', '1,hat']);
        const keys = [
          { owner: 2, what: null },
          { owner: 1, what: null },
        ];
        assert.deepEqual(await read(keys), ['1,', '2,']);
        assert.deepEqual(await read([]), []);
      });
    });

    test('reserves numbers that no row ever had, in ascending order', async (t) => {
      const { database } = await openThings(t, store);
      const reserve = (count: number) =>
        inSession(database, async (session) => {
          const numbers = [...(await session.reserve('owners', 'seq', count)), ...(await session.reserve('owners', 'seq', 1))];
          session.insert(
            'owners',
            numbers.map((seq) => ({ seq, name: `n${seq}` })),
          );
          return numbers;
        });
      const first = await reserve(2);
      await inSession(database, async (session) => {
        session.remove(
          'owners',
          first.map((seq) => ({ seq })),
        );
      });
      const all = [...first, ...(await reserve(3)), ...(await reserve(0))];
      assert.equal(all.length, 8);
      assert.ok(all.every((seq, index) => index === 0 || seq > all[index - 1]!));
    });

    test('does nothing for no rows', async (t) => {
      const { database } = await openThings(t, store);
      await inSession(database, async (session) => {
        session.insert('things', []);
        session.insertMissing('things', []);
        session.put('things', ['kind', 'id'], []);
        session.update('things', ['kind', 'id'], []);
        session.add('things', ['kind', 'id'], 'value', []);
        session.remove('things', []);
        assert.deepEqual(await session.find('things', ['id'], []), []);
      });
      assert.deepEqual(await all(database), []);
    });

    test('stores every text unchanged: quotes, line ends, emoji, text that looks like SQL', async (t) => {
      const { database } = await openThings(t, store);
      const texts = ["'; drop table things; --", '"', '\\', '\n\r\t', '\u{1f600}', '$1', '?', '{}', 'null', ''];
      await inSession(database, (session) =>
        Promise.resolve(
          session.insert(
            'things',
            texts.map((text) => row(text)),
          ),
        ),
      );
      assert.deepEqual((await all(database)).map(({ id }) => id).toSorted(), texts.toSorted());
    });

    test('writes nothing when its work fails, and the next one succeeds', async (t) => {
      const { database } = await openThings(t, store);
      const failing = inSession(database, async (session) => {
        session.insert('things', [row('1')]);
        throw new Error('changed my mind');
      });
      await assert.rejects(failing, /changed my mind/);
      await inSession(database, (session) => Promise.resolve(session.insert('things', [row('2')])));
      assert.deepEqual(await all(database), [row('2')]);
    });

    test('fails as a whole when a row already exists, and the error says so', async (t) => {
      const { database } = await openThings(t, store);
      await inSession(database, (session) => Promise.resolve(session.insert('things', [row('1')])));
      const again = inSession(database, async (session) => {
        session.insert('things', [row('2')]);
        session.insert('things', [row('1')]);
      });
      await assert.rejects(again, (error) => database.isDuplicate(error) && !database.isUnavailable(error));
      assert.deepEqual(await all(database), [row('1')]);
    });

    test('runs alone: 50 concurrent increments of one number lose none', async (t) => {
      const { database } = await openThings(t, store);
      await inSession(database, (session) => Promise.resolve(session.insert('things', [row('1', 0)])));
      const key = { kind: 'a', id: '1' };
      await Promise.all(
        Array.from({ length: 50 }, () =>
          inSession(database, async (session) => {
            const [found] = await session.find('things', ['value'], [key]);
            session.update('things', ['kind', 'id'], [row('1', (found![0] as number) + 1)]);
          }),
        ),
      );
      assert.deepEqual(await all(database), [row('1', 50)]);
      assert.equal(database.waiting(), 0);
    });
  });
}

test('A transaction fails for its first statement that failed, in whatever order its work learns of them', async (t) => {
  const { database } = await openThings(t, postgresql);
  const fault = injectFault(2, { kind: 'unavailable' });
  t.after(fault.remove);
  const work = async (session: Session) => {
    const first = Promise.resolve(session.read('things', ['id'], [{ kind: 'a', id: '1' }]));
    first.catch(() => undefined);
    // This one only reports that the transaction is aborted.
    await session.read('things', ['id'], [{ kind: 'a', id: '2' }]);
    await first;
  };
  await assert.rejects(inSession(database, work), (error) => database.isUnavailable(error));
});
