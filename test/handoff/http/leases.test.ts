import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { happenings } from '../../support/life.ts';
import { callTool } from '../../support/mcp.ts';
import { createPacket, newTenant, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const claim = (service: TestService, id: string, more: object = {}) =>
  service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver', ...more } });

/** A leased packet and its token. */
async function leased(service: TestService, seconds = 60): Promise<{ id: string; token: string }> {
  const { id } = await createPacket(service);
  const { body } = await claim(service, id, { lease_seconds: seconds });
  return { id, token: body.lease.token };
}

const withToken = (token: string) => ({ 'x-lease-token': token });
const none = {};

for (const store of stores) {
  test(`A renewal is seen at once by GET with If-None-Match and by MCP, and refuses no If-Match, on ${store.name} [H444]`, async () => {
    const service = await shareService(store);
    const { id } = await createPacket(service);
    const path = `/packets/${id}`;
    const claim = { agent_id: 'resolver', lease_seconds: 60 };
    const { token } = (await service.call('POST', `${path}/claim`, { body: claim })).body.lease;
    const shown = async () => (await callTool(service, 'get_packet', { packet_id: id })).structuredContent.lease.expires_at;
    const before = await service.call('GET', path);
    assert.equal(await shown(), '2026-03-01T09:31:00.000Z');
    const headers = { 'If-None-Match': before.headers.etag as string };
    assert.equal((await service.call('GET', path, { headers })).status, 304);
    service.clock.turn(30);
    assert.equal((await service.call('POST', `${path}/lease`, { headers: { 'X-Lease-Token': token } })).status, 200);
    const after = await service.call('GET', path, { headers });
    assert.equal(after.status, 200);
    assert.equal(after.body.lease.expires_at, '2026-03-01T09:31:30.000Z');
    assert.equal(await shown(), '2026-03-01T09:31:30.000Z');
    const change = { 'X-Lease-Token': token, 'X-Agent-Id': 'resolver', 'If-Match': before.headers.etag as string };
    const changed = await service.call('PATCH', path, { body: { status: 'in_progress' }, headers: change });
    assert.equal(changed.status, 200, changed.text);
    assert.equal((await service.call('PATCH', path, { body: { status: 'completed' }, headers: change })).status, 412);
  });
  describe(`Leases, on ${store.name}`, () => {
    test('the token is only in the answer to the claim [H102]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const claimed = await claim(service, id, { lease_seconds: 60 });
      assert.equal(claimed.status, 200);
      assert.match(claimed.body.lease.token, /^lease_[\w-]{43}$/);
      const shown = { generation: 1, expires_at: '2026-03-01T09:31:00.000Z' };
      assert.deepEqual({ ...claimed.body.lease, token: undefined }, { ...shown, token: undefined });
      for (const path of [`/packets/${id}`, '/packets', '/packets?view=full', `/packets/${id}/history`, '/audit'])
        assert.ok(!(await service.call('GET', path)).text.includes(claimed.body.lease.token), path);
      assert.deepEqual((await service.call('GET', `/packets/${id}`)).body.lease, shown);
    });

    test("a change without the token, with another packet's token or after the lease is 409 LEASE_LOST and changes nothing [H102]", async () => {
      const service = await shareService(store);
      const { id, token } = await leased(service);
      const other = await leased(service);
      const changes = [
        (headers: Record<string, string>) => service.call('PATCH', `/packets/${id}`, { body: { status: 'in_progress' }, headers }),
        (headers: Record<string, string>) => service.call('POST', `/packets/${id}/release`, { headers }),
        (headers: Record<string, string>) => service.call('POST', `/packets/${id}/lease`, { headers }),
        (headers: Record<string, string>) => service.call('DELETE', `/packets/${id}/lease`, { headers }),
      ];
      for (const change of changes) {
        for (const headers of [none, withToken(other.token), withToken('nonsense')]) {
          const refused = await change(headers);
          assert.equal(refused.status, 409);
          assert.equal(refused.body.code, 'LEASE_LOST');
          if (headers === none) assert.match(refused.body.detail, /send the lease token from its claim/);
        }
      }
      service.clock.turn(60);
      for (const change of changes) assert.equal((await change(withToken(token))).body.code, 'LEASE_LOST');
      // The sweeper may have ended the lease: a file of the same process may have started the jobs of the shared service.
      const happened = (await happenings(service, id)).filter((type) => type !== 'lease_expired');
      assert.deepEqual(happened, ['created', 'claimed']);
    });

    test('a DELETE needs the token unless the key is an admin key [H102]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service);
      const { id } = await createPacket(service, {}, key);
      const claimed = await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'r', lease_seconds: 60 }, key });
      assert.equal((await service.call('DELETE', `/packets/${id}`, { key })).body.code, 'LEASE_LOST');
      assert.equal((await service.call('DELETE', `/packets/${id}`, { key, headers: withToken(claimed.body.lease.token) })).status, 204);
      assert.equal((await service.call('GET', `/packets/${id}`, { key })).body.status, 'expired');
    });

    test('a DELETE by an admin key ends the lease of another agent, whose next change with its token is refused [H105]', async () => {
      const service = await shareService(store);
      const { id, token } = await leased(service);
      assert.equal((await service.call('DELETE', `/packets/${id}`, { headers: { 'X-Agent-Id': 'operator' } })).status, 204);
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.deepEqual([body.status, body.lease, body.revision], ['expired', null, 3]);
      const headers = withToken(token);
      for (const [method, path, options] of [
        ['PATCH', '', { body: { status: 'completed' }, headers }],
        ['POST', '/lease', { headers }],
        ['POST', '/release', { headers }],
        ['DELETE', '/lease', { headers }],
        ['DELETE', '', { headers }],
      ] as const) {
        const refused = await service.call(method, `/packets/${id}${path}`, options);
        assert.deepEqual([refused.status, refused.body.code], [409, 'LEASE_LOST'], `${method} ${path}`);
      }
      const other = await createPacket(service);
      await service.call('DELETE', `/packets/${other.id}`);
      const [without, usual] = await Promise.all(
        [id, other.id].map((each) => service.call('PATCH', `/packets/${each}`, { body: { status: 'completed' } })),
      );
      assert.deepEqual([without!.status, without!.body.detail], [usual!.status, usual!.body.detail]);
      assert.equal(without!.status, 400);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.revision, 3);
    });

    test('a batch completes leased packets with the tokens in lease_tokens [H102]', async () => {
      const service = await shareService(store);
      const [one, two] = [await leased(service), await leased(service)];
      const { body } = await service.call('POST', '/packets/batch/complete', {
        body: { packet_ids: [one.id, two.id], lease_tokens: { [one.id]: one.token } },
      });
      assert.deepEqual(
        body.completed.map(({ id, lease }: { id: string; lease: unknown }) => ({ id, lease })),
        [{ id: one.id, lease: null }],
      );
      assert.deepEqual(
        body.errors.map(({ packet_id, code }: { packet_id: string; code: string }) => ({ packet_id, code })),
        [{ packet_id: two.id, code: 'LEASE_LOST' }],
      );
    });

    test('a batch claim gives each packet its own token [H102]', async () => {
      const service = await shareService(store);
      const ids = [(await createPacket(service)).id, (await createPacket(service)).id];
      const { body } = await service.call('POST', '/packets/batch/claim', { body: { packet_ids: ids, agent_id: 'r', lease_seconds: 5 } });
      const tokens = body.claimed.map(({ lease }: { lease: { token: string } }) => lease.token);
      assert.equal(new Set(tokens).size, 2);
    });

    test('a renewal restarts the lease from now without a new revision or history entry [H109]', async () => {
      const service = await shareService(store);
      const { id, token } = await leased(service);
      service.clock.turn(30);
      const renewed = await service.call('POST', `/packets/${id}/lease`, { headers: withToken(token) });
      assert.equal(renewed.status, 200);
      assert.deepEqual(renewed.body, { lease: { generation: 1, expires_at: '2026-03-01T09:31:30.000Z' } });
      const longer = await service.call('POST', `/packets/${id}/lease`, { body: { lease_seconds: 600 }, headers: withToken(token) });
      assert.equal(longer.body.lease.expires_at, '2026-03-01T09:40:30.000Z');
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.equal(body.revision, 2);
      assert.deepEqual(body.lease, longer.body.lease);
      assert.equal((await service.call('GET', `/packets/${id}/history`)).body.events.length, 2);
    });

    test('ending a lease returns the packet to created [H109]', async () => {
      const service = await shareService(store);
      const { id, token } = await leased(service);
      assert.equal((await service.call('DELETE', `/packets/${id}/lease`, { headers: withToken(token) })).status, 204);
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.deepEqual([body.status, body.claimed_by, body.claimed_at, body.lease], ['created', null, null, null]);
      const { events } = (await service.call('GET', `/packets/${id}/history`)).body;
      assert.equal(events.at(-1).event_type, 'released');
      const next = await claim(service, id, { lease_seconds: 60 });
      assert.equal(next.body.lease.generation, 2);
    });

    test('an expired lease returns the packet to created, by system:sweeper, and invalidates its token [H110]', async () => {
      const service = await shareService(store);
      const { id, token } = await leased(service);
      service.clock.turn(60);
      await service.handoff.runOnce.sweep();
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.deepEqual([body.status, body.lease], ['created', null]);
      const last = (await service.call('GET', `/packets/${id}/history`)).body.events.at(-1);
      assert.deepEqual([last.event_type, last.actor], ['lease_expired', 'system:sweeper']);
      assert.equal((await claim(service, id, { lease_seconds: 60 })).status, 200);
      const late = await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' }, headers: withToken(token) });
      assert.equal(late.body.code, 'LEASE_LOST');
    });
  });

  describe(`Release without a lease, on ${store.name}`, () => {
    test('the holder can release the packet; others are refused [H109]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service);
      const { id } = await createPacket(service, {}, key);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' }, key });
      const release = (headers: Record<string, string>) => service.call('POST', `/packets/${id}/release`, { key, headers });
      assert.equal((await release({})).status, 403);
      assert.equal((await release({ 'x-agent-id': 'somebody' })).body.code, 'FORBIDDEN');
      const released = await release({ 'x-agent-id': 'resolver' });
      assert.equal(released.status, 200);
      assert.deepEqual([released.body.status, released.body.claimed_by, released.body.revision], ['created', null, 3]);
      assert.equal((await release({ 'x-agent-id': 'resolver' })).body.code, 'CONFLICT');
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('Leases', () => {
  const store = stores[0]!;

  test('lease_seconds is from 1 to 86400', async () => {
    const service = await shareService(store);
    const { id } = await createPacket(service);
    for (const lease_seconds of [0, 86_401, 1.5, '60']) {
      const refused = await claim(service, id, { lease_seconds });
      assert.equal(refused.status, 400);
      assert.equal(refused.body.field, 'lease_seconds');
    }
  });
});
