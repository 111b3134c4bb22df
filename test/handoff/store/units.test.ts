import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Tables } from '../../../src/handoff/store/tables.ts';
import { createUnits } from '../../../src/handoff/store/units.ts';
import type { Database, Session } from '../../../src/kit/sql/dialect.ts';

/** A database in which there is nothing and which keeps nothing; it counts its transactions. */
function emptyDatabase(): { database: Database<Tables>; transactions(): number } {
  let transactions = 0;
  const session = new Proxy({}, { get: () => () => [] }) as Session;
  const database = {
    session: async (work: (session: Session) => Promise<unknown>) => {
      transactions += 1;
      return work(session);
    },
    isUnavailable: () => false,
  } as unknown as Database<Tables>;
  return { database, transactions: () => transactions };
}

test('units of much that share a transaction are carried out in parts, and others get their turn between', async () => {
  const { database, transactions } = emptyDatabase();
  const units = createUnits(database, () => 'id');
  let turn = 0;
  let running = true;
  const count = () => {
    turn += 1;
    if (running) setImmediate(count);
  };
  count();
  const weights = [900_000, 900_000, 900_000, 0, 3_000_000, 10, 0];
  const turns = await Promise.all(weights.map((weight) => units.commit(1, { weight, work: () => turn })));
  running = false;
  assert.equal(transactions(), 1);
  // Two fit into one part; the third and the light one behind it make another; what is too much goes alone.
  const [a, b, c, d, e, f, g] = turns;
  assert.deepEqual([a === b, c === d, f === g], [true, true, true]);
  assert.ok(b! < c! && d! < e! && e! < f!, turns.join(' '));
});
