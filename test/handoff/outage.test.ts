import assert from 'node:assert/strict';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, type TestContext, test } from 'node:test';
import pg from 'pg';

import { createExample } from '../../src/handoff/model/examples.ts';
import { openDatabase } from '../../src/kit/sql/database.ts';
import { openEmptyDatabase } from '../support/databases.ts';
import { databaseInMemory } from '../support/faults.ts';
import { unknownId } from '../support/life.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { startProcess, type TestProcess } from '../support/process.ts';
import { startReceiver } from '../support/receiver.ts';
import { adminKey, createPacket, packetRequest, startService, type TestAnswer, type TestService } from '../support/service.ts';
import { onDisk, postgresql } from '../support/stores.ts';
import { repeat, until } from '../support/until.ts';
import { register } from '../support/webhooks.ts';

const range = (count: number) => Array.from({ length: count }, (_, index) => index);

function assertUnavailable({ status, body, text, headers }: TestAnswer): void {
  assert.equal(status, 503, text.slice(0, 300));
  assert.deepEqual([body.code, body.field, body.status_code], ['SERVICE_UNAVAILABLE', null, 503]);
  assert.equal(headers['retry-after'], '1');
  assert.equal(typeof body.detail, 'string');
  assert.doesNotMatch(text, /127\.0\.0\.1|ECONN|postgres|terminat|sqlite|errcode/i);
}

/** One call of every kind that uses the database. */
const calls: readonly [method: string, path: string, body?: unknown][] = [
  ['POST', '/packets', packetRequest()],
  ['POST', '/packets/batch', { packets: [packetRequest()] }],
  ['GET', '/packets'],
  ['GET', '/packets?tags=billing&priority=high'],
  ['GET', '/packets/awaiting'],
  ['GET', '/packets/search?q=charged'],
  ['GET', '/packets/ID'],
  ['GET', '/packets/ID/history'],
  ['PATCH', '/packets/ID', { context: { summary: 'Lost' } }],
  ['POST', '/packets/ID/claim', { agent_id: 'a' }],
  ['POST', '/packets/ID/respond', { response: 'Approve', responded_by: 'dana' }],
  ['POST', '/packets/ID/chain', packetRequest()],
  ['POST', '/packets/batch/claim', { packet_ids: [unknownId], agent_id: 'a' }],
  ['POST', '/packets/batch/complete', { packet_ids: [unknownId] }],
  ['DELETE', '/packets/ID'],
  ['DELETE', '/packets/ID?hard=true'],
  ['GET', '/audit'],
  ['GET', '/keys'],
  ['POST', '/keys', { name: 'k' }],
  ['DELETE', `/keys/${unknownId}`],
  ['GET', '/tenants'],
  ['POST', '/tenants', { name: 't' }],
];

/** The stored state, without times that depend on requests. */
async function everything({ call }: Pick<TestService, 'call'>): Promise<unknown> {
  const paths = ['/packets?limit=200&view=full', '/audit?limit=200', '/packets/search?q=charged&limit=200', '/keys', '/tenants'];
  const answers = await Promise.all(paths.map((path) => call('GET', path)));
  for (const { status, text } of answers) assert.equal(status, 200, text);
  return answers.map(({ body }) => body);
}

describe('When PostgreSQL stops', () => {
  let server: TestPostgres;
  before(async () => {
    server = await startPostgres();
  });
  after(() => server.stop());

  /** A service on its own database on that server. */
  async function startHere(t: TestContext, name: string, settings: Record<string, string> = {}): Promise<TestService> {
    const client = new pg.Client(`${server.url}/postgres`);
    await client.connect();
    await client.query(`create database ${name}`);
    await client.end();
    return startService(t, { databaseUrl: `${server.url}/${name}`, settings });
  }

  test('every call is 503, as is /ready, while /health and /metrics still work; everything works after its return [H272]', async (t) => {
    const service = await startHere(t, 'away');
    const { id } = await createPacket(service);
    const there = await everything(service);
    for (let round = 1; round <= 2; round += 1) {
      await server.pause();
      for (const [method, path, body] of calls) {
        assertUnavailable(await service.call(method, path.replace('ID', id), body === undefined ? {} : { body }));
      }
      assertUnavailable(await service.call('GET', '//ready', { key: null }));
      assert.equal((await service.call('GET', '//health', { key: null })).status, 200);
      const metrics = await service.call('GET', '//metrics', { key: null });
      assert.equal(metrics.status, 200);
      assert.match(metrics.text, /^service_database_up 0$/m);
      // What is not known is left out.
      assert.doesNotMatch(metrics.text, / nan$/im);
      // Errors that need no database are still reported as usual.
      assert.equal((await service.call('GET', '/packets', { key: null })).status, 401);
      assert.equal((await service.call('GET', '/nope', { key: null })).status, 404);
      for (const job of Object.values(service.handoff.runOnce)) await job().catch(() => undefined);

      await server.resume();
      assert.equal((await service.call('GET', '//ready', { key: null })).status, 200);
      assert.deepEqual(await everything(service), there);
    }
    assert.match((await service.call('GET', '//metrics', { key: null })).text, /^service_database_up 1$/m);
    assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' } })).status, 200);
    await createPacket(service);
    assert.equal((await service.call('GET', '/packets/search?q=charged')).body.total, 2);
    for (const job of Object.values(service.handoff.runOnce)) await job();
    assert.ok(!service.logs.some((line) => line.includes('charged twice') || line.includes(adminKey)));
  });

  test('requests in progress are answered 201 or 503; every 201 is stored completely and delivered [H272]', async (t) => {
    const receiver = await startReceiver(t);
    const service = await startHere(t, 'in_hand', { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
    await register(service, receiver.url);
    const answered: TestAnswer[] = [];
    const create = async () => {
      const answer = await service.call('POST', '/packets', { body: packetRequest() });
      answered.push(answer);
      return answer.status;
    };
    // Forty callers, each of which stops at its first failed request.
    const callers = range(40).map(async () => {
      while ((await create()) === 201);
    });
    await until(() => answered.length >= 200);
    const { deliver } = service.handoff.runOnce;
    // Some deliveries are posted while the database stops, so that their outcome can't be recorded.
    const delivering = deliver().catch(() => undefined);
    await server.pause();
    await Promise.all(callers);
    await delivering;
    await assert.rejects(deliver());
    await server.resume();
    const created = answered.filter(({ status }) => status === 201);
    for (const answer of answered.filter(({ status }) => status !== 201)) assertUnavailable(answer);
    for (const { body } of created) assert.equal((await service.call('GET', `/packets/${body.id}`)).text, JSON.stringify(body));
    const { total } = (await service.call('GET', '/packets')).body;
    // A request whose answer was lost may have been carried out, but then completely.
    assert.ok(total >= created.length && total <= answered.length, `${created.length} ${total} ${answered.length}`);
    assert.equal((await service.call('GET', '/packets?source_agent=frontline')).body.total, total);
    assert.equal((await service.call('GET', '/packets?tags=billing')).body.total, total);
    // Plus the entry of the webhook.
    assert.equal((await service.call('GET', '/audit')).body.total, total + 1);
    assert.equal((await service.call('GET', '/audit?action=created')).body.total, total + 1);
    assert.equal((await service.call('GET', '/packets/search?q=charged')).body.total, total);
    service.clock.turn(20);
    const queue = async () =>
      /^service_webhook_queue_length (\d+)$/m.exec((await service.call('GET', '//metrics', { key: null })).text)![1];
    await repeat(deliver, async () => (await queue()) === '0');
    assert.equal(new Set(receiver.posts.map(({ headers }) => headers['x-service-delivery'])).size, total);
  });
});

test('connections that PostgreSQL closes are replaced: calls in progress get at worst 503, later ones succeed', async (t) => {
  const { url, drop } = await openEmptyDatabase();
  const client = new pg.Client(url);
  client.on('error', () => undefined);
  await client.connect();
  t.after(() => drop());
  const service = await startService(t, { databaseUrl: url });
  const { id } = await createPacket(service, { hitl: createExample.hitl });
  const answered: TestAnswer[] = [];
  for (let round = 0; round < 10; round += 1) {
    const inHand = range(30).map((index) =>
      index % 3 === 0
        ? service.call('POST', '/packets', { body: packetRequest() })
        : service.call('GET', index % 3 === 1 ? `/packets/${id}` : '/packets/search?q=charged'),
    );
    await client.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    );
    answered.push(...(await Promise.all(inHand)));
    const ready = await service.call('GET', '//ready', { key: null });
    assert.ok([200, 503].includes(ready.status));
  }
  for (const answer of answered) if (answer.status >= 300) assertUnavailable(answer);
  await client.end();
  assert.equal((await service.call('GET', `/packets/${id}`)).status, 200);
  assert.equal((await service.call('POST', '/packets', { body: packetRequest() })).status, 201);
  const created = answered.filter(({ status }) => status === 201);
  for (const { body } of created) assert.equal((await service.call('GET', `/packets/${body.id}`)).status, 200);
});

test('a full disk under SQLite: writes get 503 and reads still work; with space again every answered packet is there', async (t) => {
  const { url, drop } = await onDisk.open();
  t.after(drop);
  const settings = { SERVICE_PACKET_BYTES_BUSINESS: String(8 * 1024 * 1024) };
  const full = await startProcess({ databaseUrl: url, settings, fileLimitKib: 4096 });
  t.after(() => full.kill());
  const created: TestAnswer[] = [];
  for (;;) {
    const answer = await full.call('POST', '/packets', { body: packetRequest({ context: { summary: 'charged '.repeat(10_000) } }) });
    if (answer.status !== 201) {
      assertUnavailable(answer);
      break;
    }
    created.push(answer);
  }
  assert.ok(created.length > 5);
  const [first] = created;
  const { id } = first!.body;
  // Indexing is asynchronous, and its checkpoint can make room again, but never for more than a whole file.
  const context = { summary: 'lost', conversation_state: [{ role: 'user', content: 'lost '.repeat(1_000_000) }] };
  const quarter = { summary: 'lost', conversation_state: [{ role: 'user', content: 'lost '.repeat(250_000) }] };
  for (const [method, path, body] of [
    ['POST', '/packets/batch', { packets: range(4).map(() => packetRequest({ context: quarter })) }],
    ['PATCH', `/packets/${id}`, { context }],
    ['POST', `/packets/${id}/chain`, packetRequest({ context })],
  ] as const) {
    assertUnavailable(await full.call(method, path, { body }));
  }
  await assertHolds(full, created);
  assert.equal((await full.call('GET', '//ready')).status, 503);
  assert.equal((await full.call('GET', '//health')).status, 200);
  // A search must index queued packets first; on a full disk it fails instead of returning incomplete results.
  const search = await full.call('GET', '/packets/search?q=charged');
  if (search.status === 200) assert.equal(search.body.total, created.length);
  else assertUnavailable(search);
  await full.kill();

  const roomy = await startProcess({ databaseUrl: url });
  t.after(() => roomy.kill());
  await assertHolds(roomy, created);
  assert.equal((await roomy.call('GET', '/packets/search?q=charged')).body.total, created.length);
  assert.equal((await roomy.call('POST', '/packets', { body: packetRequest() })).status, 201);
  assert.equal(await roomy.stop(), 0);
});

test('a SQLite file that becomes read-only: writes get 503 and reads still work; once it can be written everything works', async (t) => {
  const service = await startService(t, { databaseUrl: 'sqlite::memory:' });
  const { id } = await createPacket(service);
  // SQLite refuses writes with the same code as for a file on a file system that is mounted read-only.
  const database = databaseInMemory();
  database.exec('pragma query_only = on');
  const writes = [
    ['POST', '/packets', packetRequest()],
    ['POST', `/packets/${id}/claim`, { agent_id: 'a' }],
    ['PATCH', `/packets/${id}`, { status: 'in_progress' }],
    ['POST', '/keys', { name: 'k' }],
    ['DELETE', `/packets/${id}`, undefined],
  ] as const;
  for (const [method, path, body] of writes) assertUnavailable(await service.call(method, path, body === undefined ? {} : { body }));
  for (const path of [`/packets/${id}`, '/packets', `/packets/${id}/history`, '/audit'])
    assert.equal((await service.call('GET', path)).status, 200, path);
  database.exec('pragma query_only = off');
  assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' } })).status, 200);
  assert.deepEqual((await service.call('GET', `/packets/${id}`)).body.revision, 2);
  assert.equal((await service.call('GET', '/packets')).body.total, 1);
});

test('a damaged page of a SQLite file: requests that read it fail, all others succeed, and the program keeps running', async (t) => {
  const { url, drop } = await onDisk.open();
  t.after(drop);
  const before = await startProcess({ databaseUrl: url });
  t.after(() => before.kill());
  const mark = 'a packet on a damaged page ';
  const ids: string[] = [];
  for (let index = 0; index < 30; index += 1) {
    const context = { summary: 'x', conversation_state: [{ role: 'user', content: mark.repeat(250) }] };
    ids.push((await before.call('POST', '/packets', { body: packetRequest({ context }) })).body.id);
  }
  assert.equal(await before.stop(), 0);
  const path = url.slice('sqlite://'.length);
  const bytes = readFileSync(path);
  const page = 8192;
  const damaged = Math.floor(bytes.lastIndexOf(mark.repeat(100)) / page);
  bytes.fill(0xff, damaged * page, (damaged + 1) * page);
  writeFileSync(path, bytes);

  const after = await startProcess({ databaseUrl: url });
  t.after(() => after.kill());
  for (let round = 0; round < 2; round += 1) {
    const statuses = [];
    for (const id of ids) statuses.push((await after.call('GET', `/packets/${id}`)).status);
    assert.ok(statuses.includes(500) && statuses.filter((status) => status === 200).length > 20, statuses.join(' '));
    assert.equal((await after.call('GET', '/packets')).status, 200);
  }
  assert.equal(await after.stop(), 0);
});

test("another program's lock on a SQLite file: writes wait for it without blocking reads", async (t) => {
  const { url, drop } = await onDisk.open();
  const service = await startService(t, { databaseUrl: url });
  t.after(drop);
  const { id } = await createPacket(service);
  const other = new DatabaseSync(url.slice('sqlite://'.length));
  other.exec('begin immediate');
  const writing = service.call('POST', '/packets', { body: packetRequest() });
  for (let round = 0; round < 20; round += 1) {
    assert.equal((await service.call('GET', `/packets/${id}`)).status, 200);
    assert.equal((await service.call('GET', '//ready', { key: null })).status, 200);
  }
  assert.equal((await service.call('GET', '/packets')).body.total, 1);
  other.exec('rollback');
  other.close();
  assert.equal((await writing).status, 201);
  assert.equal((await service.call('GET', '/packets')).body.total, 2);
});

test('/ready is 503 while the SQLite file is missing', async (t) => {
  const { url, drop } = await onDisk.open();
  const service = await startService(t, { databaseUrl: url });
  t.after(drop);
  const path = url.slice('sqlite://'.length);
  assert.equal((await service.call('GET', '//ready', { key: null })).status, 200);
  renameSync(path, `${path}.away`);
  assertUnavailable(await service.call('GET', '//ready', { key: null }));
  assert.match((await service.call('GET', '//metrics', { key: null })).text, /^service_database_up 0$/m);
  renameSync(`${path}.away`, path);
  assert.equal((await service.call('GET', '//ready', { key: null })).status, 200);
});

test('a PostgreSQL that refuses temporarily counts as unavailable, whatever its error code', async (t) => {
  const { url, drop } = await openEmptyDatabase();
  t.after(drop);
  const database = openDatabase(url);
  t.after(() => database.close());
  const refusals = '08006 25006 25P03 25P04 28P01 3D000 42501 53300 55000 55006 55P03 57014 57P01 57P05 58030'.split(' ');
  // PostgreSQL writes the severity in the language of its messages (`lc_messages`).
  for (const code of refusals)
    assert.ok(database.isUnavailable(Object.assign(new Error('abgelehnt'), { code, severity: 'SCHWERWIEGEND' })), code);
  for (const code of ['23505', '22P02', '42601']) assert.ok(!database.isUnavailable(Object.assign(new Error('wrong'), { code })), code);
});

test('a PostgreSQL that accepts no connections to the database answers every operation with 503, and recovers', async (t) => {
  const service = await startService(t, { store: postgresql });
  const url = new URL(service.databaseUrl);
  const name = url.pathname.slice(1);
  url.pathname = '/postgres';
  const client = new pg.Client(url.href);
  await client.connect();
  const accept = (isOpen: boolean) => client.query(`alter database "${name}" allow_connections ${isOpen}`);
  try {
    await accept(false);
    await client.query('select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = $1', [name]);
    for (const [method, path, body] of calls)
      assertUnavailable(await service.call(method, path.replace('ID', unknownId), body === undefined ? {} : { body }));
  } finally {
    await accept(true);
    await client.end();
  }
  assert.equal((await service.call('POST', '/packets', { body: packetRequest() })).status, 201);
});

/** Asserts that exactly these packets are stored, as they were answered, and that all counts agree. */
async function assertHolds({ call }: TestProcess, created: readonly TestAnswer[]): Promise<void> {
  for (const { body } of created) assert.deepEqual((await call('GET', `/packets/${body.id}`)).body, body);
  for (const path of ['/packets', '/packets?source_agent=frontline', '/packets?tags=billing', '/audit', '/audit?action=created']) {
    assert.equal((await call('GET', path)).body.total, created.length, path);
  }
}
