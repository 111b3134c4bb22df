import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, newTenant, packetRequest, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const unknownId = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';

/** The bytes of an answer without what differs between requests: the request id and the id in the request. */
function essence({ status, text, headers }: TestAnswer, id: string): string {
  const { 'x-request-id': requestId, date: _, 'content-length': length, ...others } = headers;
  const lengthWithoutId = Number(length) - `${requestId}`.length;
  const essential = { status, headers: others, lengthWithoutId, text: text.replace(/"request_id":"[^"]*"/, '"request_id":""') };
  return JSON.stringify(essential).replaceAll(id, '<id>');
}

type Call = (id: string) => Promise<TestAnswer>;

/** Every call that names a packet, made by tenant B. */
function packetCalls(service: TestService, key: string): Record<string, { status: number; call: Call }> {
  const refused = (
    status: number,
    method: string,
    path: (id: string) => string,
    body?: (id: string) => unknown,
    headers?: Record<string, string>,
  ) => ({
    status,
    call: (id: string) =>
      service.call(method, path(id), {
        key,
        ...(body === undefined ? {} : { body: body(id) }),
        ...(headers === undefined ? {} : { headers }),
      }),
  });
  return {
    'GET /packets/{id}': refused(404, 'GET', (id) => `/packets/${id}`),
    'GET /packets/{id} with If-None-Match': refused(404, 'GET', (id) => `/packets/${id}`, undefined, { 'if-none-match': '"1"' }),
    'PATCH /packets/{id}': refused(
      404,
      'PATCH',
      (id) => `/packets/${id}`,
      () => ({ status: 'failed' }),
    ),
    'PATCH /packets/{id} with a transition that is not allowed': refused(
      404,
      'PATCH',
      (id) => `/packets/${id}`,
      () => ({ status: 'completed' }),
    ),
    'PATCH /packets/{id} with a stale If-Match': refused(
      404,
      'PATCH',
      (id) => `/packets/${id}`,
      () => ({ status: 'failed' }),
      { 'if-match': '"9"' },
    ),
    'DELETE /packets/{id}': refused(404, 'DELETE', (id) => `/packets/${id}`),
    'DELETE /packets/{id}?hard=true': refused(403, 'DELETE', (id) => `/packets/${id}?hard=true`),
    'POST /packets/{id}/claim': refused(
      404,
      'POST',
      (id) => `/packets/${id}/claim`,
      () => ({ agent_id: 'b' }),
    ),
    'POST /packets/{id}/respond': refused(
      404,
      'POST',
      (id) => `/packets/${id}/respond`,
      () => ({ response: 'Yes', responded_by: 'b' }),
    ),
    'POST /packets/{id}/chain': refused(
      404,
      'POST',
      (id) => `/packets/${id}/chain`,
      () => packetRequest(),
    ),
    'GET /packets/{id}/history': refused(404, 'GET', (id) => `/packets/${id}/history`),
    'POST /packets with parent_packet_id': refused(
      400,
      'POST',
      () => '/packets',
      (id) => packetRequest({ parent_packet_id: id }),
    ),
    'POST /packets/batch with parent_packet_id': refused(
      400,
      'POST',
      () => '/packets/batch',
      (id) => ({ packets: [packetRequest({ parent_packet_id: id })] }),
    ),
    'POST /packets/batch/claim': refused(
      200,
      'POST',
      () => '/packets/batch/claim',
      (id) => ({ packet_ids: [id], agent_id: 'b' }),
    ),
    'POST /packets/batch/complete': refused(
      200,
      'POST',
      () => '/packets/batch/complete',
      (id) => ({ packet_ids: [id] }),
    ),
    'GET /audit?packet_id=': refused(200, 'GET', (id) => `/audit?packet_id=${id}`),
  };
}

for (const store of stores) {
  describe(`Another tenant's packet on ${store.name}`, () => {
    test('is answered byte for byte like one that does not exist, on every route [H215]', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const { id } = await createPacket(service, {}, a.key);
      const before = (await service.call('GET', `/packets/${id}`, { key: a.key })).text;
      for (const [name, { status, call }] of Object.entries(packetCalls(service, b.key))) {
        const foreign = await call(id);
        const unknown = await call(unknownId);
        assert.equal(foreign.status, status, name);
        assert.equal(essence(foreign, id), essence(unknown, unknownId), name);
      }
      assert.equal((await service.call('GET', `/packets/${id}`, { key: a.key })).text, before);
      const history = await service.call('GET', `/packets/${id}/history`, { key: a.key });
      assert.equal(history.body.events.length, 1);
    });

    test('is so in every status', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const statuses: Record<string, (id: string) => Promise<unknown>> = {
        claimed: (id) => service.call('POST', `/packets/${id}/claim`, { key: a.key, body: { agent_id: 'a' } }),
        awaiting_human: (id) =>
          service.call('PATCH', `/packets/${id}`, {
            key: a.key,
            body: { status: 'awaiting_human', hitl: { required: true, reason: 'r', question: 'q?' } },
          }),
        expired: (id) => service.call('DELETE', `/packets/${id}`, { key: a.key }),
      };
      for (const [status, reach] of Object.entries(statuses)) {
        const { id } = await createPacket(service, {}, a.key);
        await reach(id);
        assert.equal((await service.call('GET', `/packets/${id}`, { key: a.key })).body.status, status);
        for (const [name, { call }] of Object.entries(packetCalls(service, b.key))) {
          assert.equal(essence(await call(id), id), essence(await call(unknownId), unknownId), `${name}, ${status}`);
        }
      }
    });

    test("can't be removed by another tenant's admin key either", async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const { id } = await createPacket(service, {}, a.key);
      const foreign = await service.call('DELETE', `/packets/${id}?hard=true`);
      assert.equal(foreign.status, 404);
      assert.equal(essence(foreign, id), essence(await service.call('DELETE', `/packets/${unknownId}?hard=true`), unknownId));
      assert.equal((await service.call('GET', `/packets/${id}`, { key: a.key })).status, 200);
    });

    test('is in no list, search, audit log or total of another tenant', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const secret = await createPacket(
        service,
        { context: { summary: 'Xylophone repairs' }, hitl: { required: true, reason: 'r', question: 'q?' } },
        a.key,
      );
      await service.call('PATCH', `/packets/${secret.id}`, { key: a.key, body: { status: 'awaiting_human' } });
      for (const path of [
        '/packets',
        '/packets?view=full',
        '/packets/awaiting',
        '/packets/search?q=xylophone',
        '/packets?status=awaiting_human',
        '/packets?target_agent=resolver',
        '/packets?tags=billing',
      ]) {
        const { status, body, text } = await service.call('GET', path, { key: b.key });
        assert.equal(status, 200, path);
        assert.equal(body.total, 0, path);
        assert.deepEqual(body.packets, [], path);
        assert.equal(body.next_cursor, null, path);
        assert.ok(!text.includes(secret.id), path);
      }
      const audit = await service.call('GET', '/audit', { key: b.key });
      assert.equal(audit.status, 200);
      assert.ok(audit.body.entries.every(({ packet_id }: { packet_id: string | null }) => packet_id === null));
      assert.equal((await service.call('GET', '/audit?action=created&actor=agent%3Afrontline', { key: b.key })).body.total, 0);
      assert.equal((await service.call('GET', '/packets/search?q=xylophone', { key: a.key })).body.total, 1);
    });

    test('a cursor of one tenant is invalid for another', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      for (const key of [a.key, a.key, b.key, b.key]) await createPacket(service, {}, key);
      const { body } = await service.call('GET', '/packets?limit=1', { key: a.key });
      assert.equal((await service.call('GET', `/packets?limit=1&cursor=${body.next_cursor}`, { key: a.key })).status, 200);
      const foreign = await service.call('GET', `/packets?limit=1&cursor=${body.next_cursor}`, { key: b.key });
      assert.equal(foreign.status, 400);
      assert.equal(foreign.body.field, 'cursor');
      assert.equal(essence(foreign, ''), essence(await service.call('GET', '/packets?limit=1&cursor=garbage', { key: b.key }), ''));
    });

    test('tenants do not share idempotency keys', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const create = (key: string) =>
        service.call('POST', '/packets', { key, body: packetRequest(), headers: { 'idempotency-key': 'same' } });
      const [first, second] = await Promise.all([create(a.key), create(b.key)]);
      assert.deepEqual([first.status, second.status], [201, 201]);
      assert.notEqual(first.body.id, second.body.id);
      assert.equal((await create(b.key)).body.id, second.body.id);
    });

    test('in a batch with an own and a foreign packet, the own one is processed and the foreign one unknown', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const foreign = await createPacket(service, {}, a.key);
      const own = await createPacket(service, {}, b.key);
      const { status, body } = await service.call('POST', '/packets/batch/claim', {
        key: b.key,
        body: { packet_ids: [foreign.id, own.id], agent_id: 'b' },
      });
      assert.equal(status, 200);
      assert.deepEqual(
        body.claimed.map(({ id }: { id: string }) => id),
        [own.id],
      );
      assert.deepEqual(
        body.errors.map(({ packet_id, code }: Record<string, string>) => [packet_id, code]),
        [[foreign.id, 'NOT_FOUND']],
      );
      assert.equal((await service.call('GET', `/packets/${foreign.id}`, { key: a.key })).body.status, 'created');
    });

    test('does not change field names in other packets, whatever field names its own objects have', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      // A parser that caches shapes carelessly would confuse the two names, which are at the same place of similar objects.
      await createPacket(service, { context: { summary: 's', custom: { x: 1, '\\': 2 } } }, a.key);
      const created = await service.call('POST', '/packets', {
        key: b.key,
        body: packetRequest({ context: { summary: 's', custom: { x: 1, '"': 2 } } }),
      });
      assert.equal(created.status, 201);
      const [, id] = /"id":"([0-9a-f-]{36})"/.exec(created.text)!;
      await createPacket(service, { context: { summary: 's', custom: { x: 1, '\\': 2 } } }, a.key);
      const patched = await service.call('PATCH', `/packets/${id}`, { key: b.key, body: { status: 'failed' } });
      assert.equal(patched.status, 200);
      const read = await service.call('GET', `/packets/${id}`, { key: b.key });
      for (const { text } of [created, patched, read]) assert.ok(text.includes(String.raw`"custom":{"x":1,"\"":2}`), text);
    });

    test('tenants that work concurrently stay isolated', async () => {
      const service = await shareService(store);
      const tenants = await Promise.all([newTenant(service), newTenant(service)]);
      await Promise.all(
        Array.from({ length: 40 }, (_, index) =>
          createPacket(service, { context: { summary: `Shared word, packet ${index}` } }, tenants[index % 2]!.key),
        ),
      );
      const found = await Promise.all(tenants.map(({ key }) => service.call('GET', '/packets/search?q=shared&limit=200', { key })));
      const ids = found.map(({ body }) => body.packets.map(({ id }: { id: string }) => id));
      assert.deepEqual(
        ids.map((list) => list.length),
        [20, 20],
      );
      assert.equal(new Set(ids.flat()).size, 40);
    });
  });

  describe(`Another tenant's key on ${store.name}`, () => {
    test('is answered byte for byte like one that does not exist [H215]', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const revoke = (id: string) => service.call('DELETE', `/keys/${id}`, { key: b.key });
      const foreign = await revoke(a.keyId);
      assert.equal(foreign.status, 404);
      assert.equal(essence(foreign, a.keyId), essence(await revoke(unknownId), unknownId));
      assert.equal((await service.call('GET', '/keys', { key: a.key })).status, 200);
    });

    test('is in no list of another tenant', async () => {
      const service = await shareService(store);
      const a = await newTenant(service);
      const b = await newTenant(service);
      const { status, body } = await service.call('GET', '/keys', { key: b.key });
      assert.equal(status, 200);
      assert.deepEqual(
        body.map(({ id }: { id: string }) => id),
        [b.keyId],
      );
      assert.notEqual(a.keyId, b.keyId);
    });
  });
}
