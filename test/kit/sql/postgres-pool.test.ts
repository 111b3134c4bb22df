import assert from 'node:assert/strict';
import { test } from 'node:test';

import { openPool, withSettings } from '../../../src/kit/sql/postgres-pool.ts';
import { createTestDatabase } from '../../support/databases.ts';

test('A connection whose transaction could not begin with its settings can be used again', async (t) => {
  const { url, drop } = await createTestDatabase('');
  t.after(drop);
  const pool = openPool({ connectionString: url }, 1);
  t.after(() => pool.end());
  const client = await withSettings(pool, 'begin; set local no_such_setting = 1').connect();
  await assert.rejects(client.query('select 1', []), { code: '42704' });
  client.release();
  assert.deepEqual((await pool.query({ text: 'select 1 as one' })).rows, [{ one: 1 }]);
});
