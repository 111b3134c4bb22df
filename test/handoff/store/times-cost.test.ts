import assert from 'node:assert/strict';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';

import { claimant } from '../../support/life.ts';
import { createPacket, packetRequest, startService, type TestService } from '../../support/service.ts';

/** Records the texts of all statements that run, and the database on which they do. */
function recordRuns(t: TestContext) {
  const ran: string[] = [];
  let database: DatabaseSync | undefined;
  const { prepare } = DatabaseSync.prototype;
  const { run, get, all } = StatementSync.prototype;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, ...given) {
    database = this;
    return prepare.apply(this, given);
  };
  for (const [name, method] of Object.entries({ run, get, all }))
    Object.assign(StatementSync.prototype, {
      [name](this: StatementSync, ...parameters: unknown[]) {
        ran.push(this.sourceSQL);
        return Reflect.apply(method, this, parameters);
      },
    });
  t.after(() => {
    DatabaseSync.prototype.prepare = prepare;
    Object.assign(StatementSync.prototype, { run, get, all });
  });
  const count = (sql: string): unknown => Object.values(Reflect.apply(get, prepare.call(database!, sql), []) as object)[0];
  return { count, during: (work: () => Promise<unknown>) => work().then(() => ran.splice(0)) };
}

/** The statements of a packet from its creation to its end. */
async function live({ call }: TestService, body: object, headers: Record<string, string> = {}): Promise<void> {
  const { id } = (await call('POST', '/packets', { body, headers })).body;
  assert.equal((await call('POST', `/packets/${id}/claim`, { body: claimant })).status, 200);
  assert.equal((await call('PATCH', `/packets/${id}`, { body: { status: 'completed' } })).status, 200);
}

test('a packet without times, schedule and trace costs no statement and no entry of an index for them', async (t) => {
  const { count, during } = recordRuns(t);
  const service = await startService(t, { databaseUrl: 'sqlite::memory:' });
  await live(service, packetRequest());
  await during(async () => undefined);
  const plain = await during(() => live(service, packetRequest()));
  assert.deepEqual(
    plain.filter((sql) => /schedules|subscriptions/.test(sql)),
    [],
  );
  const traced = await during(() => live(service, packetRequest(), { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }));
  assert.equal(traced.length, plain.length, 'a trace is a part of the text');

  // The index of what is due has entries of packets with a time only.
  const entries = () => count('select count(*) from packets where due_at is not null');
  await createPacket(service);
  assert.equal(entries(), 0);
  await createPacket(service, { not_before: '2026-03-01T10:00:00Z', due_at: '2026-03-01T11:00:00Z' });
  assert.equal(entries(), 1);
  assert.equal(count('select count(*) from schedules'), 0);
});

test('a round in which nothing is due runs as many statements with a hundred packets as with none', async (t) => {
  const { during } = recordRuns(t);
  const service = await startService(t, { databaseUrl: 'sqlite::memory:' });
  const round = () => during(() => service.handoff.runOnce.sweep());
  await round();
  const none = await round();
  const packets = Array.from({ length: 100 }, () => packetRequest());
  assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
  await during(async () => undefined);
  assert.deepEqual(await round(), none);
});
