import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';

import { sqlitePath } from '../../../src/kit/sql/sqlite.ts';
import { createPacket, packetRequest, startService } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';

/** The tables that grow with what is stored: a query that walks one of them whole gets slower every day. */
const growing = ['packets', 'contents', 'packet_tags', 'events', 'idempotency', 'idempotency_packets', 'search_queue'];

/** Notes every statement that is prepared while the test runs. */
function noteStatements(t: TestContext): Set<string> {
  const statements = new Set<string>();
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string, ...rest) {
    statements.add(sql);
    return prepare.call(this, sql, ...rest);
  };
  t.after(() => {
    DatabaseSync.prototype.prepare = prepare;
  });
  return statements;
}

/** A statement's plan, a line a step, as SQLite tells it. */
function planOf(database: DatabaseSync, sql: string): string[] {
  return database
    .prepare(`explain query plan ${sql}`)
    .all()
    .map(({ detail }) => String(detail));
}

test('no query of the service walks a growing table, and each filter has its index', async (t) => {
  const statements = noteStatements(t);
  const store = stores.find(({ name }) => name === 'SQLite on disk')!;
  const opened = await store.open();
  t.after(opened.drop);
  const service = await startService(t, { databaseUrl: opened.url });

  const { id } = await createPacket(service, packetRequest());
  const body = packetRequest();
  await service.call('POST', '/packets', { body, headers: { 'idempotency-key': 'once' } });
  for (const query of ['', 'view=full', 'offset=3', 'tags=a', 'tags=a,b', 'priority=high&status=failed', 'created_after=2026-01-01'])
    assert.equal((await service.call('GET', `/packets?${query}`)).status, 200, query);
  await service.call('GET', `/packets/${id}`);
  await service.call('GET', `/packets/${id}/history`);
  await service.call('GET', '/packets/awaiting');
  await service.call('GET', '/audit');
  await service.call('GET', `/audit?packet_id=${id}`);
  await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'worker' } });
  await service.call('PATCH', `/packets/${id}`, { body: { metadata: { tags: ['c'] } } });
  await service.call('POST', `/packets/${id}/chain`, { body });
  await service.call('DELETE', `/packets/${id}?hard=true`);
  await service.handoff.runOnce.sweep();

  const database = new DatabaseSync(sqlitePath(opened.url), { readOnly: true });
  t.after(() => database.close());
  const plans = [...statements]
    .filter((sql) => /^(select|update|delete|insert)\b/.test(sql))
    .map((sql) => ({ sql, plan: planOf(database, sql) }));
  assert.ok(plans.length > 30, 'the statements were noted');
  for (const { sql, plan } of plans) {
    const walked = plan.filter((step) => growing.some((table) => new RegExp(`^SCAN ${table}\\b`).test(step)));
    assert.deepEqual(walked, [], `${sql}\n${plan.join('\n')}`);
  }

  for (const [query, index] of [
    ['', 'packets_by_id'],
    ['status=failed', 'packets_by_status'],
    ['priority=high', 'packets_by_priority'],
    ['source_agent=a', 'packets_by_source'],
    ['target_agent=a', 'packets_by_target'],
  ] as const) {
    statements.clear();
    // On a service of its own, so that the statement is prepared anew.
    const other = await startService(t, { databaseUrl: opened.url });
    assert.equal((await other.call('GET', `/packets?${query}`)).status, 200, query);
    const listing = [...statements].find((sql) => sql.includes('string_agg'));
    assert.ok(listing !== undefined, query);
    const plan = planOf(database, listing);
    assert.ok(
      plan.some((step) => step.includes(`INDEX ${index} (`)),
      `${query}: ${plan.join('\n')}`,
    );
  }
});
