import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { claimant, happenings, packetIn, question } from '../../support/life.ts';
import { startProcess } from '../../support/process.ts';
import { createPacket, newTenant, packetRequest, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** How many bytes a packet may exceed its tier's body size by, for the fields that the service adds. */
const ownBytes = 4096;

const totalOf = async (service: TestService, query: string): Promise<number> => {
  const answer = await service.call('GET', query);
  assert.equal(answer.status, 200, answer.text);
  return answer.body.total;
};
const searchTotal = (service: TestService, q: string) => totalOf(service, `/packets/search?q=${encodeURIComponent(q)}`);

const limitHeaders = ({ headers }: TestAnswer) => Object.keys(headers).filter((name) => name.startsWith('x-ratelimit'));

/** A text of numbered words. */
const words = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `w${from + index}`).join(' ');

/** Small packets, and a limit per minute that only a test of its headers looks at. */
const limits = { SERVICE_PACKET_BYTES_BUSINESS: '2048', SERVICE_RATE_LIMIT_PER_MINUTE: '100' };

for (const store of stores) {
  describe(`Decisions about packets, on ${store.name}`, () => {
    test('hitl_required filters by whether the question requires an answer, whatever the status and whether it was answered', async () => {
      const service = await shareService(store);
      const required = { ...question, required: true };
      const { id: answered } = await packetIn(service, 'awaiting_human', { hitl: required });
      assert.equal(
        (await service.call('POST', `/packets/${answered}/respond`, { body: { response: 'Yes', responded_by: 'dana' } })).status,
        200,
      );
      const { id: notAsked } = await createPacket(service, { hitl: required });
      const { id: expired } = await packetIn(service, 'expired', { hitl: required });
      const { id: optional } = await packetIn(service, 'awaiting_human');
      const { id: none } = await createPacket(service);
      const listed = async (value: boolean) =>
        (await service.call('GET', `/packets?hitl_required=${value}`)).body.packets.map(({ id }: { id: string }) => id);
      assert.deepEqual(await listed(true), [expired, notAsked, answered]);
      assert.deepEqual(await listed(false), [none, optional]);
    });

    test('texts that answers and the trail repeat are limited: a framework to 1,024 characters, an answer to 16,384', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const claim = (framework: string) => service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a', framework } });
      const long = await claim('x'.repeat(1025));
      assert.deepEqual([long.status, long.body.field], [400, 'framework']);
      assert.equal((await claim('x'.repeat(1024))).status, 200);
      const { id: asked } = await packetIn(service, 'awaiting_human');
      const respond = (response: string) => service.call('POST', `/packets/${asked}/respond`, { body: { response, responded_by: 'dana' } });
      const wordy = await respond('x'.repeat(16_385));
      assert.deepEqual([wordy.status, wordy.body.field], [400, 'response']);
      assert.equal((await respond('x'.repeat(16_384))).status, 200);
    });

    test('the answer to a batch is limited to 16 Mi characters: packets that do not fit are reported and not changed', async () => {
      const service = await shareService(store);
      const large = { context: { summary: 'x'.repeat(1_000_000) } };
      const ids: string[] = [];
      for (let count = 0; count < 17; count += 1) ids.push((await createPacket(service, large)).id);
      // The answer has reached its limit, so the size of the others does not matter.
      for (let count = 0; count < 2; count += 1) ids.push((await createPacket(service)).id);
      const first = await service.call('POST', '/packets/batch/claim', { body: { packet_ids: ids, agent_id: 'a' } });
      assert.equal(first.status, 200);
      assert.equal(first.body.claimed.length, 17);
      assert.deepEqual(
        first.body.errors.map(({ packet_id, code }: { packet_id: string; code: string }) => [packet_id, code]),
        ids.slice(17).map((id) => [id, 'PAYLOAD_TOO_LARGE']),
      );
      assert.equal(await totalOf(service, '/packets?status=created'), 2);
      const rest = await service.call('POST', '/packets/batch/claim', { body: { packet_ids: ids.slice(17), agent_id: 'a' } });
      assert.equal(rest.body.claimed.length, 2);
    });

    test('an action that moves from pending to completed or failed keeps its description', async () => {
      const service = await shareService(store);
      const pending = ['a1', 'a2'].map((id) => ({ id, description: `Do ${id}`, assignee: 'resolver' }));
      const { id } = await createPacket(service, { actions: { pending } });
      const answer = await service.call('PATCH', `/packets/${id}`, {
        body: { actions: { completed: [{ id: 'a1', result: 'Done' }], failed: [{ id: 'a2', error: 'No answer' }] } },
      });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body.actions, {
        pending: [],
        completed: [{ id: 'a1', description: 'Do a1', result: 'Done' }],
        failed: [{ id: 'a2', description: 'Do a2', error: 'No answer' }],
      });
    });

    test('null in a PATCH removes hitl; for any other field it is 400', async () => {
      const service = await shareService(store);
      const before = await createPacket(service, { hitl: { ...question, timeout_seconds: 60 } });
      const cases: [body: object, field: string][] = [
        [{ status: null }, 'status'],
        [{ metadata: null }, 'metadata'],
        [{ metadata: { tags: null } }, 'metadata.tags'],
        [{ context: { conversation_state: null } }, 'context.conversation_state'],
        [{ decisions: null }, 'decisions'],
        [{ actions: { pending: null } }, 'actions.pending'],
        [{ decisions: [{ id: 'd1', decided_by: null }] }, 'decisions.0.decided_by'],
        [{ hitl: { timeout_seconds: null } }, 'hitl.timeout_seconds'],
      ];
      for (const [body, field] of cases) {
        const answer = await service.call('PATCH', `/packets/${before.id}`, { body });
        assert.equal(answer.status, 400, field);
        assert.equal(answer.body.field, field);
      }
      assert.deepEqual((await service.call('GET', `/packets/${before.id}`)).body, before);
    });

    test('a packet may exceed the size of a request by 4 KiB; a PATCH beyond that is 413 and changes nothing', async () => {
      const limit = 2048;
      const service = await shareService(store, limits);
      const { id } = await createPacket(service, { decisions: [] });
      const patch = (name: string, length: number) =>
        service.call('PATCH', `/packets/${id}`, { body: { decisions: [{ id: name, decision: 'x'.repeat(length), rationale: '' }] } });
      const sizeOf = ({ text }: TestAnswer) => Buffer.byteLength(text);
      assert.equal((await patch('a', 1500)).status, 200);
      assert.equal((await patch('b', 1500)).status, 200);
      const room = limit + ownBytes - sizeOf(await patch('c', 100));
      const full = await patch('c', 100 + room);
      assert.equal(full.status, 200);
      assert.equal(sizeOf(full), limit + ownBytes);
      const before = await happenings(service, id);
      const over = await patch('c', 101 + room);
      assert.equal(over.status, 413);
      assert.deepEqual([over.body.code, over.body.field], ['PAYLOAD_TOO_LARGE', null]);
      assert.deepEqual((await service.call('GET', `/packets/${id}`)).body, full.body);
      assert.deepEqual(await happenings(service, id), before);
      // The limit is in bytes: a two-byte letter exceeds it with the same number of characters.
      const letters = { decisions: [{ id: 'c', decision: `${'x'.repeat(99 + room)}ü`, rationale: '' }] };
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: letters })).status, 413);
      assert.equal((await patch('c', 1)).status, 200);
    });

    test('a packet that a lower tier no longer allows can still be claimed, put to a person, answered and completed', async () => {
      const service = await shareService(store);
      const { id: tenant, key } = await newTenant(service, { tier: 'pro' });
      const decisions = [{ id: 'long', decision: 'x'.repeat(100_000), rationale: '' }];
      const { id } = await createPacket(service, { context: { summary: 'x'.repeat(100_000) }, decisions, hitl: question }, key);
      assert.equal((await service.call('PATCH', `/tenants/${tenant}`, { body: { tier: 'free' } })).status, 200);
      const steps: [method: string, tail: string, body: object][] = [
        ['POST', '/claim', claimant],
        ['PATCH', '', { status: 'in_progress' }],
        ['PATCH', '', { status: 'awaiting_human' }],
        ['POST', '/respond', { response: 'Go on', responded_by: 'dana' }],
        ['PATCH', '', { status: 'completed' }],
      ];
      for (const [method, tail, body] of steps) {
        const answer = await service.call(method, `/packets/${id}${tail}`, { body, key });
        assert.equal(answer.status, 200, `${method} ${tail} ${answer.text.slice(0, 200)}`);
      }
      const more = { decisions: [{ id: 'more', decision: 'More', rationale: '' }] };
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: more, key })).status, 413);
      // It may shrink, even if it is still too large.
      const smaller = await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'Short.' } }, key });
      assert.equal(smaller.status, 200);
      assert.ok(Buffer.byteLength(smaller.text) > 65_536 + ownBytes);
    });

    test('a packet has at most 100 tags, and a name at most 1,024 characters', async () => {
      const service = await shareService(store);
      const agent = { id: 'a', name: 'n'.repeat(1024), framework: 'f' };
      const tags = Array.from({ length: 100 }, (_, index) => `t${index}`);
      const post = (metadata: object) => service.call('POST', '/packets', { body: packetRequest({ metadata }) });
      assert.equal((await post({ source_agent: agent, target_agent: agent, tags })).status, 201);
      const many = await post({ source_agent: agent, target_agent: agent, tags: [...tags, 'one more'] });
      assert.equal(many.status, 400);
      assert.equal(many.body.field, 'metadata.tags');
      const long = await post({ source_agent: { ...agent, name: `${agent.name}n` }, target_agent: agent });
      assert.equal(long.status, 400);
      assert.equal(long.body.field, 'metadata.source_agent.name');
    });

    test('a list can be filtered by at most 20 tags; an empty tags is no filter', async () => {
      const service = await shareService(store);
      const tags = Array.from({ length: 21 }, (_, index) => `t${index}`);
      await createPacket(service, { metadata: { ...(packetRequest().metadata as object), tags } });
      await createPacket(service);
      assert.equal(await totalOf(service, `/packets?tags=${tags.slice(0, 20).join(',')}`), 1);
      const refused = await service.call('GET', `/packets?tags=${tags.join(',')}`);
      assert.equal(refused.status, 400);
      assert.equal(refused.body.field, 'tags');
      assert.equal(await totalOf(service, '/packets?tags='), 2);
      assert.equal(await totalOf(service, '/packets?tags=,'), 2);
    });

    test('the audit log finds a packet by its id in upper case as well', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      await createPacket(service);
      assert.equal(await totalOf(service, `/audit?packet_id=${id.toUpperCase()}`), 1);
    });

    test('a body is ignored on an operation that takes none', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const odd = { raw: '{"broken', headers: { 'content-type': 'text/plain' } };
      assert.equal((await service.call('DELETE', `/packets/${id}`, odd)).status, 204);
    });

    test('an idempotency key compares bytes: the same JSON formatted differently is another body', async () => {
      const service = await shareService(store);
      const headers = { 'Idempotency-Key': 'k' };
      const raw = JSON.stringify(packetRequest());
      assert.equal((await service.call('POST', '/packets', { raw, headers })).status, 201);
      assert.equal((await service.call('POST', '/packets', { raw: ` ${raw}`, headers })).status, 409);
      const again = await service.call('POST', '/packets', { raw, headers });
      assert.equal(again.status, 201);
      assert.equal(again.headers['idempotency-replayed'], 'true');
    });
  });

  describe(`Decisions about search, on ${store.name}`, () => {
    test('only the first 64 characters of a word count', async () => {
      const service = await shareService(store);
      const stem = 'x'.repeat(64);
      await createPacket(service, { context: { summary: `${stem}one` } });
      await createPacket(service, { context: { summary: 'x'.repeat(63) } });
      assert.equal(await searchTotal(service, `${stem}one`), 1);
      assert.equal(await searchTotal(service, `${stem}other`), 1);
      assert.equal(await searchTotal(service, stem), 1);
    });

    test('only the first 16 words of a query count', async () => {
      const service = await shareService(store);
      await createPacket(service, { context: { summary: words(0, 16) } });
      assert.equal(await searchTotal(service, `${words(0, 16)} absent`), 1);
      assert.equal(await searchTotal(service, `${words(0, 15)} absent`), 0);
    });

    test('only the first 20,000 words of a packet are searched', async () => {
      const service = await shareService(store);
      // The separator after each part of a packet takes one position.
      await createPacket(service, { context: { summary: words(0, 20_001) }, decisions: [], actions: {} });
      assert.equal(await searchTotal(service, 'w19999'), 1);
      assert.equal(await searchTotal(service, 'w20000'), 0);
    });

    test('a phrase is found as long as its words are among the first 16,383 of the packet and the first 255 of their kind', async () => {
      const service = await shareService(store);
      await createPacket(service, { context: { summary: words(0, 20_000) }, decisions: [], actions: {} });
      assert.equal(await searchTotal(service, '"w16381 w16382"'), 1);
      await createPacket(service, { context: { summary: `${'often '.repeat(254)}often seldom` }, decisions: [], actions: {} });
      assert.equal(await searchTotal(service, '"often seldom"'), 1);
      // Later words are still found individually; PostgreSQL only loses their positions.
      assert.equal(await searchTotal(service, 'w16390 w16391'), 1);
    });
  });

  describe(`Decisions about keys and limits, on ${store.name}`, () => {
    test('the last admin key may be deleted, even by itself: it is 401 from then on, and other keys still work', async (t) => {
      const service = await startService(t, { store });
      const { key } = await newTenant(service);
      const [own] = (await service.call('GET', '/keys')).body;
      assert.equal(own.admin, true);
      assert.equal((await service.call('DELETE', `/keys/${own.id}`)).status, 204);
      assert.equal((await service.call('GET', '/tenants')).status, 401);
      assert.equal((await service.call('GET', '/packets', { key })).status, 200);
      assert.equal((await service.call('GET', '/tenants', { key })).status, 403);
    });

    test('a tenant created without a tier is free; a lower tier does not change the tiers of its keys', async () => {
      const service = await shareService(store);
      const plain = await service.call('POST', '/tenants', { body: { name: 'Plain' } });
      assert.equal(plain.status, 201);
      assert.equal(plain.body.tier, 'free');
      const { id, key } = await newTenant(service, { tier: 'pro' });
      assert.equal((await service.call('PATCH', `/tenants/${id}`, { body: { tier: 'free' } })).status, 200);
      const answer = await service.call('GET', '/keys', { key });
      assert.equal(answer.status, 200);
      assert.equal(answer.body[0].tier, 'pro');
      assert.equal(answer.headers['x-ratelimit-tier'], 'pro');
    });

    test('without a limit per minute an answer only has X-RateLimit-Tier, with or without a limit per hour', async (t) => {
      const limited = await startService(t, { store, settings: { SERVICE_HOURLY_QUOTA_BUSINESS: '5' } });
      for (const service of [await shareService(store), limited]) {
        const answer = await service.call('GET', '/packets');
        assert.equal(answer.status, 200);
        assert.deepEqual(limitHeaders(answer), ['x-ratelimit-tier']);
      }
    });

    test('X-RateLimit-Reset counts the seconds until the oldest request counted leaves the window', async () => {
      const service = await shareService(store, limits);
      const reset = async () => Number((await service.call('GET', '/packets')).headers['x-ratelimit-reset']);
      assert.equal(await reset(), 60);
      service.clock.turn(12.5);
      assert.equal(await reset(), 48);
      service.clock.turn(47.5);
      // The first has left the window; the second is now the oldest, 47.5 seconds old.
      assert.equal(await reset(), 13);
    });
  });
}

describe('The settings file', () => {
  test('is set by SERVICE_CONFIG unless --config is given', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'baton-'));
    t.after(() => rmSync(folder, { recursive: true, force: true }));
    const start = (name: string, text: string) => {
      const path = join(folder, name);
      writeFileSync(path, text);
      return startProcess({ databaseUrl: 'sqlite::memory:', settings: { SERVICE_CONFIG: path } });
    };
    const service = await start('good.toml', 'batch_max = 1\n');
    t.after(() => service.kill());
    const batch = (count: number) =>
      service.call('POST', '/packets/batch', { body: { packets: Array.from({ length: count }, () => packetRequest()) } });
    assert.equal((await batch(1)).status, 201);
    assert.equal((await batch(2)).status, 400);
    await assert.rejects(start('unknown.toml', 'batch_maximum = 1\n'), /a setting that does not exist: batch_maximum/);
  });
});
