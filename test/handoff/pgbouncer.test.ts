import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { sql } from 'kysely';
import pg from 'pg';

import { openDatabase, startError } from '../../src/kit/sql/database.ts';
import { createTestDatabase } from '../support/databases.ts';
import { skipWithoutPgbouncer, startPgbouncer, type TestPgbouncer } from '../support/pgbouncer.ts';
import { createPacket, packetRequest, startService } from '../support/service.ts';

const timeout = 60_000;

describe('Behind PgBouncer in transaction mode', { skip: skipWithoutPgbouncer, timeout }, () => {
  let bouncer: TestPgbouncer;
  before(async () => {
    bouncer = await startPgbouncer(process.env.BATON_TEST_POSTGRES!);
  });
  after(() => bouncer?.stop());

  test('an address without ?pgbouncer=true is refused at the start, with a sentence that names the parameter', async (t) => {
    const { url, drop } = await createTestDatabase('');
    t.after(drop);
    const direct = bouncer.through(url).replace('?pgbouncer=true', '');
    const error = await startService(t, { databaseUrl: direct }).then(
      () => assert.fail('It started.'),
      (reason: unknown) => startError(direct, reason) as Error,
    );
    assert.match(
      error.message,
      /unsupported startup parameter: statement_timeout\. Behind PgBouncer, add \?pgbouncer=true to the address\.$/,
    );
  });

  test('long reads have their time limit, which no other statement on the same server connection inherits', async (t) => {
    const { url, drop } = await createTestDatabase('');
    t.after(drop);
    const database = openDatabase<Record<string, never>>(bouncer.through(url), { longTimeoutMs: 200, byIndex: true });
    t.after(() => database.close());
    await assert.rejects(sql`select pg_sleep(20)`.execute(database.longReads), (error) => database.isTimeout(error));
    const settings = sql`select current_setting('statement_timeout') as timeout, current_setting('enable_seqscan') as scans`;
    for (let round = 0; round < 20; round += 1) {
      assert.deepEqual((await settings.execute(database.reads)).rows, [{ timeout: '0', scans: 'on' }]);
      assert.deepEqual((await settings.execute(database.longReads)).rows, [{ timeout: '200ms', scans: 'off' }]);
    }
  });
});

describe('With fewer connections than the service wants', { timeout }, () => {
  test('requests get their answer or 503 with Retry-After, none hangs, and a start without any connection says why', async (t) => {
    const { url, drop } = await createTestDatabase('');
    const name = `few_${process.pid}`;
    const admin = new pg.Client(url);
    await admin.connect();
    await admin.query(`create role ${name} login password 'few' connection limit 2; grant all on schema public to ${name}`);
    const own = new URL(url);
    own.username = name;
    own.password = 'few';
    const service = await startService(t, { databaseUrl: own.href });
    t.after(async () => {
      await admin.query(`drop owned by ${name}; drop role ${name}`);
      await admin.end();
      await drop();
    });
    const packet = await createPacket(service);
    const paths = ['/packets', `/packets/${packet.id}`, '/audit', '/packets/search?q=charged', '/keys', '//ready'];
    const answers = await Promise.all(Array.from({ length: 60 }, (_, index) => service.call('GET', paths[index % paths.length]!)));
    const writes = await Promise.all(Array.from({ length: 20 }, () => service.call('POST', '/packets', { body: packetRequest() })));
    for (const { status, headers, text } of answers) {
      assert.ok(status === 200 || status === 503, text);
      if (status === 503) assert.equal(headers['retry-after'], '1', text);
    }
    assert.ok(answers.some(({ status }) => status === 200));
    const stored = writes.filter(({ status }) => status === 201).length;
    assert.ok(writes.every(({ status }) => status === 201 || status === 503));
    const listed = await service.call('GET', '/packets');
    assert.deepEqual([listed.status, listed.body.total], [200, 1 + stored]);

    await admin.query(`alter role ${name} connection limit 0`);
    const error = await startService(t, { databaseUrl: own.href }).then(
      () => assert.fail('It started.'),
      (reason: unknown) => startError(own.href, reason) as Error,
    );
    assert.match(error.message, /^PostgreSQL at 127\.0\.0\.1:\d+\/\w+ can't be used: too many connections for role/);
    assert.ok(!error.message.includes('few:') && !error.message.includes(':few'));
  });
});
