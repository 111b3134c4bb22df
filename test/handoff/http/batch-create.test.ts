import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPacket, newTenant, packetRequest, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** A create request with this summary. */
const named = (summary: string, changes: Record<string, unknown> = {}) => packetRequest({ context: { summary }, ...changes });

const batch = (service: TestService, packets: unknown[], options: { key?: string; headers?: Record<string, string> } = {}) =>
  service.call('POST', '/packets/batch', { body: { packets }, ...options });

const total = async (service: TestService, key?: string): Promise<number> =>
  (await service.call('GET', '/packets?limit=1', key === undefined ? {} : { key })).body.total;

/** Invalid create requests, and the entry of each in `errors`. */
const faulty: [item: unknown, code: string, field: string | null][] = [
  [{}, 'VALIDATION_ERROR', 'metadata'],
  [null, 'VALIDATION_ERROR', null],
  ['a packet', 'VALIDATION_ERROR', null],
  [[], 'VALIDATION_ERROR', null],
  [named(''), 'VALIDATION_ERROR', 'context.summary'],
  [named('x', { metadata: { source_agent: { id: 'a', name: 'a', framework: 'f' } } }), 'VALIDATION_ERROR', 'metadata.target_agent'],
  [named('x', { status: 'completed' }), 'VALIDATION_ERROR', 'status'],
  [named('x', { decisions: [{ id: 'd', rationale: '' }] }), 'VALIDATION_ERROR', 'decisions.0.decision'],
  [named('x', { parent_packet_id: 'junk' }), 'VALIDATION_ERROR', 'parent_packet_id'],
  [named('x', { parent_packet_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' }), 'VALIDATION_ERROR', 'parent_packet_id'],
  [named('x', { hitl: { required: true, reason: 'r' } }), 'VALIDATION_ERROR', 'hitl.question'],
];

/** Batches of at most three packets, which have at most 2,000 bytes in the tier free. */
const small = { SERVICE_BATCH_MAX: '3', SERVICE_PACKET_BYTES_FREE: '2000' };

for (const store of stores) {
  describe(`POST /packets/batch on ${store.name}`, () => {
    test('201: every packet is created as by POST /packets, in the order sent [H58]', async () => {
      const service = await shareService(store);
      const answer = await batch(service, [named('one'), named('two', { hitl: null }), named('three')]);
      assert.equal(answer.status, 201);
      assert.deepEqual(Object.keys(answer.body), ['created', 'errors']);
      assert.deepEqual(answer.body.errors, []);
      const { created } = answer.body;
      assert.deepEqual(
        created.map(({ context }: { context: { summary: string } }) => context.summary),
        ['one', 'two', 'three'],
      );
      const alone = await createPacket(service, { context: { summary: 'one' } });
      const differing = (packet: Record<string, unknown>) => ({ ...packet, id: '', _links: {} });
      assert.deepEqual(differing(created[0]), differing(alone));
      for (const packet of created) {
        assert.equal(packet.status, 'created');
        assert.equal(packet.revision, 1);
        assert.deepEqual((await service.call('GET', `/packets/${packet.id}`)).body, packet);
      }
    });

    test('each packet is recorded in its history and in the audit log', async () => {
      const service = await shareService(store);
      const before = (await service.call('GET', '/audit?action=created')).body.total;
      const { body } = await batch(service, [named('one'), named('two')], { headers: { 'X-Agent-Id': 'importer' } });
      for (const { id } of body.created) {
        const history = await service.call('GET', `/packets/${id}/history`);
        assert.equal(history.status, 200);
        const [{ key_id, ...event }] = history.body.events;
        assert.equal(typeof key_id, 'string');
        assert.deepEqual(event, { timestamp: '2026-03-01T09:30:00.000Z', event_type: 'created', actor: 'agent:importer', details: {} });
      }
      assert.equal((await service.call('GET', '/audit?action=created')).body.total, before + 2);
    });

    test('100 packets produce 100 events, in the order sent', async () => {
      const service = await shareService(store);
      const before = (await service.call('GET', '/audit')).body;
      const answer = await batch(
        service,
        Array.from({ length: 100 }, (_, index) => named(`${index}`)),
      );
      assert.equal(answer.status, 201);
      const ids = answer.body.created.map(({ id }: { id: string }) => id);
      assert.equal(new Set(ids).size, 100);
      assert.deepEqual(ids, [...ids].sort());
      const { body } = await service.call('GET', '/audit?limit=200');
      assert.equal(body.total, before.total + 100);
      assert.deepEqual(body.entries.slice(100), before.entries);
      const events = body.entries.slice(0, 100).reverse();
      assert.deepEqual(
        events.map(({ packet_id }: { packet_id: string }) => packet_id),
        ids,
      );
      const listed = await service.call('GET', '/packets?limit=200');
      assert.deepEqual(listed.body.packets.map(({ id }: { id: string }) => id).reverse(), ids);
    });

    test('each item is created or refused independently; errors have its index and the reason [H58]', async () => {
      const service = await shareService(store);
      const items = faulty.flatMap(([item], index) => [named(`good ${index}`), item]);
      const answer = await batch(service, items);
      assert.equal(answer.status, 201);
      assert.equal(answer.body.created.length, faulty.length);
      assert.equal(answer.body.errors.length, faulty.length);
      for (const [index, [, code, field]] of faulty.entries()) {
        const error = answer.body.errors[index];
        assert.deepEqual([error.index, error.code, error.field], [index * 2 + 1, code, field], JSON.stringify(error));
        assert.equal(typeof error.error, 'string');
        assert.notEqual(error.error, '');
      }
      assert.equal(await total(service), faulty.length);
    });

    test('400 if every item failed: the error body with an empty created and the reason of each item [H58]', async () => {
      const service = await shareService(store);
      const before = (await service.call('GET', '/audit')).body;
      const answer = await batch(
        service,
        faulty.map(([item]) => item),
      );
      assert.equal(answer.status, 400);
      const { detail, code, field, status_code, request_id, created, errors } = answer.body;
      assert.equal(typeof detail, 'string');
      assert.equal(typeof request_id, 'string');
      assert.deepEqual(
        { code, field, status_code, created },
        { code: 'VALIDATION_ERROR', field: 'packets', status_code: 400, created: [] },
      );
      assert.deepEqual(
        errors.map((error: { index: number; code: string; field: string | null }) => [error.index, error.code, error.field]),
        faulty.map(([, itemCode, itemField], index) => [index, itemCode, itemField]),
      );
      assert.equal(await total(service), 0);
      assert.deepEqual((await service.call('GET', '/audit')).body, before);
    });

    test("an item over the tier's size is refused with PAYLOAD_TOO_LARGE; one at the limit is created [H67]", async () => {
      const service = await shareService(store, small);
      const { key } = await newTenant(service, { tier: 'free' });
      const empty = JSON.stringify(named('')).length;
      const answer = await batch(
        service,
        [named('x'.repeat(2000 - empty)), named('x'.repeat(2001 - empty)), named('é'.repeat(2000 - empty))],
        { key },
      );
      assert.equal(answer.status, 201);
      assert.equal(answer.body.created.length, 1);
      assert.deepEqual(
        answer.body.errors.map(({ index, code, field }: { index: number; code: string; field: string | null }) => [index, code, field]),
        [
          [1, 'PAYLOAD_TOO_LARGE', null],
          [2, 'PAYLOAD_TOO_LARGE', null],
        ],
      );
    });

    test('413 for a body over 100 times the size of an item; a body at the limit is accepted [H67]', async () => {
      const service = await shareService(store, small);
      const { key } = await newTenant(service, { tier: 'free' });
      const body = JSON.stringify({ packets: [named('x')] });
      const atLimit = await service.call('POST', '/packets/batch', { key, raw: body + ' '.repeat(200_000 - body.length) });
      assert.equal(atLimit.status, 201);
      const over = await service.call('POST', '/packets/batch', { key, raw: body + ' '.repeat(200_001 - body.length) });
      assert.equal(over.status, 413);
      assert.equal(over.body.code, 'PAYLOAD_TOO_LARGE');
      assert.equal(await total(service, key), 1);
    });

    test('413 for a body over 16 MiB, whatever the tier [H67]', async () => {
      const service = await shareService(store);
      const body = JSON.stringify({ packets: [named('x')] });
      const atLimit = await service.call('POST', '/packets/batch', { raw: body + ' '.repeat(16 * 1024 * 1024 - body.length) });
      assert.equal(atLimit.status, 201);
      const over = await service.call('POST', '/packets/batch', { raw: body + ' '.repeat(16 * 1024 * 1024 + 1 - body.length) });
      assert.equal(over.status, 413);
      assert.equal(await total(service), 1);
    });

    test('the daily quota applies item by item; a refused item does not count [H58]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free', handoffs_per_day: 3 });
      const answer = await batch(service, [named('1'), {}, named('2'), named('3'), named('4'), named('5')], { key });
      assert.equal(answer.status, 201);
      assert.deepEqual(
        answer.body.created.map(({ context }: { context: { summary: string } }) => context.summary),
        ['1', '2', '3'],
      );
      assert.deepEqual(
        answer.body.errors.map(({ index, code }: { index: number; code: string }) => [index, code]),
        [
          [1, 'VALIDATION_ERROR'],
          [4, 'RATE_LIMITED'],
          [5, 'RATE_LIMITED'],
        ],
      );
      assert.equal(await total(service, key), 3);
    });

    test('429 with Retry-After if only the daily quota refused every item; after that wait the batch succeeds [H58]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free', handoffs_per_day: 1 });
      assert.equal((await batch(service, [named('1')], { key })).status, 201);
      const answer = await batch(service, [named('2'), named('3')], { key });
      assert.equal(answer.status, 429);
      const { code, status_code, field, created, errors } = answer.body;
      assert.deepEqual({ code, status_code, field, created }, { code: 'RATE_LIMITED', status_code: 429, field: null, created: [] });
      assert.deepEqual(
        errors.map(({ index, code: itemCode }: { index: number; code: string }) => [index, itemCode]),
        [
          [0, 'RATE_LIMITED'],
          [1, 'RATE_LIMITED'],
        ],
      );
      // 09:30 to midnight UTC.
      assert.equal(answer.headers['retry-after'], String(14.5 * 3600));
      service.clock.turn(14.5 * 3600 - 1);
      assert.equal((await batch(service, [named('2')], { key })).headers['retry-after'], '1');
      service.clock.turn(1);
      assert.equal((await batch(service, [named('2')], { key })).status, 201);
    });

    test('400, not 429, if an item failed for another reason than the daily quota [H58]', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free', handoffs_per_day: 0 });
      const answer = await batch(service, [named('1'), {}], { key });
      assert.equal(answer.status, 400);
      assert.equal(answer.headers['retry-after'], undefined);
      assert.deepEqual(
        answer.body.errors.map(({ code }: { code: string }) => code),
        ['RATE_LIMITED', 'VALIDATION_ERROR'],
      );
    });

    test("an item may name a parent, whose history records it; another tenant's packet is unknown [H37]", async () => {
      const service = await shareService(store);
      const other = await newTenant(service);
      const parent = await createPacket(service);
      const foreign = await createPacket(service, {}, other.key);
      const answer = await batch(service, [
        named('child', { parent_packet_id: parent.id }),
        named('upper case', { parent_packet_id: parent.id.toUpperCase() }),
        named('foreign', { parent_packet_id: foreign.id }),
        named('unknown', { parent_packet_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b' }),
      ]);
      assert.equal(answer.status, 201);
      const { created, errors } = answer.body;
      assert.deepEqual(
        created.map(({ parent_packet_id }: { parent_packet_id: string }) => parent_packet_id),
        [parent.id, parent.id],
      );
      const [one, two] = errors.map(({ index: _, ...rest }: { index: number }) => rest);
      assert.deepEqual(one, two);
      assert.equal(one.field, 'parent_packet_id');
      const history = await service.call('GET', `/packets/${parent.id}/history`);
      assert.deepEqual(
        history.body.events.map(({ event_type }: { event_type: string }) => event_type),
        ['created', 'chained', 'chained'],
      );
      assert.deepEqual((await service.call('GET', `/packets/${parent.id}`)).body, parent);
      assert.deepEqual((await service.call('GET', `/packets/${foreign.id}/history`, { key: other.key })).body.events.length, 1);
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('POST /packets/batch', () => {
  const store = stores[0]!;

  test('400 on packets: none, more than SERVICE_BATCH_MAX, not an array, an unknown field; nothing is created [H58]', async () => {
    const service = await shareService(store, small);
    const one = named('x');
    for (const [body, field] of [
      [{ packets: [] }, 'packets'],
      [{ packets: [one, one, one, one] }, 'packets'],
      [{ packets: one }, 'packets'],
      [{ packets: null }, 'packets'],
      [{}, 'packets'],
      [{ packets: [one], atomic: true }, 'atomic'],
      [[one], null],
    ]) {
      const answer = await service.call('POST', '/packets/batch', { body });
      assert.equal(answer.status, 400, JSON.stringify(body).slice(0, 80));
      assert.equal(answer.body.code, 'VALIDATION_ERROR');
      assert.equal(answer.body.field, field);
    }
    assert.equal(await total(service), 0);
    assert.equal((await batch(service, [one, one, one])).status, 201);
  });

  test('a batch takes 100 items by default, but not 101 [H58]', async () => {
    const service = await shareService(store);
    const items = Array.from({ length: 101 }, (_, index) => named(`${index}`));
    const refused = await batch(service, items);
    assert.equal(refused.status, 400);
    assert.equal(refused.body.field, 'packets');
    assert.equal(await total(service), 0);
    assert.equal((await batch(service, items.slice(1))).status, 201);
  });
});
