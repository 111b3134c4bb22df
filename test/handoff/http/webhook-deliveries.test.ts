import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { describe, test } from 'node:test';
import { verify } from '@octokit/webhooks-methods';

import { signatureHeaders } from '../../../src/handoff/rules/signature.ts';
import { looking } from '../../support/consistency.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, newTenant, packetRequest } from '../../support/service.ts';
import { numbersTo } from '../../support/store.ts';
import { onDisk, postgresql, stores } from '../../support/stores.ts';
import { repeat, until } from '../../support/until.ts';
import { deliveriesOf, register, secret, shareHooked, startHooked } from '../../support/webhooks.ts';

for (const store of stores) {
  describe(`Deliveries on ${store.name}`, () => {
    test('an event is posted with the whole packet, and third-party verifiers accept its signatures over the raw body [H125, H126]', async (t) => {
      const receiver = await startReceiver(t);
      const service = await shareHooked(t, store);
      const hook = await register(service, receiver.url);
      const packet = await createPacket(service);
      await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 1);
      const [{ path, headers, body }] = receiver.posts as [(typeof receiver.posts)[0]];
      assert.deepEqual(JSON.parse(body), { type: 'packet.created', packet_id: packet.id, data: packet, timestamp: packet.created_at });
      assert.equal(path, '/hook');
      assert.equal(headers['content-type'], 'application/json; charset=utf-8');
      assert.ok(await verify(secret, body, String(headers['x-service-signature'])));
      const { entries } = (await service.call('GET', '/audit?action=created')).body;
      assert.equal(headers['webhook-id'], entries.find(({ resource }: { resource: string }) => resource === 'packet').id);
      assert.equal(headers['webhook-timestamp'], String(service.clock.read().getTime() / 1000));
      const [delivery] = await deliveriesOf(service, hook.id);
      assert.deepEqual(
        [headers['x-service-event'], headers['x-service-delivery'], headers['x-service-attempt']],
        ['packet.created', delivery.id, '1'],
      );
      assert.deepEqual(delivery, {
        id: delivery.id,
        webhook_id: hook.id,
        packet_id: packet.id,
        event_type: 'packet.created',
        status: 'delivered',
        attempts: 1,
        last_error: null,
        last_status_code: 204,
        next_retry_at: null,
        delivered_at: '2026-03-01T09:30:00.000Z',
        created_at: '2026-03-01T09:30:00.000Z',
        updated_at: '2026-03-01T09:30:00.000Z',
      });
    });

    test('a delivery can be read with the exact body that is sent, by its tenant, and of a removed webhook too', async (t) => {
      const receiver = await startReceiver(t);
      const service = await shareHooked(t, store);
      const hook = await register(service, receiver.url);
      await createPacket(service, { context: { summary: 'Ünïcode 🚀 "quoted"\\n' } });
      const before = await deliveriesOf(service, hook.id);
      await service.handoff.runOnce.deliver();
      const [delivery] = await deliveriesOf(service, hook.id);
      const path = `/hooks/${hook.id}/deliveries/${delivery.id}`;
      const [{ headers, body }] = receiver.posts as [(typeof receiver.posts)[0]];
      assert.deepEqual((await service.call('GET', path)).body, { ...delivery, event_id: headers['webhook-id'], body });
      assert.equal(before[0].id, delivery.id);
      assert.equal((await service.call('DELETE', `/hooks/${hook.id}`)).status, 204);
      assert.equal((await service.call('GET', path)).body.body, body);

      const { key } = await newTenant(service);
      const unknown = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
      const own = await register(service, receiver.url, {}, key);
      const statusOf = async (at: string, by?: string) => {
        const { status, body: refusal } = await service.call('GET', at, by === undefined ? {} : { key: by });
        return [status, refusal.detail];
      };
      assert.deepEqual(await statusOf(path, key), await statusOf(`/hooks/${unknown}/deliveries/${delivery.id}`, key));
      assert.deepEqual(await statusOf(`/hooks/${own.id}/deliveries/${delivery.id}`, key), [404, 'No such delivery.']);
      for (const id of [unknown, 'x']) assert.equal((await statusOf(`/hooks/${hook.id}/deliveries/${id}`))[0], 404);
    });

    test('six failures: attempts at once and after 1 s, 5 s, 30 s, 5 min, 1 h; then a dead letter, which retry-all takes after 6 h [H126, H129]', async (t) => {
      const receiver = await startReceiver(t, 500);
      const service = await shareHooked(t, store);
      const hook = await register(service, receiver.url);
      await createPacket(service);
      const { deliver } = service.handoff.runOnce;
      await deliver();
      for (const [index, delay] of [1, 5, 30, 300, 3600].entries()) {
        const [{ status, attempts, last_error, last_status_code, next_retry_at }] = await deliveriesOf(service, hook.id);
        assert.deepEqual([status, attempts, last_error, last_status_code], ['failed', index + 1, 'http_status', 500]);
        const waitMs = Date.parse(next_retry_at) - service.clock.read().getTime();
        assert.ok(waitMs >= delay * 1000 && waitMs <= delay * 1100 + 1, `${delay}: ${waitMs}`);
        service.clock.turn(delay - 0.001);
        await deliver();
        assert.equal(receiver.posts.length, index + 1);
        service.clock.turn(delay * 0.1 + 0.002);
        await deliver();
        assert.equal(receiver.posts.length, index + 2);
      }
      const [dead] = await deliveriesOf(service, hook.id);
      assert.deepEqual([dead.status, dead.attempts, dead.last_error], ['dead_letter', 6, 'http_status']);
      assert.equal(Date.parse(dead.next_retry_at) - service.clock.read().getTime(), 21_600_000);
      service.clock.turn(100_000);
      await deliver();
      assert.equal(receiver.posts.length, 6);
      assert.equal(new Set(receiver.posts.map(({ headers }) => headers['x-service-delivery'])).size, 1);
      assert.equal(new Set(receiver.posts.map(({ body }) => body)).size, 1);
      assert.deepEqual(
        receiver.posts.map(({ headers }) => headers['x-service-attempt']),
        ['1', '2', '3', '4', '5', '6'],
      );
      // Each attempt has its own timestamp and signature.
      for (const name of ['webhook-timestamp', 'webhook-signature'])
        assert.equal(new Set(receiver.posts.map(({ headers }) => headers[name])).size, 6, name);
      assert.deepEqual((await service.call('GET', '/hooks/dlq')).body, [dead]);
    });

    test('three failures and then 200: delivered with four attempts, without a last_error', async (t) => {
      const receiver = await startReceiver(t, 500, 503, 404, 200);
      const service = await shareHooked(t, store);
      const hook = await register(service, receiver.url);
      await createPacket(service);
      for (let attempt = 0; attempt < 6; attempt += 1) {
        await service.handoff.runOnce.deliver();
        service.clock.turn(60);
      }
      const [{ status, attempts, last_error, last_status_code, next_retry_at, delivered_at }] = await deliveriesOf(service, hook.id);
      assert.deepEqual([status, attempts, last_error, last_status_code, next_retry_at], ['delivered', 4, null, 200, null]);
      assert.equal(delivered_at, '2026-03-01T09:33:00.000Z');
      assert.equal(receiver.posts.length, 4);
    });

    test('each failure without a status has its own class: refused, reset, redirected, unknown name, private address [H129, H127, H139]', async (t) => {
      const resetting = await startReceiver(t, (response) => response.socket!.resetAndDestroy());
      const target = await startReceiver(t);
      const redirecting = await startReceiver(t, (response) => response.writeHead(307, { location: target.url }).end());
      const closed = await startReceiver(t);
      await closed.close();
      const settings = { SERVICE_WEBHOOK_ALLOW: '127.0.0.1,rebound.test' };
      const addresses: Record<string, string> = { 'public.test': '93.184.215.14' };
      const resolve = async (name: string) => {
        if (addresses[name] === undefined) throw new Error('ENOTFOUND');
        return [{ address: addresses[name]!, family: 4 }];
      };
      const service = await startHooked(t, { store, settings, dependencies: { outgoing: { resolve } } });
      const hooks: [id: string, error: string, status: number | null][] = [];
      for (const [to, error, status] of [
        [resetting.url, 'connection_reset', null],
        [redirecting.url, 'redirect_refused', 307],
        [closed.url, 'connection_refused', null],
        ['https://nowhere.test/', 'dns_error', null],
        ['https://public.test/', 'address_refused', null],
      ] as const)
        hooks.push([(await register(service, to)).id, error, status]);
      // A name that resolved to a public address at registration and to a private one at delivery.
      addresses['public.test'] = '10.0.0.1';
      await createPacket(service);
      await service.handoff.runOnce.deliver();
      for (const [id, error, code] of hooks) {
        const [{ status, attempts, last_error, last_status_code }] = await deliveriesOf(service, id);
        assert.deepEqual([status, attempts, last_error, last_status_code], ['failed', 1, error, code]);
      }
      assert.equal(target.posts.length, 0);
    });

    test('410: a dead letter at once, and the webhook is disabled with a reason and an audit entry [H129, H127, H142, H140, H218]', async (t) => {
      const receiver = await startReceiver(t, 410, 204);
      const service = await shareHooked(t, store);
      const { id } = await register(service, receiver.url);
      await createPacket(service);
      await service.handoff.runOnce.deliver();
      const [dead] = await deliveriesOf(service, id);
      assert.deepEqual([dead.status, dead.attempts, dead.last_status_code], ['dead_letter', 1, 410]);
      const [hook] = (await service.call('GET', '/hooks')).body;
      assert.deepEqual([hook.active, hook.disabled_reason], [false, 'gone']);
      const [entry] = (await service.call('GET', '/audit?action=disabled')).body.entries;
      assert.deepEqual([entry.actor, entry.key_id, entry.details], ['system:deliverer', null, { webhook_id: id, reason: 'gone' }]);
      await createPacket(service);
      assert.equal((await deliveriesOf(service, id)).length, 1);
      assert.equal((await service.call('POST', `/hooks/dlq/${dead.id}/replay`)).status, 409);
      assert.equal((await service.call('POST', `/hooks/${id}/ping`)).status, 409);
      assert.deepEqual((await service.call('POST', '/hooks/dlq/retry-all', { body: { force: true } })).body, {
        retried: 0,
        skipped: 1,
        remaining: 0,
      });
      const on = await service.call('PATCH', `/hooks/${id}`, { body: { active: true } });
      assert.deepEqual([on.body.active, on.body.disabled_reason], [true, null]);
      assert.equal((await service.call('POST', `/hooks/dlq/${dead.id}/replay`)).status, 200);
      await service.handoff.runOnce.deliver();
      assert.equal((await deliveriesOf(service, id))[0].status, 'delivered');
    });

    test('an inactive webhook keeps its pending deliveries; once it is active again, due ones are sent at once [H142]', async (t) => {
      const receiver = await startReceiver(t, 500, 204);
      const service = await shareHooked(t, store);
      const { id } = await register(service, receiver.url);
      await createPacket(service);
      await service.handoff.runOnce.deliver();
      assert.equal((await service.call('PATCH', `/hooks/${id}`, { body: { active: false } })).status, 200);
      service.clock.turn(60);
      await service.handoff.runOnce.deliver();
      await createPacket(service);
      assert.equal(receiver.posts.length, 1);
      assert.deepEqual(
        (await deliveriesOf(service, id)).map(({ status }) => status),
        ['failed'],
      );
      assert.equal((await service.call('PATCH', `/hooks/${id}`, { body: { active: true } })).status, 200);
      await service.handoff.runOnce.deliver();
      assert.equal((await deliveriesOf(service, id))[0].status, 'delivered');
    });

    test('a webhook whose deliveries all fail for too long is disabled; a success resets the time [H142]', async (t) => {
      const receiver = await startReceiver(t, 500, 500, 204, 500, 500, 500);
      const settings = { SERVICE_WEBHOOK_DISABLE_AFTER_SECONDS: '100', SERVICE_WEBHOOK_RETRY_SECONDS: '60,60,60,60,60,60,60' };
      const service = await startHooked(t, { store, settings });
      const { id } = await register(service, receiver.url);
      const states: unknown[] = [];
      for (let attempt = 0; attempt < 6; attempt += 1) {
        if (attempt === 0 || attempt === 3) await createPacket(service);
        await service.handoff.runOnce.deliver();
        const [{ active, disabled_reason }] = (await service.call('GET', '/hooks')).body;
        states.push(active ? 'on' : disabled_reason);
        service.clock.turn(67);
      }
      assert.deepEqual(states, ['on', 'on', 'on', 'on', 'on', 'failing']);
      assert.equal((await service.call('GET', '/audit?action=disabled')).body.total, 1);
      assert.equal((await deliveriesOf(service, id)).length, 2);
    });

    test('a removed webhook is sent nothing: pending deliveries are cancelled, a running attempt is recorded [H127, H72, H146]', async (t) => {
      let answer: (() => void) | undefined;
      const receiver = await startReceiver(t, (response) => {
        answer = () => response.writeHead(204).end();
      });
      const service = await shareHooked(t, store);
      const { id } = await register(service, receiver.url);
      await createPacket(service);
      const delivering = service.handoff.runOnce.deliver();
      await receiver.received(1);
      await createPacket(service);
      assert.equal((await service.call('DELETE', `/hooks/${id}`)).status, 204);
      const cancelling = service.handoff.runOnce.deliver();
      // Both were cancelled; the outcome of the running attempt is recorded nevertheless.
      await until(async () => (await deliveriesOf(service, id, '?status=cancelled')).length >= 2);
      answer!();
      await Promise.all([delivering, cancelling]);
      assert.deepEqual(
        (await deliveriesOf(service, id)).map(({ status }) => status),
        ['cancelled', 'delivered'],
      );
      assert.equal(receiver.posts.length, 1);
    });

    test('deliveries that wait under a lease follow a removal, a new address and a switch of their webhook', async (t) => {
      for (const change of ['DELETE', 'move', 'off'] as const) {
        const service = await shareHooked(t, store);
        const held: ServerResponse[] = [];
        const receiver = await startReceiver(t, (response) => void held.push(response));
        const other = await startReceiver(t);
        const { id } = await register(service, receiver.url);
        const packets = Array.from({ length: 20 }, () => packetRequest());
        await service.call('POST', '/packets/batch', { body: { packets } });
        const delivering = service.handoff.runOnce.deliver();
        await receiver.received(1);
        await until(() => held.length >= 4);
        const begun = held.length;
        const body = change === 'move' ? { url: other.url } : { active: false };
        const answer = await (change === 'DELETE'
          ? service.call('DELETE', `/hooks/${id}`)
          : service.call('PATCH', `/hooks/${id}`, { body }));
        assert.ok(answer.status < 300, answer.text);
        for (const response of held) response.writeHead(204).end();
        await delivering;
        for (let round = 0; round < 6; round += 1) await service.handoff.runOnce.deliver();
        assert.equal(receiver.posts.length, begun, change);
        assert.equal(other.posts.length, change === 'move' ? 20 - begun : 0, change);
        const statuses = (await deliveriesOf(service, id)).map(({ status }) => status);
        const rest = { DELETE: 'cancelled', move: 'delivered', off: 'pending' }[change];
        assert.equal(statuses.filter((status) => status === rest).length, change === 'move' ? 20 : 20 - begun, change);
      }
    });

    test('the secrets and the address of a removed webhook are erased after its last delivery', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t);
      const { id } = await register(service, receiver.url);
      await createPacket(service);
      await service.call('DELETE', `/hooks/${id}`);
      const kept = () =>
        looking(service.databaseUrl, async ({ query }) => {
          const [row] = await query(`select url, secret, old_secret from webhooks where id = '${id}'`);
          return { ...row };
        });
      await service.handoff.runOnce.prune();
      assert.deepEqual(await kept(), { url: receiver.url, secret, old_secret: null });
      await service.handoff.runOnce.deliver();
      await service.handoff.runOnce.prune();
      assert.deepEqual(await kept(), { url: '', secret: '', old_secret: null });
      assert.equal((await deliveriesOf(service, id)).length, 1);
    });

    test('the deliveries of a deleted tenant are cancelled, and nothing more is sent [H207]', async (t) => {
      const receiver = await startReceiver(t, 500);
      const service = await shareHooked(t, store);
      const tenant = await newTenant(service);
      await register(service, receiver.url, {}, tenant.key);
      await createPacket(service, {}, tenant.key);
      await service.handoff.runOnce.deliver();
      await createPacket(service, {}, tenant.key);
      assert.equal((await service.call('DELETE', `/tenants/${tenant.id}`)).status, 204);
      const waiting = async () => /^service_webhook_queue_length (\d+)$/m.exec((await service.call('GET', '//metrics')).text)![1];
      assert.equal(await waiting(), '2');
      service.clock.turn(60);
      await service.handoff.runOnce.deliver();
      assert.deepEqual([await waiting(), receiver.posts.length], ['0', 1]);
    });

    test('a delivered or cancelled delivery is listed for 30 days; a dead letter stays [H146]', async (t) => {
      const receiver = await startReceiver(t, 204, 410);
      const service = await shareHooked(t, store);
      const { id } = await register(service, receiver.url);
      for (let index = 0; index < 2; index += 1) {
        await createPacket(service);
        await service.handoff.runOnce.deliver();
      }
      const statuses = async () => (await deliveriesOf(service, id)).map(({ status }) => status);
      service.clock.turn(30 * 86_400 - 1);
      await service.handoff.runOnce.prune();
      assert.deepEqual(await statuses(), ['dead_letter', 'delivered']);
      service.clock.turn(2);
      await service.handoff.runOnce.prune();
      assert.deepEqual(await statuses(), ['dead_letter']);
    });

    test('deliveries are kept as long as the settings say: those that ended, and dead letters, each with its body; 0 is forever [H146]', async (t) => {
      const receiver = await startReceiver(t, 204, 410);
      const kept = { SERVICE_DELIVERY_RETENTION_SECONDS: '0', SERVICE_DEAD_LETTER_RETENTION_SECONDS: '3600' };
      const service = await startHooked(t, { store, settings: kept });
      const { id } = await register(service, receiver.url);
      for (let index = 0; index < 2; index += 1) {
        await createPacket(service);
        await service.handoff.runOnce.deliver();
      }
      const statuses = async () => (await deliveriesOf(service, id)).map(({ status }) => status);
      const bodies = () => looking(service.databaseUrl, async ({ query }) => (await query('select event_id from messages')).length);
      service.clock.turn(3600);
      await service.handoff.runOnce.prune();
      assert.deepEqual([await statuses(), await bodies()], [['dead_letter', 'delivered'], 2]);
      service.clock.turn(1);
      await service.handoff.runOnce.prune();
      assert.deepEqual([await statuses(), await bodies()], [['delivered'], 1]);
      service.clock.turn(400 * 86_400);
      await service.handoff.runOnce.prune();
      assert.deepEqual([await statuses(), await bodies()], [['delivered'], 1]);
    });

    test('old dead letters are removed in rounds, however many there are; one that is replayed stays', async (t) => {
      const service = await startHooked(t, {
        store,
        settings: {
          SERVICE_DEAD_LETTER_RETENTION_SECONDS: '60',
          SERVICE_WEBHOOK_RETRY_SECONDS: '1',
          SERVICE_WEBHOOK_DISABLE_AFTER_SECONDS: '0',
        },
      });
      const { id } = await register(service, 'http://127.0.0.1:1/hook', { events: ['packet.created'] });
      await createPacket(service);
      await service.handoff.runOnce.deliver();
      await looking(service.databaseUrl, ({ query }) => {
        const columns =
          'tenant, webhook, packet_id, event_id, event_type, status, attempts, last_error, next_retry_at, created_at, updated_at';
        return query(`insert into deliveries (id, ${columns}) select 'copy-' || number, ${columns}
          from deliveries cross join ${numbersTo(service.databaseUrl, 599)}`);
      });
      const dead = async () => (await service.call('GET', '/hooks/dlq?limit=1')).headers['x-total-count'];
      assert.equal(await dead(), '600');
      const [one] = await deliveriesOf(service, id, '?limit=1&offset=599');
      assert.equal((await service.call('POST', `/hooks/dlq/${one.id}/replay`)).status, 200);
      service.clock.turn(61);
      const soon = await service.handoff.runOnce.prune();
      assert.equal(await dead(), '99');
      const later = await service.handoff.runOnce.prune();
      assert.ok(soon < later, 'another round follows a full one immediately');
      assert.deepEqual(
        (await deliveriesOf(service, id)).map((delivery) => [delivery.id, delivery.status]),
        [[one.id, 'pending']],
      );
    });

    test('a delivery that is replayed after 30 days is removed 30 days after it was delivered [H146]', async (t) => {
      const receiver = await startReceiver(t, 410, 204);
      const service = await shareHooked(t, store);
      const { id } = await register(service, receiver.url);
      const { id: packet } = await createPacket(service);
      await service.handoff.runOnce.deliver();
      service.clock.turn(31 * 86_400);
      await service.handoff.runOnce.prune();
      const [dead] = await deliveriesOf(service, id);
      await service.call('PATCH', `/hooks/${id}`, { body: { active: true } });
      assert.equal((await service.call('POST', `/hooks/dlq/${dead.id}/replay`)).status, 200);
      await service.handoff.runOnce.deliver();
      const statuses = async () => (await deliveriesOf(service, id)).map(({ status }) => status);
      service.clock.turn(30 * 86_400 - 1);
      await service.handoff.runOnce.prune();
      assert.deepEqual(await statuses(), ['delivered']);
      service.clock.turn(2);
      await service.handoff.runOnce.prune();
      assert.deepEqual(await statuses(), []);
      assert.equal((await service.call('GET', `/packets/${packet}`)).status, 200);
    });

    test('a ping is a delivery like any other, of type ping and without a packet [H127, H140]', async (t) => {
      const receiver = await startReceiver(t);
      const service = await shareHooked(t, store);
      const { id } = await register(service, receiver.url, { events: ['packet.failed'] });
      const pinged = await service.call('POST', `/hooks/${id}/ping`);
      assert.equal(pinged.status, 202);
      assert.deepEqual([pinged.body.event_type, pinged.body.packet_id, pinged.body.status], ['ping', null, 'pending']);
      await service.handoff.runOnce.deliver();
      const [{ body, headers }] = receiver.posts as [(typeof receiver.posts)[0]];
      assert.deepEqual(JSON.parse(body), {
        type: 'ping',
        packet_id: null,
        data: { webhook_id: id },
        timestamp: '2026-03-01T09:30:00.000Z',
      });
      assert.equal(headers['x-service-event'], 'ping');
      assert.ok(await verify(secret, body, String(headers['x-service-signature'])));
      assert.deepEqual(await deliveriesOf(service, id, '?status=delivered'), [
        { ...pinged.body, status: 'delivered', attempts: 1, last_status_code: 204, delivered_at: '2026-03-01T09:30:00.000Z' },
      ]);
      assert.equal((await service.call('GET', `/hooks/${id}/deliveries?status=sent`)).status, 400);
    });

    /** Settings of the next tests: one attempt, and a short overlap of secrets. */
    const settings = { SERVICE_WEBHOOK_RETRY_SECONDS: '3600', SERVICE_WEBHOOK_SECRET_OVERLAP_SECONDS: '600' };

    test('of two concurrent replays one is 200 and one 409; a delivery that is not a dead letter is 409 [H134, H127]', async (t) => {
      const receiver = await startReceiver(t, 500, 204);
      const service = await shareHooked(t, store, settings);
      const { id } = await register(service, receiver.url);
      await createPacket(service);
      await service.handoff.runOnce.deliver();
      const dead = await service.call('GET', `/hooks/dlq?webhook_id=${id}`);
      assert.equal(dead.headers['x-total-count'], '1');
      const path = `/hooks/dlq/${dead.body[0].id}/replay`;
      const replays = await Promise.all([service.call('POST', path), service.call('POST', path)]);
      assert.deepEqual(replays.map(({ status }) => status).toSorted(), [200, 409]);
      const { body } = replays.find(({ status }) => status === 200)!;
      assert.deepEqual([body.status, body.attempts, body.delivery_id, body.replayed], ['pending', 0, dead.body[0].id, true]);
      await service.handoff.runOnce.deliver();
      assert.equal((await service.call('POST', path)).status, 409);
      // The same bytes with the same id.
      const [one, two] = receiver.posts;
      assert.equal(receiver.posts.length, 2);
      assert.deepEqual([two!.body, two!.headers['x-service-delivery']], [one!.body, one!.headers['x-service-delivery']]);
    });

    test('retry-all retries due deliveries, or all with force, filtered by webhook and by the time of the event [H127]', async (t) => {
      const receiver = await startReceiver(t, 500);
      const service = await shareHooked(t, store, settings);
      const one = await register(service, receiver.url);
      const two = await register(service, receiver.url);
      for (let minute = 0; minute < 3; minute += 1) {
        await createPacket(service);
        await service.handoff.runOnce.deliver();
        service.clock.turn(60);
      }
      const retry = async (body?: unknown) => {
        const answer = await service.call('POST', '/hooks/dlq/retry-all', body === undefined ? {} : { body });
        assert.equal(answer.status, 200, answer.text);
        return answer.body;
      };
      assert.deepEqual(await retry(), { retried: 0, skipped: 0, remaining: 0 });
      const from = { since: '2026-03-01T09:31:00.000Z', until: '2026-03-01T09:31:00.000Z', force: true };
      assert.deepEqual(await retry({ ...from, webhook_id: one.id }), { retried: 1, skipped: 0, remaining: 0 });
      assert.deepEqual(await retry({ ...from, until: null }), { retried: 3, skipped: 0, remaining: 0 });
      service.clock.turn(3600);
      assert.deepEqual(await retry(), { retried: 2, skipped: 0, remaining: 0 });
      // At most four concurrent attempts at a receiver until it has answered well.
      for (let round = 0; round < 2; round += 1) await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 12);
      const [{ attempts }] = await deliveriesOf(service, two.id);
      assert.equal(attempts, 1);
      for (const [body, field] of [
        [{ since: 'yesterday' }, 'since'],
        [{ webhook_id: 'x' }, 'webhook_id'],
        [{ all: true }, 'all'],
      ] as const) {
        const answer = await service.call('POST', '/hooks/dlq/retry-all', { body });
        assert.deepEqual([answer.status, answer.body.field], [400, field]);
      }
    });

    test('the old secret signs as well for the overlap; a second change drops the oldest [H126]', async (t) => {
      const receiver = await startReceiver(t);
      const service = await shareHooked(t, store, settings);
      const { id } = await register(service, receiver.url);
      const signedBy = async (...secrets: string[]) => {
        await createPacket(service);
        await service.handoff.runOnce.deliver();
        const { headers, body } = receiver.posts.at(-1)!;
        assert.ok(await verify(secrets[0]!, body, String(headers['x-service-signature'])));
        assert.equal(String(headers['webhook-signature']).split(' ').length, secrets.length);
        return secrets;
      };
      const change = async (next: string) =>
        assert.equal((await service.call('PATCH', `/hooks/${id}`, { body: { secret: next } })).status, 200);
      const [second, third] = ['the-second-secret-0123', 'the-third-secret-01234'];
      await signedBy(secret);
      await change(second!);
      await signedBy(second!, secret);
      service.clock.turn(599);
      await change(third!);
      await signedBy(third!, second!);
      service.clock.turn(600);
      await signedBy(third!);
      // The same secret again is no change.
      await change(third!);
      await signedBy(third!);
    });

    test('after a hard delete of its packet an event is not sent any more, and its body is deleted [H146]', async (t) => {
      const receiver = await startReceiver(t, 500);
      const service = await shareHooked(t, store);
      const { id } = await register(service, receiver.url);
      const packet = await createPacket(service);
      await service.handoff.runOnce.deliver();
      assert.equal((await service.call('DELETE', `/packets/${packet.id}?hard=true`)).status, 204);
      service.clock.turn(60);
      await service.handoff.runOnce.deliver();
      assert.equal(receiver.posts.length, 1);
      assert.deepEqual(await deliveriesOf(service, id), []);
      const event = receiver.posts[0]!.headers['webhook-id'];
      const bodies = await looking(service.databaseUrl, ({ query }) => query(`select body from messages where event_id = '${event}'`));
      assert.deepEqual(bodies, []);
    });

    test('a dead receiver with many pending deliveries has four connections and delays no other [H133]', async (t) => {
      const held: (() => void)[] = [];
      const dead = await startReceiver(t, (response) => void held.push(() => response.writeHead(204).end()));
      const healthy = await startReceiver(t);
      const service = await shareHooked(t, store);
      await register(service, dead.url);
      const packets = Array.from({ length: 100 }, () => packetRequest());
      assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      await register(service, healthy.url, { events: ['packet.failed'] });
      const { id } = await createPacket(service);
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { status: 'failed' } })).status, 200);
      const delivering = service.handoff.runOnce.deliver();
      await healthy.received(1);
      await dead.received(4);
      assert.deepEqual([dead.posts.length, dead.connections()], [4, 4]);
      for (const answer of held) answer();
      await delivering;
    });

    test('posts to one receiver reuse connections [H133]', async (t) => {
      const receiver = await startReceiver(t);
      const service = await shareHooked(t, store);
      await register(service, receiver.url);
      for (let round = 0; round < 10; round += 1) {
        await createPacket(service);
        await service.handoff.runOnce.deliver();
      }
      assert.equal(receiver.posts.length, 10);
      assert.ok(receiver.connections() <= 2, `${receiver.connections()} connections`);
    });

    test('the exact bytes of the packet are sent, with numbers, emoji and lone surrogates unchanged [H125]', async (t) => {
      const receiver = await startReceiver(t, 500, 204);
      const service = await shareHooked(t, store);
      await register(service, receiver.url, { secret: 'ein-schlüssel-mit-ümlauten' });
      const raw = JSON.stringify(packetRequest({ context: { summary: 'Emoji \u{1f600}', custom: {} } })).replace(
        '"custom":{}',
        '"custom":{"big":9007199254740993,"one":1.0,"half":"\\ud83d","z":1,"a":2}',
      );
      const made = await service.call('POST', '/packets', { raw });
      assert.equal(made.status, 201);
      await service.handoff.runOnce.deliver();
      service.clock.turn(2);
      await service.handoff.runOnce.deliver();
      const [one, two] = receiver.posts;
      assert.equal(one!.body, two!.body);
      assert.ok(one!.body.includes(made.text));
      assert.ok(await verify('ein-schlüssel-mit-ümlauten', two!.body, String(two!.headers['x-service-signature'])));
    });
  });
}

test('instances on one PostgreSQL share the deliveries: each is posted once [H128]', async (t) => {
  const receiver = await startReceiver(t);
  const first = await startHooked(t, { store: postgresql });
  const second = await startHooked(t, { databaseUrl: first.databaseUrl, clock: first.clock });
  const { id } = await register(first, receiver.url);
  const packets = Array.from({ length: 40 }, () => packetRequest());
  assert.equal((await second.call('POST', '/packets/batch', { body: { packets } })).status, 201);
  const deliverBoth = () => Promise.all([first, second].map(({ handoff }) => handoff.runOnce.deliver()));
  await repeat(deliverBoth, () => receiver.posts.length >= 40);
  assert.equal(new Set(receiver.posts.map(({ headers }) => headers['x-service-delivery'])).size, 40);
  assert.equal(receiver.posts.length, 40);
  assert.ok((await deliveriesOf(second, id, '?limit=200')).every(({ status }) => status === 'delivered'));
});

test('a stop finishes running attempts; deliveries not yet attempted are due at once for the next start [H128]', async (t) => {
  const opened = await onDisk.open();
  t.after(opened.drop);
  const receiver = await startReceiver(t, (response) => void setImmediate(() => response.writeHead(204).end()));
  const first = await startHooked(t, { databaseUrl: opened.url });
  const { id } = await register(first, receiver.url);
  const packets = Array.from({ length: 50 }, () => packetRequest());
  assert.equal((await first.call('POST', '/packets/batch', { body: { packets } })).status, 201);
  const delivering = first.handoff.runOnce.deliver();
  await receiver.received(1);
  await first.handoff.stop();
  await delivering;
  const second = await startHooked(t, { databaseUrl: opened.url, clock: first.clock });
  const waiting = await deliveriesOf(second, id, '?status=pending&limit=200');
  assert.equal(waiting.length, 50 - receiver.posts.length);
  await repeat(second.handoff.runOnce.deliver, () => receiver.posts.length >= 50);
  assert.equal(new Set(receiver.posts.map(({ headers }) => headers['x-service-delivery'])).size, 50);
});

test("the guide's verifier accepts a valid signature, and refuses a changed byte, another case, a truncation and another digest", async () => {
  const guide = readFileSync(new URL('../../../docs/events.md', import.meta.url), 'utf8');
  const [, code] = /^```js\n(import \{ createHmac.*?)^```$/ms.exec(guide)!;
  const { isGenuine } = await import(`data:text/javascript,${encodeURIComponent(code!)}`);
  const body = '{"type":"ping"}';
  const { 'x-service-signature': header } = signatureHeaders({ eventId: 'id', body, secrets: [secret], now: new Date(0) });
  assert.equal(isGenuine(secret, body, header), true);
  for (const wrong of [header!.toUpperCase(), header!.slice(0, -1), header!.replace('sha256=', 'sha1='), '', undefined])
    assert.equal(isGenuine(secret, body, wrong), false);
  assert.equal(isGenuine(secret, body.replace('ping', 'pong'), header), false);
});
