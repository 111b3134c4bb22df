import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, packetIn, question } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** The types of events in a tenant's audit log, each once. */
async function kinds(service: TestService): Promise<string[]> {
  const { status, body } = await service.call('GET', '/audit?limit=200');
  assert.equal(status, 200);
  const ofPackets = body.entries.filter(({ resource }: { resource: string }) => resource === 'packet');
  return [...new Set<string>(ofPackets.map(({ action }: { action: string }) => action))].sort();
}

const names = (value: object) => Object.keys(value);

/** The names that the object does not have. */
const missing = (value: object, wanted: readonly string[]) => wanted.filter((name) => !(name in value));

for (const store of stores) {
  describe(`What the specification leaves open, on ${store.name}`, () => {
    test('the trail of packets has exactly fourteen types of events', async () => {
      const service = await shareService(store);
      const step = async (method: string, path: string, body?: object) => {
        const answer = await service.call(method, path, body === undefined ? {} : { body });
        assert.ok(answer.status < 300, `${method} ${path} ${answer.text}`);
      };
      const { id } = await packetIn(service, 'in_progress');
      await step('PATCH', `/packets/${id}`, { status: 'awaiting_human' });
      await step('POST', `/packets/${id}/respond`, { response: 'Yes', responded_by: 'dana' });
      await step('PATCH', `/packets/${id}`, { context: { summary: 'Changed.' } });
      await step('POST', '/packets/batch/complete', { packet_ids: [id] });
      await step('POST', `/packets/${id}/chain`, packetRequest());
      await step('DELETE', `/packets/${id}`);
      await packetIn(service, 'awaiting_human', { hitl: { ...question, timeout_seconds: 1, on_timeout: 'fail' } });
      service.clock.turn(1);
      await service.handoff.runOnce.sweep();
      const { id: leased } = await createPacket(service);
      await step('POST', `/packets/${leased}/claim`, claimant);
      await step('POST', `/packets/${leased}/release`, { agent_id: claimant.agent_id });
      await step('POST', `/packets/${leased}/claim`, { ...claimant, lease_seconds: 5 });
      service.clock.turn(6);
      await service.handoff.runOnce.sweep();
      const { id: removed } = await createPacket(service);
      await step('DELETE', `/packets/${removed}?hard=true`);
      assert.deepEqual(
        await kinds(service),
        [
          'created',
          'claimed',
          'in_progress',
          'awaiting_human',
          'hitl_responded',
          'hitl_timed_out',
          'completed',
          'failed',
          'expired',
          'updated',
          'chained',
          'released',
          'lease_expired',
          'deleted',
        ].sort(),
      );
    });

    test('the sweeper runs every second, and at once while more packets are due', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_UNCLAIMED_TTL_SECONDS: '1', SERVICE_BATCH_MAX: '300' } });
      assert.equal(await service.handoff.runOnce.sweep(), 1000);
      const packets = Array.from({ length: 300 }, () => packetRequest());
      assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      service.clock.turn(1);
      assert.equal(await service.handoff.runOnce.sweep(), 0);
      assert.equal(await service.handoff.runOnce.sweep(), 1000);
      assert.equal((await service.call('GET', '/packets?status=expired')).body.total, 300);
    });

    test('a request body may have 64 KiB, 256 KiB or 1 MiB by tier, but not a byte more', async () => {
      const service = await shareService(store);
      const overhead = Buffer.byteLength(JSON.stringify(packetRequest({ context: { summary: '' } })));
      for (const [tier, limit] of [
        ['free', 65_536],
        ['pro', 262_144],
        ['business', 1_048_576],
      ] as const) {
        const { key } = await newTenant(service, { tier });
        const sized = (bytes: number) => ({ body: packetRequest({ context: { summary: 'x'.repeat(bytes - overhead) } }), key });
        assert.equal((await service.call('POST', '/packets', sized(limit))).status, 201, tier);
        const over = await service.call('POST', '/packets', sized(limit + 1));
        assert.equal(over.status, 413, tier);
        assert.equal(over.body.code, 'PAYLOAD_TOO_LARGE');
      }
    });

    test("an admin key works in its own tenant like any other key, and sees no other tenant's packets", async () => {
      const service = await shareService(store);
      const { id: tenant_id, key: plain } = await newTenant(service);
      const made = await service.call('POST', '/keys', { body: { name: 'admin', admin: true, tenant_id } });
      assert.equal(made.status, 201);
      const { key } = made.body;
      const { id: ofDefault } = await createPacket(service);
      const { id } = await createPacket(service, {}, key);
      assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: claimant, key: plain })).status, 200);
      const listed = await service.call('GET', '/packets', { key });
      assert.equal(listed.status, 200);
      assert.deepEqual(
        listed.body.packets.map((packet: { id: string; status: string }) => [packet.id, packet.status]),
        [[id, 'claimed']],
      );
      assert.equal((await service.call('GET', `/packets/${ofDefault}`, { key })).status, 404);
      assert.equal((await service.call('GET', '/tenants', { key })).status, 200);
    });

    test('v1 keeps its operations, their parameters and the fields of every answer', async () => {
      const service = await shareService(store);
      const { paths } = (await service.call('GET', '/openapi.json')).body;
      const operations: Record<string, string[]> = {
        'post /packets': [],
        'get /packets': [
          'status',
          'source_agent',
          'target_agent',
          'tags',
          'priority',
          'hitl_required',
          'created_after',
          'created_before',
          'limit',
          'offset',
          'cursor',
        ],
        'get /packets/{id}': [],
        'patch /packets/{id}': [],
        'delete /packets/{id}': [],
        'post /packets/{id}/claim': [],
        'post /packets/{id}/respond': [],
        'post /packets/{id}/chain': [],
        'get /packets/awaiting': ['limit', 'offset'],
        'get /packets/{id}/history': [],
        'post /packets/batch': [],
        'post /packets/batch/claim': [],
        'post /packets/batch/complete': [],
        'get /audit': ['actor', 'action', 'packet_id', 'created_after', 'created_before', 'limit', 'offset'],
        'post /keys': [],
        'get /keys': [],
        'delete /keys/{id}': [],
        'post /tenants': [],
        'get /tenants': [],
        'get /tenants/{id}': [],
        'patch /tenants/{id}': [],
        'delete /tenants/{id}': [],
        'get /tenants/{id}/keys': [],
      };
      for (const [operation, parameters] of Object.entries(operations)) {
        const [method, path] = operation.split(' ') as [string, string];
        const described = paths[`/api/v1${path}`]?.[method];
        assert.ok(described, operation);
        const given = described.parameters.map(({ name }: { name: string }) => name);
        assert.deepEqual(
          parameters.filter((name) => !given.includes(name)),
          [],
          operation,
        );
      }
      const packet = await packetIn(service, 'awaiting_human');
      const get = async (path: string) => (await service.call('GET', path)).body;
      const list = ['packets', 'total', 'limit', 'offset', 'next_cursor'];
      const { packets } = await get('/packets');
      const state = [
        'id',
        'version',
        'parent_packet_id',
        'metadata',
        'context',
        'hitl',
        'status',
        'created_at',
        'updated_at',
        'claimed_at',
        '_links',
      ];
      const key = ['id', 'name', 'tier', 'created_at'];
      const tenant = ['id', 'name', 'tier', 'handoffs_per_day', 'max_api_keys', 'created_at', 'updated_at', 'deleted_at'];
      const history = await get(`/packets/${packet.id}/history`);
      const audit = await get('/audit');
      const refused = await service.call('POST', '/packets', { body: {} });
      const shapes: [value: object, fields: string[]][] = [
        [packet, [...state, 'decisions', 'actions', 'dependencies']],
        [packet.metadata, ['source_agent', 'target_agent', 'priority', 'tags', 'created_at']],
        [packet.context, ['summary', 'conversation_state', 'artifacts', 'custom']],
        [packet.actions, ['pending', 'completed', 'failed']],
        [packet.hitl, ['required', 'reason', 'question', 'response', 'responded_by', 'notes']],
        [packet._links, ['self', 'claim', 'history']],
        [await get('/packets'), list],
        [packets[0], state],
        [await get('/packets/awaiting'), list],
        [history, ['packet_id', 'events']],
        [history.events[0], ['timestamp', 'event_type', 'actor', 'details']],
        [audit, ['entries', 'total', 'limit', 'offset']],
        [audit.entries[0], ['id', 'packet_id', 'actor', 'action', 'resource', 'details', 'timestamp']],
        [(await get('/keys'))[0], key],
        [(await service.call('POST', '/keys', { body: { name: 'one', tier: 'pro' } })).body, [...key, 'key']],
        [(await get('/tenants'))[0], tenant],
        [refused.body, ['detail', 'code', 'field', 'status_code']],
      ];
      for (const [value, fields] of shapes) assert.deepEqual(missing(value, fields), [], names(value).join(' '));
    });
  });
}
