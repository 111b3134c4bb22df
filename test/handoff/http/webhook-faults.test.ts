import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { verify } from '@octokit/webhooks-methods';
import { Webhook } from 'standardwebhooks';

import type { Tables } from '../../../src/handoff/store/tables.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import { a2a } from '../../support/a2a.ts';
import { type Reply, startReceiver } from '../../support/receiver.ts';
import { createPacket, newTenant, packetRequest, type TestService } from '../../support/service.ts';
import { onDisk, postgresql, stores } from '../../support/stores.ts';
import { repeat, until } from '../../support/until.ts';
import { deliveriesOf, register, secret, shareHooked, startHooked } from '../../support/webhooks.ts';

// Faults of receivers and machines, tested through the deliverer. test/handoff/rules/delivery.test.ts tests the rules,
// test/kit/outgoing/outgoing.test.ts the HTTP exchange.

/** A short timeout of an attempt, in milliseconds, for tests in which the receiver never answers. */
const soon = 1000;

async function createMany(service: TestService, count: number): Promise<void> {
  const packets = Array.from({ length: count }, () => packetRequest());
  assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
}

/** Resolves when the connection of an answer is closed, however it ends. */
function cut({ socket }: ServerResponse): Promise<void> {
  socket!.on('error', () => undefined);
  return new Promise((resolve) => socket!.once('close', () => resolve()));
}

/** The state of the one delivery after each of the receivers' answers. */
async function outcomesOf(t: TestContext, service: TestService, replies: readonly Reply[]): Promise<unknown[][]> {
  const hooks: string[] = [];
  for (const reply of replies) hooks.push((await register(service, (await startReceiver(t, reply)).url)).id);
  await createPacket(service);
  await service.handoff.runOnce.deliver();
  const outcomes: unknown[][] = [];
  for (const id of hooks) {
    const [{ status, attempts, last_error, last_status_code, next_retry_at }] = await deliveriesOf(service, id);
    outcomes.push([status, attempts, last_error, last_status_code, next_retry_at]);
  }
  return outcomes;
}

test('a receiver that never answers, or stops within its headers, is a timeout without a status, and its connection is closed [H129]', async (t) => {
  const ended: Promise<void>[] = [];
  const silent: Reply = (response) => void ended.push(cut(response));
  const halting: Reply = (response) => {
    silent(response, undefined as never, undefined as never);
    response.socket!.write('HTTP/1.1 200 OK\r\ncontent-ty');
  };
  const service = await startHooked(t, { dependencies: { outgoing: { attemptMs: soon } } });
  for (const [status, attempts, error, code] of await outcomesOf(t, service, [silent, halting]))
    assert.deepEqual([status, attempts, error, code], ['failed', 1, 'timeout', null]);
  await Promise.all(ended);
  assert.equal(ended.length, 2);
});

test('a 2xx status is enough: an endless body is cut at 64 KiB, a slow one at the timeout; a later reset is harmless [H129]', async (t) => {
  const ended: Promise<void>[] = [];
  let sent = 0;
  const watched = (handle: (response: ServerResponse) => void): Reply => {
    return (response) => {
      ended.push(cut(response));
      handle(response);
    };
  };
  const endless = watched((response) => {
    response.writeHead(200).flushHeaders();
    const flood = () => {
      while (!response.destroyed) {
        sent += 16_384;
        if (!response.write(Buffer.alloc(16_384))) return void response.once('drain', flood);
      }
    };
    flood();
  });
  const dripping = watched((response) => void response.writeHead(200).write('x'));
  const breaking = watched((response) => {
    response.writeHead(200, { 'content-length': '100' }).write('x');
    setImmediate(() => response.socket?.resetAndDestroy());
  });
  const service = await startHooked(t, { dependencies: { outgoing: { attemptMs: 3000 } } });
  const outcomes = await outcomesOf(t, service, [endless, dripping, breaking, 204]);
  assert.deepEqual(
    outcomes,
    [200, 200, 200, 204].map((code) => ['delivered', 1, null, code, null]),
  );
  await Promise.all(ended);
  // Includes what both kernels buffer for a connection that is not read.
  assert.ok(sent < 32 * 1024 * 1024, `${sent} bytes`);
});

test('Retry-After lengthens the delay [H129]', async (t) => {
  const service = await shareHooked(t, stores[0]!);
  const asking: Reply = (response) => void response.writeHead(429, { 'retry-after': '120' }).end();
  const at = new Date(service.clock.read().getTime() + 120_000).toISOString();
  const [outcome] = await outcomesOf(t, service, [asking]);
  assert.deepEqual([outcome![0], outcome!.slice(2)], ['failed', ['http_status', 429, at]]);
});

test('a fault of the service in an attempt counts as a failure, and ends as a dead letter', async (t) => {
  const service = await startHooked(t, { store: onDisk, settings: { SERVICE_WEBHOOK_RETRY_SECONDS: '1,1' } });
  const { id } = await createPacket(service);
  const config = { taskId: id, id: 'mine', url: 'http://127.0.0.1:9/', token: 'a-token-for-tests-0123456789' };
  await a2a(service, 'CreateTaskPushNotificationConfig', config);
  const database = openDatabase<Tables>(service.databaseUrl);
  await database.transaction((tx) => tx.updateTable('webhooks').set({ authentication: 'no JSON' }).execute());
  await database.close();
  await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } });
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await service.handoff.runOnce.deliver();
    service.clock.turn(30);
  }
  const { body } = await service.call('GET', '/hooks/dlq');
  const [{ status, attempts, last_error }] = body;
  assert.deepEqual([status, attempts, last_error], ['dead_letter', 2, 'internal_error']);
});

test('a verifier of Standard Webhooks accepts a fresh delivery [H126]', async (t) => {
  const receiver = await startReceiver(t);
  // That verifier checks the timestamp against the real time.
  const service = await shareHooked(t, stores[0]!);
  service.clock.set(new Date().toISOString());
  await register(service, receiver.url);
  const { id } = await createPacket(service);
  await service.handoff.runOnce.deliver();
  const [{ headers, body }] = receiver.posts as [(typeof receiver.posts)[0]];
  const verifier = new Webhook(secret, { format: 'raw' });
  assert.equal((verifier.verify(body, headers as Record<string, string>) as { packet_id: string }).packet_id, id);
  assert.throws(() => verifier.verify(body.replace('created', 'claimed'), headers as Record<string, string>), /signature/i);
});

test('the key of Standard Webhooks is what a secret whsec_<base64> encodes, also while an old secret signs too [H126]', async (t) => {
  const receiver = await startReceiver(t);
  const service = await shareHooked(t, stores[0]!);
  service.clock.set(new Date().toISOString());
  const [first, second] = ['MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk=', 'QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo'].map((key) => `whsec_${key}`);
  const hook = await register(service, receiver.url, { secret: first });
  assert.equal((await service.call('PATCH', `/hooks/${hook.id}`, { body: { secret: second } })).status, 200);
  const { id } = await createPacket(service);
  await service.handoff.runOnce.deliver();
  const [{ headers, body }] = receiver.posts as [(typeof receiver.posts)[0]];
  for (const secret of [first!, second!]) {
    const verified = new Webhook(secret).verify(body, headers as Record<string, string>) as { packet_id: string };
    assert.equal(verified.packet_id, id);
  }
  assert.throws(() => new Webhook(second!, { format: 'raw' }).verify(body, headers as Record<string, string>), /signature/i);
  // The whole text is the key of our own signature.
  assert.ok(await verify(second!, body, String(headers['x-service-signature'])));
});

test('a quick receiver that hangs gets no more attempts than a slow one, even before the first attempt has failed [H133]', async (t) => {
  const held: ServerResponse[] = [];
  let hangs = false;
  const receiver = await startReceiver(t, (response) => {
    if (hangs) held.push(response);
    else response.writeHead(204).end();
  });
  const service = await shareHooked(t, stores[0]!);
  await register(service, receiver.url);
  // These successes raise its limit to the maximum.
  await createMany(service, 100);
  await repeat(service.handoff.runOnce.deliver, () => receiver.posts.length >= 100);
  hangs = true;
  await createMany(service, 6);
  const delivering = [service.handoff.runOnce.deliver()];
  await receiver.received(106);
  service.clock.turn(1.5);
  await createMany(service, 50);
  delivering.push(service.handoff.runOnce.deliver());
  await createPacket(service);
  assert.equal(receiver.posts.length, 106);
  hangs = false;
  for (const response of held.splice(0)) response.writeHead(500).end();
  await Promise.all(delivering);
  // A failure resets the limit to a few.
  hangs = true;
  const before = receiver.posts.length;
  delivering.push(service.handoff.runOnce.deliver());
  await receiver.received(before + 4);
  assert.equal(held.length, 4);
  hangs = false;
  for (const response of held) response.writeHead(204).end();
  await Promise.all(delivering);
});

/** A receiver at each of so many ports, which answers only once it is released; `arrived` resolves when so many posts have arrived. */
async function holdingReceivers(t: TestContext, count: number) {
  const held: ServerResponse[] = [];
  let isOpen = false;
  const hold: Reply = (response) => {
    if (isOpen) response.writeHead(204).end();
    else held.push(response);
  };
  const receivers = await Promise.all(Array.from({ length: count }, () => startReceiver(t, hold)));
  const posts = () => receivers.flatMap((receiver) => receiver.posts);
  return {
    urls: receivers.map(({ url }) => url),
    posts,
    arrived: (most: number) => until(() => posts().length >= most),
    release() {
      isOpen = true;
      for (const response of held) response.writeHead(204).end();
    },
  };
}

test('the memory for bodies is bounded by tenant: further attempts of it wait, those of others do not, and all are delivered [H133]', async (t) => {
  const service = await shareHooked(t, stores[0]!);
  const { key } = await newTenant(service, { tier: 'business' });
  const held = await holdingReceivers(t, 20);
  for (const url of held.urls) await register(service, url);
  const other = await startReceiver(t);
  await register(service, other.url, {}, key);
  await createPacket(service, { context: { summary: 'x'.repeat(950_000) } });
  const delivering = [service.handoff.runOnce.deliver()];
  await held.arrived(1);
  const megabyte = 1024 * 1024;
  const most = Math.floor((15 * megabyte) / held.posts()[0]!.body.length) + 1;
  await held.arrived(most);
  await createPacket(service, { context: { summary: 'x'.repeat(950_000) } }, key);
  delivering.push(service.handoff.runOnce.deliver());
  await other.received(1);
  assert.deepEqual([held.posts().length, most < 20], [most, true]);
  held.release();
  await Promise.all(delivering);
  await repeat(service.handoff.runOnce.deliver, () => held.posts().length >= 20);
  assert.equal(held.posts().length, 20);
});

test('a tenant with many slow receivers has at most 256 attempts at once, and leaves the others to other tenants [H133]', async (t) => {
  const service = await shareHooked(t, stores[0]!);
  const { key } = await newTenant(service, { tier: 'business' });
  const held = await holdingReceivers(t, 70);
  for (const url of held.urls) await register(service, url);
  const other = await startReceiver(t);
  await register(service, other.url, {}, key);
  await createMany(service, 5);
  const delivering = [service.handoff.runOnce.deliver()];
  await held.arrived(256);
  await createPacket(service, {}, key);
  delivering.push(service.handoff.runOnce.deliver());
  await other.received(1);
  const most = held.posts().length;
  held.release();
  await Promise.all(delivering);
  // Each of the receivers alone would have four.
  assert.equal(most, 256);
  await repeat(service.handoff.runOnce.deliver, () => held.posts().length >= 350);
  assert.equal(held.posts().length, 350);
});

test('a clock that jumps back or ahead neither floods receivers nor stalls deliveries beyond the jump; leases still expire [H128, H162]', async (t) => {
  const receiver = await startReceiver(t, 500, 204);
  const service = await shareHooked(t, stores[0]!);
  const { id } = await register(service, receiver.url);
  await createPacket(service);
  await service.handoff.runOnce.deliver();
  service.clock.turn(-3600);
  await createPacket(service);
  await service.handoff.runOnce.deliver();
  // New events are sent at once; the retry scheduled before the jump waits for its time.
  assert.equal(receiver.posts.length, 2);
  service.clock.turn(3602);
  await service.handoff.runOnce.deliver();
  assert.equal(receiver.posts.length, 3);
  service.clock.turn(3600);
  for (let round = 0; round < 3; round += 1) await service.handoff.runOnce.deliver();
  assert.equal(receiver.posts.length, 3);
  assert.ok((await deliveriesOf(service, id)).every(({ status }) => status === 'delivered'));
});

test('retry-all skips a delivery with a running attempt: it is posted once [H127]', async (t) => {
  let answer: (() => void) | undefined;
  const receiver = await startReceiver(t, 500, (response) => {
    answer = () => response.writeHead(204).end();
  });
  const service = await shareHooked(t, stores[0]!);
  await register(service, receiver.url);
  await createPacket(service);
  await service.handoff.runOnce.deliver();
  service.clock.turn(2);
  const delivering = service.handoff.runOnce.deliver();
  await receiver.received(2);
  const retried = await service.call('POST', '/hooks/dlq/retry-all', { body: { force: true } });
  assert.deepEqual(retried.body, { retried: 0, skipped: 0, remaining: 0 });
  answer!();
  await delivering;
  await service.handoff.runOnce.deliver();
  assert.equal(receiver.posts.length, 2);
});

test('when an instance stalls past its lease, another one delivers, and the outcome of the first changes nothing [H128]', async (t) => {
  const held: ServerResponse[] = [];
  const receiver = await startReceiver(t, (response) => void held.push(response));
  const first = await startHooked(t, { store: postgresql });
  const second = await startHooked(t, { databaseUrl: first.databaseUrl, clock: first.clock });
  const { id } = await register(first, receiver.url);
  await createPacket(first);
  const delivering = [first.handoff.runOnce.deliver()];
  await receiver.received(1);
  await second.handoff.runOnce.deliver();
  assert.equal(receiver.posts.length, 1);
  first.clock.turn(20);
  delivering.push(second.handoff.runOnce.deliver());
  await receiver.received(2);
  // The first instance's attempt fails while the second holds the lease: that must not make the delivery due.
  held[0]!.socket!.resetAndDestroy();
  await delivering[0];
  first.clock.turn(5);
  await first.handoff.runOnce.deliver();
  assert.equal(receiver.posts.length, 2);
  held[1]!.writeHead(204).end();
  await delivering[1];
  const [{ status, attempts, last_error }] = await deliveriesOf(first, id);
  assert.deepEqual([status, attempts, last_error], ['delivered', 1, null]);
  assert.equal(new Set(receiver.posts.map(({ headers }) => headers['x-service-delivery'])).size, 1);
});
