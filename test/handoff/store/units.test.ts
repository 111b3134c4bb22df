import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Tables } from '../../../src/handoff/store/tables.ts';
import { createUnits } from '../../../src/handoff/store/units.ts';
import type { Database, Session } from '../../../src/kit/sql/dialect.ts';

/** An empty database that stores nothing and counts its transactions. */
function emptyDatabase(): { database: Database<Tables>; transactions(): number } {
  let transactions = 0;
  const session = new Proxy({}, { get: () => () => [] }) as Session;
  const database = {
    charactersPerTurn: 2_000_000,
    session: async (work: (session: Session) => Promise<unknown>) => {
      transactions += 1;
      return work(session);
    },
    isUnavailable: () => false,
  } as unknown as Database<Tables>;
  return { database, transactions: () => transactions };
}

test('large units share a transaction, and the event loop runs between them', async () => {
  const { database, transactions } = emptyDatabase();
  const units = createUnits(database, () => 'id');
  let turn = 0;
  let running = true;
  const count = () => {
    turn += 1;
    if (running) setImmediate(count);
  };
  count();
  const sizes = [900_000, 900_000, 900_000, 0, 3_000_000, 10, 0];
  const turns = await Promise.all(sizes.map((size) => units.commit(1, { size, work: () => turn })));
  running = false;
  assert.equal(transactions(), 1);
  // After two million characters, the next unit waits for the next turn of the event loop.
  const [a, b, c, d, e, f, g] = turns;
  assert.deepEqual([a === b, b === c, d === e, f === g], [true, true, true, true]);
  assert.ok(c! < d! && e! < f!, turns.join(' '));
});
