import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { createExample } from '../../src/handoff/model/examples.ts';
import { assertSound } from '../support/consistency.ts';
import { connectTo, openEmptyDatabase } from '../support/databases.ts';
import { openInstances } from '../support/instances.ts';
import { startProcess } from '../support/process.ts';
import { createPacket, newTenant, packetRequest, startService, type TestAnswer, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

type Status = Pick<TestAnswer, 'status'>;
const withStatus = <T extends Status>(answers: readonly T[], status: number) => answers.filter((one) => one.status === status);
const range = (count: number) => Array.from({ length: count }, (_, index) => index);

/** Starts instances on one empty PostgreSQL database with one clock. */
async function startInstances(
  t: TestContext,
  count = 2,
  settings: Record<string, string> = {},
): Promise<{ url: string; instances: TestService[] }> {
  const { url, start } = await openInstances(t);
  return { url, instances: await Promise.all(range(count).map(() => start(settings))) };
}

const eventTypes = async (service: TestService, id: string): Promise<string[]> =>
  (await service.call('GET', `/packets/${id}/history`)).body.events.map(({ event_type }: { event_type: string }) => event_type);

describe('Instances that share a PostgreSQL', () => {
  test('three that start concurrently on an empty database migrate it once, and exactly one prints the admin key [H187]', async () => {
    const { url, drop } = await openEmptyDatabase();
    const programs = await Promise.all(range(3).map(() => startProcess({ databaseUrl: url, settings: { SERVICE_ADMIN_KEY: '' } })));
    const codes = await Promise.all(programs.map((program) => program.stop()));
    assert.deepEqual(codes, [0, 0, 0]);
    const keys = programs.flatMap(({ lines }) =>
      lines.flatMap((line) => /admin key \(shown only once\): (svc_\S+)$/.exec(line)?.[1] ?? []),
    );
    assert.equal(keys.length, 1);
    const again = await startProcess({ databaseUrl: url, settings: { SERVICE_ADMIN_KEY: '' } });
    const [key] = keys;
    assert.equal((await again.call('GET', '/tenants', { key: key! })).body.length, 1);
    assert.equal((await again.call('GET', '/keys', { key: key! })).body.length, 1);
    await again.stop();
    assert.ok(again.lines.every((line) => !line.includes('admin key')));
    await drop();
  });

  test('three that start concurrently without any valid admin key create one', async (t) => {
    const { url, drop } = await openEmptyDatabase();
    const service = await startService(t, { databaseUrl: url });
    const [{ id }] = (await service.call('GET', '/keys')).body;
    assert.equal((await service.call('DELETE', `/keys/${id}`)).status, 204);
    // No instance stores a key until all three are blocked at that point.
    const locker = await connectTo(t, url);
    await locker.query('begin; lock table api_keys in share row exclusive mode');
    const settings = { SERVICE_ADMIN_KEY: '' };
    const starting = Promise.all(range(3).map(() => startService(t, { databaseUrl: url, settings })));
    await untilBlocked(t, url, 3);
    await locker.query('commit');
    const shown = (await starting).flatMap(({ handoff }) => handoff.adminKey ?? []);
    assert.equal(shown.length, 1);
    assert.equal((await service.call('GET', '/keys', { key: shown[0]! })).body.length, 1);
    // Registered last, so that it runs after the instances have stopped.
    t.after(drop);
  });

  test('each shows at once what another has acknowledged: packet, list, total, search, history', async (t) => {
    const { instances } = await startInstances(t);
    const [one, other] = instances as [TestService, TestService];
    for (let round = 1; round <= 5; round += 1) {
      const packet = await createPacket(one);
      assert.deepEqual((await other.call('GET', `/packets/${packet.id}`)).body, packet);
      const list = (await other.call('GET', '/packets?limit=1')).body;
      assert.deepEqual([list.total, list.packets[0].id], [round, packet.id]);
      assert.equal((await other.call('GET', '/packets/search?q=charged')).body.total, round);
      assert.deepEqual(await eventTypes(other, packet.id), ['created']);
    }
  });

  test('of 100 parallel claims one succeeds and 99 get 409 with the same claimant', async (t) => {
    const { instances } = await startInstances(t);
    const { id } = await createPacket(instances[0]!);
    const answers = await Promise.all(
      range(100).map((index) => instances[index % 2]!.call('POST', `/packets/${id}/claim`, { body: { agent_id: `agent-${index}` } })),
    );
    const [winner, ...others] = withStatus(answers, 200);
    assert.deepEqual(others, []);
    const losers = withStatus(answers, 409);
    assert.equal(losers.length, 99);
    for (const { body } of losers) assert.equal(body.claimed_by.agent_id, winner!.body.claimed_by.agent_id);
    assert.deepEqual(await eventTypes(instances[1]!, id), ['created', 'claimed']);
  });

  test('of parallel updates of one packet none is lost', async (t) => {
    const { instances } = await startInstances(t, 3);
    const { id } = await createPacket(instances[0]!, { decisions: [] });
    const answers = await Promise.all(
      range(60).map((index) =>
        instances[index % 3]!.call('PATCH', `/packets/${id}`, {
          body: { decisions: [{ id: `d${index}`, decision: 'go', rationale: 'why' }], context: { custom: { last: index } } },
        }),
      ),
    );
    assert.equal(withStatus(answers, 200).length, 60);
    const { body } = await instances[0]!.call('GET', `/packets/${id}`);
    assert.equal(body.revision, 61);
    assert.deepEqual(
      new Set(body.decisions.map((decision: { id: string }) => decision.id)),
      new Set(range(60).map((index) => `d${index}`)),
    );
    assert.deepEqual(new Set(answers.map((answer) => answer.body.revision)).size, 60);
    assert.equal((await eventTypes(instances[1]!, id)).length, 61);
  });

  test('of parallel updates with the same If-Match one succeeds', async (t) => {
    const { instances } = await startInstances(t);
    const { id } = await createPacket(instances[0]!);
    const answers = await Promise.all(
      range(40).map((index) =>
        instances[index % 2]!.call('PATCH', `/packets/${id}`, {
          body: { context: { summary: `by ${index}` } },
          headers: { 'If-Match': '"1"' },
        }),
      ),
    );
    assert.deepEqual([withStatus(answers, 200).length, withStatus(answers, 412).length], [1, 39]);
  });

  test('one idempotency key creates one packet over all instances; another body with it is 409', async (t) => {
    const { instances } = await startInstances(t);
    const post = (index: number, key: string, summary: string) =>
      instances[index % 2]!.call('POST', '/packets', {
        body: packetRequest({ context: { summary } }),
        headers: { 'Idempotency-Key': key },
      });
    // Many keys in different orders, so that the groups of two instances overlap.
    const keys = range(20);
    const orders = [keys, keys.toReversed(), keys, keys.toReversed()];
    const answers = await Promise.all(
      orders.flatMap((order, index) => order.map(async (key) => ({ key, answer: await post(index, `k${key}`, `same ${key}`) }))),
    );
    for (const key of keys) {
      const same = answers.filter((one) => one.key === key).map(({ answer }) => answer);
      assert.equal(withStatus(same, 201).length, 4);
      assert.equal(new Set(same.map(({ text }) => text)).size, 1);
      assert.equal(same.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, 3);
    }
    const different = await Promise.all(range(30).map((index) => post(index, 'other', `body ${index}`)));
    assert.deepEqual([withStatus(different, 201).length, withStatus(different, 409).length], [1, 29]);
    assert.equal((await instances[0]!.call('GET', '/packets')).body.total, 21);
    // Requests that reached both instances created one packet.
    const metrics = await Promise.all(instances.map((instance) => instance.call('GET', '//metrics')));
    const handedOver = metrics.map(({ text }) => Number(/^service_handoffs_total\{.*\} (\d+)$/m.exec(text)?.[1] ?? 0));
    assert.equal(handedOver[0]! + handedOver[1]!, 21);
  });

  test('one idempotency key creates one API key, even if it is used for several tenants concurrently', async (t) => {
    const { instances } = await startInstances(t);
    const tenants = await Promise.all(range(4).map(() => newTenant(instances[0]!)));
    const answers = await Promise.all(
      range(24).map((index) =>
        instances[index % 2]!.call('POST', '/keys', {
          body: { name: 'k', tenant_id: tenants[index % 4]!.id },
          headers: { 'Idempotency-Key': 'once' },
        }),
      ),
    );
    assert.deepEqual([withStatus(answers, 201).length, withStatus(answers, 409).length], [1, 23]);
  });

  test('the daily quota and the quota on keys are exact over all instances', async (t) => {
    const { instances } = await startInstances(t, 3);
    const { id, key } = await newTenant(instances[0]!, { handoffs_per_day: 10, max_api_keys: 4 });
    const created = await Promise.all(
      range(45).map((index) => instances[index % 3]!.call('POST', '/packets', { body: packetRequest(), key })),
    );
    assert.deepEqual([withStatus(created, 201).length, withStatus(created, 429).length], [10, 35]);
    assert.equal((await instances[1]!.call('GET', '/packets', { key })).body.total, 10);
    const keys = await Promise.all(
      range(12).map((index) => instances[index % 3]!.call('POST', '/keys', { body: { name: 'k', tenant_id: id } })),
    );
    assert.deepEqual([withStatus(keys, 201).length, withStatus(keys, 409).length], [3, 9]);
  });

  test('concurrent batches with the same packets in opposite orders, together with all other changes, end without an error', async (t) => {
    const { instances } = await startInstances(t, 3);
    const created = await Promise.all(range(60).map(() => createPacket(instances[0]!)));
    const ids: string[] = created.map(({ id }) => id);
    const removed = ids.slice(0, 5);
    const calls: Promise<TestAnswer>[] = [];
    for (const [index, instance] of instances.entries()) {
      const order = index % 2 === 0 ? ids : ids.toReversed();
      for (const agent_id of ['a', 'b', 'c']) {
        calls.push(instance.call('POST', '/packets/batch/claim', { body: { packet_ids: order, agent_id: `${agent_id}${index}` } }));
        calls.push(instance.call('POST', '/packets', { body: packetRequest(), headers: { 'Idempotency-Key': `${agent_id}` } }));
        calls.push(instance.call('POST', `/packets/${order[7]}/chain`, { body: packetRequest() }));
        await new Promise(setImmediate);
        for (const id of order.slice(10, 20))
          calls.push(instance.call('PATCH', `/packets/${id}`, { body: { metadata: { tags: [agent_id, 'x'] } } }));
        calls.push(instance.call('POST', '/packets/batch/complete', { body: { packet_ids: order } }));
        calls.push(instance.call('GET', '/packets/search?q=charged'));
        await instance.handoff.runOnce.index();
      }
      for (const id of removed) calls.push(instance.call('DELETE', `/packets/${id}?hard=true`));
    }
    const answers = await Promise.all(calls);
    for (const { status, text } of answers) assert.ok(status < 500, text);
    const claimed = answers.flatMap(({ body }) => body?.claimed ?? []).map(({ id }: { id: string }) => id);
    assert.equal(new Set(claimed).size, claimed.length);
    await assertSound(instances[0]!.databaseUrl);
  });

  test('a packet removed while another instance indexes it is not left in the index', async (t) => {
    const { url, instances } = await startInstances(t);
    const [one] = instances as [TestService];
    const { id } = await createPacket(one);
    // Plays the other instance's indexer, stopped in the middle of this packet.
    const indexer = await connectTo(t, url);
    await indexer.query('begin');
    await indexer.query('select * from search_queue where packet = (select seq from packets where id = $1) for update', [id]);
    await indexer.query("insert into search_index (tenant, rowid, words) select tenant, seq, '1_charged:1' from packets where id = $1", [
      id,
    ]);
    await indexer.query('delete from search_queue where packet = (select seq from packets where id = $1)', [id]);
    const removing = one.call('DELETE', `/packets/${id}?hard=true`);
    await untilBlocked(t, url);
    await indexer.query('commit');
    assert.equal((await removing).status, 204);
    assert.equal((await one.call('GET', '/packets/search?q=charged')).body.total, 0);
    await assertSound(url);
  });

  test("a new answer under an idempotency key survives another instance's deletion of the expired one", async (t) => {
    const { url, instances } = await startInstances(t, 1);
    const [one] = instances as [TestService];
    const post = () => one.call('POST', '/packets', { body: packetRequest(), headers: { 'Idempotency-Key': 'again' } });
    const first = await post();
    assert.equal(first.status, 201);
    one.clock.turn(24 * 3600 + 1);
    // The other instance deletes the answer and stores a new one between this instance's read and its delete.
    const other = await connectTo(t, url);
    await other.query('begin');
    await other.query('update idempotency set created_at = $1', [one.clock.read().toISOString()]);
    const pruning = one.handoff.runOnce.prune();
    await untilBlocked(t, url);
    await other.query('commit');
    await pruning;
    const again = await post();
    assert.equal(again.status, 201);
    assert.equal(again.headers['idempotency-replayed'], 'true');
    assert.equal(again.text, first.text);
  });

  test('/metrics has the number of writes that wait for their commit', async (t) => {
    const { url, instances } = await startInstances(t, 1);
    const [one] = instances as [TestService];
    const waiting = async () => Number(/^service_write_queue_length (\d+)$/m.exec((await one.call('GET', '//metrics')).text)?.[1]);
    assert.equal(await waiting(), 0);
    const locker = await connectTo(t, url);
    // Writes wait, reads do not: /metrics reads too.
    await locker.query('begin; lock table packets in exclusive mode');
    const creating = createPacket(one);
    await untilBlocked(t, url);
    assert.equal(await waiting(), 1);
    await locker.query('commit');
    await creating;
    assert.equal(await waiting(), 0);
  });

  test('a packet times out once, however many sweepers run', async (t) => {
    const { instances } = await startInstances(t, 3, { SERVICE_UNCLAIMED_TTL_SECONDS: '7200' });
    const { id: unclaimed } = await createPacket(instances[0]!);
    const { id: asked } = await createPacket(instances[0]!, { hitl: { ...createExample.hitl, on_timeout: 'fail' } });
    assert.equal((await instances[1]!.call('PATCH', `/packets/${asked}`, { body: { status: 'awaiting_human' } })).status, 200);
    instances[0]!.clock.turn(7200);
    await Promise.all(instances.map(({ handoff }) => handoff.runOnce.sweep()));
    assert.deepEqual(await eventTypes(instances[0]!, asked), ['created', 'awaiting_human', 'hitl_timed_out', 'failed']);
    assert.deepEqual(await eventTypes(instances[0]!, unclaimed), ['created', 'expired']);
  });
});

/** Resolves when `count` sessions on the database, by default one, wait for a lock. */
async function untilBlocked(t: TestContext, url: string, count = 1): Promise<void> {
  const client = await connectTo(t, url);
  await until(async () => (await client.query('select distinct pid from pg_locks where not granted')).rows.length >= count);
}
