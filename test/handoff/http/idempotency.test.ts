import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { looking } from '../../support/consistency.ts';
import { packetIn } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { inMemory } from '../../support/store.ts';
import { onDisk, stores } from '../../support/stores.ts';

const hourSeconds = 3600;

interface SendOptions {
  body?: unknown;
  raw?: string;
  key?: string;
}

/** Posts with an idempotency key. */
const send = (
  service: TestService,
  path: string,
  name: string,
  { body = packetRequest(), ...more }: SendOptions = {},
): Promise<TestAnswer> => service.call('POST', path, { body, headers: { 'Idempotency-Key': name }, ...more });

const isReplay = ({ headers }: TestAnswer) => headers['idempotency-replayed'] === 'true';

async function totals(service: TestService, key?: string): Promise<{ packets: number; events: number }> {
  const as = key === undefined ? {} : { key };
  const packets = await service.call('GET', '/packets?limit=1', as);
  const events = await service.call('GET', '/audit?action=created&limit=200', as);
  const ofPackets = events.body.entries.filter(({ resource }: { resource: string }) => resource === 'packet');
  return { packets: packets.body.total, events: ofPackets.length };
}

const keyNames = async (service: TestService, key?: string): Promise<string[]> =>
  (await service.call('GET', '/keys', key === undefined ? {} : { key })).body.map(({ name }: { name: string }) => name);

/** The routes that create packets: the path, and a body for it. */
const routes: [name: string, pathOf: (parentId: string) => string, body: (summary: string) => unknown][] = [
  ['POST /packets', () => '/packets', (summary) => packetRequest({ context: { summary } })],
  ['POST /packets/{id}/chain', (id) => `/packets/${id}/chain`, (summary) => packetRequest({ context: { summary } })],
  ['POST /packets/batch', () => '/packets/batch', (summary) => ({ packets: [packetRequest({ context: { summary } }), {}] })],
];

for (const store of stores) {
  for (const [route, pathOf, bodyOf] of routes) {
    describe(`Idempotency-Key on ${route}, on ${store.name}`, () => {
      test('a repeated request gets the first answer, byte for byte, and creates nothing [H262]', async () => {
        const service = await shareService(store);
        const path = pathOf((await createPacket(service)).id);
        const before = await totals(service);
        const first = await send(service, path, 'key-1', { body: bodyOf('one') });
        assert.equal(first.status, 201);
        assert.equal(first.headers['idempotency-replayed'], undefined);
        const created = first.body.id ?? first.body.created[0].id;
        // The first answer is repeated even if the packet has changed since.
        assert.equal((await service.call('POST', `/packets/${created}/claim`, { body: { agent_id: 'worker' } })).status, 200);
        service.clock.turn(60);
        for (let round = 0; round < 3; round += 1) {
          const again = await send(service, path, 'key-1', { body: bodyOf('one') });
          assert.equal(again.status, 201);
          assert.equal(again.headers['idempotency-replayed'], 'true');
          assert.equal(again.text, first.text);
          assert.equal(again.headers.etag, first.headers.etag);
        }
        assert.deepEqual(await totals(service), { packets: before.packets + 1, events: before.events + 1 });
      });

      test('without the header, or with another key, the same request creates another packet [H262]', async () => {
        const service = await shareService(store);
        const path = pathOf((await createPacket(service)).id);
        const body = bodyOf('one');
        assert.equal((await service.call('POST', path, { body })).status, 201);
        assert.equal((await service.call('POST', path, { body })).status, 201);
        for (const name of ['key', 'Key', 'k'.repeat(255)]) {
          const answer = await send(service, path, name, { body });
          assert.equal(answer.status, 201);
          assert.ok(!isReplay(answer));
        }
        assert.equal((await totals(service)).packets, 6);
      });

      test('another body under the same key is 409, and creates nothing [H262]', async () => {
        const service = await shareService(store);
        const path = pathOf((await createPacket(service)).id);
        assert.equal((await send(service, path, 'key-1', { body: bodyOf('one') })).status, 201);
        const other = await send(service, path, 'key-1', { body: bodyOf('two') });
        assert.equal(other.status, 409);
        assert.equal(other.body.code, 'CONFLICT');
        assert.ok(!isReplay(other));
        assert.equal((await totals(service)).packets, 2);
        assert.ok(isReplay(await send(service, path, 'key-1', { body: bodyOf('one') })));
      });

      test('20 parallel requests with one key create once, and all get the same answer', async () => {
        const service = await shareService(store);
        const path = pathOf((await createPacket(service)).id);
        const answers = await Promise.all(Array.from({ length: 20 }, () => send(service, path, 'key-1', { body: bodyOf('one') })));
        for (const { status, text } of answers) {
          assert.equal(status, 201);
          assert.equal(text, answers[0]!.text);
        }
        assert.equal(answers.filter(isReplay).length, 19);
        assert.deepEqual(await totals(service), { packets: 2, events: 2 });
      });

      test('of parallel requests with one key and different bodies one succeeds; the others are 409', async () => {
        const service = await shareService(store);
        const path = pathOf((await createPacket(service)).id);
        const answers = await Promise.all(
          Array.from({ length: 20 }, (_, index) => send(service, path, 'key-1', { body: bodyOf(`${index % 4}`) })),
        );
        const won = answers.filter(({ status }) => status === 201);
        assert.equal(won.length, 5);
        assert.equal(new Set(won.map(({ text }) => text)).size, 1);
        assert.equal(won.filter(isReplay).length, 4);
        assert.equal(answers.filter(({ status }) => status === 409).length, 15);
        assert.equal((await totals(service)).packets, 2);
      });

      test('an idempotency key belongs to the family of the API key that sent it [H262, H442]', async () => {
        const service = await shareService(store);
        const { key } = await newTenant(service);
        const second = (await service.call('POST', '/keys', { body: { name: 'second' }, key })).body.key;
        const first = await send(service, pathOf((await createPacket(service)).id), 'key-1', { body: bodyOf('one') });
        assert.equal(first.status, 201);
        const path = pathOf((await createPacket(service, {}, key)).id);
        const other = await send(service, path, 'key-1', { body: bodyOf('one'), key });
        assert.equal(other.status, 201);
        assert.ok(!isReplay(other));
        assert.notEqual(other.text, first.text);
        const others = await send(service, path, 'key-1', { body: bodyOf('two'), key: second });
        assert.equal(others.status, 201);
        assert.ok(!isReplay(others));
        const { id } = (await service.call('GET', '/keys/self', { key })).body;
        const rotated = (await service.call('POST', `/keys/${id}/rotate`, { body: {}, key })).body.key;
        const again = await send(service, path, 'key-1', { body: bodyOf('one'), key: rotated });
        assert.equal(again.status, 201);
        assert.ok(isReplay(again));
        assert.equal(again.text, other.text);
        assert.deepEqual([(await totals(service)).packets, (await totals(service, key)).packets], [2, 3]);
      });

      test('an answer is repeated for 24 hours; then the key can be used again [H262]', async () => {
        const service = await shareService(store);
        const path = pathOf((await createPacket(service)).id);
        const first = await send(service, path, 'key-1', { body: bodyOf('one') });
        assert.equal(first.status, 201);
        service.clock.turn(24 * hourSeconds - 1);
        await service.handoff.runOnce.prune();
        const late = await send(service, path, 'key-1', { body: bodyOf('one') });
        assert.equal(late.status, 201);
        assert.ok(isReplay(late));
        // A replay does not extend the 24 hours.
        service.clock.turn(2);
        await service.handoff.runOnce.prune();
        const fresh = await send(service, path, 'key-1', { body: bodyOf('another') });
        assert.equal(fresh.status, 201);
        assert.ok(!isReplay(fresh));
        assert.notEqual(fresh.text, first.text);
        assert.equal((await totals(service)).packets, 3);
      });

      test('a refusal is not stored: the key can be used for the corrected request [H264]', async () => {
        const service = await shareService(store);
        const path = pathOf((await createPacket(service)).id);
        for (const raw of ['{', '{}', '[]', '{"packets":[{}]}']) {
          assert.equal((await send(service, path, 'key-1', { raw })).status, 400, raw);
        }
        const answer = await send(service, path, 'key-1', { body: bodyOf('one') });
        assert.equal(answer.status, 201);
        assert.ok(!isReplay(answer));
      });

      test('a refusal by the daily quota is not stored; a replay is answered even when the quota is reached [H264]', async () => {
        const service = await shareService(store);
        const { key } = await newTenant(service, { tier: 'free', handoffs_per_day: 2 });
        const path = pathOf((await createPacket(service, {}, key)).id);
        const first = await send(service, path, 'key-1', { body: bodyOf('one'), key });
        assert.equal(first.status, 201);
        const refused = await send(service, path, 'key-2', { body: bodyOf('two'), key });
        assert.equal(refused.status, route === 'POST /packets/batch' ? 400 : 429);
        const again = await send(service, path, 'key-1', { body: bodyOf('one'), key });
        assert.equal(again.status, 201);
        assert.ok(isReplay(again));
        service.clock.turn(15 * hourSeconds);
        const later = await send(service, path, 'key-2', { body: bodyOf('two'), key });
        assert.equal(later.status, 201);
        assert.ok(!isReplay(later));
      });
    });
  }

  describe(`Idempotency-Key on POST /keys, on ${store.name}`, () => {
    test('the API key is created once and never shown again: a repeat is 409 [H264]', async () => {
      const service = await shareService(store);
      const first = await send(service, '/keys', 'key-1', { body: { name: 'ci' } });
      assert.equal(first.status, 201);
      const { key } = first.body;
      for (let round = 0; round < 3; round += 1) {
        const again = await send(service, '/keys', 'key-1', { body: { name: 'ci' } });
        assert.equal(again.status, 409);
        assert.equal(again.body.code, 'CONFLICT');
        assert.ok(!('key' in again.body));
        assert.ok(!again.text.includes(key));
        assert.ok(!isReplay(again));
      }
      assert.deepEqual(await keyNames(service), ['first admin key', 'ci']);
      assert.equal((await service.call('GET', '/keys', { key })).status, 200);
    });

    test('20 parallel requests with one key create one API key', async () => {
      const service = await shareService(store);
      const answers = await Promise.all(Array.from({ length: 20 }, () => send(service, '/keys', 'key-1', { body: { name: 'ci' } })));
      assert.equal(answers.filter(({ status }) => status === 201).length, 1);
      assert.equal(answers.filter(({ status }) => status === 409).length, 19);
      assert.deepEqual(await keyNames(service), ['first admin key', 'ci']);
    });

    test('after a refusal, and after 24 hours, the key can be used again', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'pro', max_api_keys: 2 });
      assert.equal((await send(service, '/keys', 'key-1', { body: { name: 'too high', tier: 'business' }, key })).status, 400);
      assert.equal((await send(service, '/keys', 'key-1', { body: { name: 'second' }, key })).status, 201);
      assert.equal((await send(service, '/keys', 'key-2', { body: { name: 'third' }, key })).status, 409);
      const [, second] = (await service.call('GET', '/keys', { key })).body;
      assert.equal((await service.call('DELETE', `/keys/${second.id}`, { key })).status, 204);
      assert.equal((await send(service, '/keys', 'key-2', { body: { name: 'third' }, key })).status, 201);
      const third = (await service.call('GET', '/keys', { key })).body.at(-1);
      assert.equal((await service.call('DELETE', `/keys/${third.id}`, { key })).status, 204);
      assert.equal((await send(service, '/keys', 'key-2', { body: { name: 'third' }, key })).status, 409);
      service.clock.turn(24 * hourSeconds + 1);
      await service.handoff.runOnce.prune();
      assert.equal((await send(service, '/keys', 'key-2', { body: { name: 'third' }, key })).status, 201);
    });
  });

  describe(`Idempotency-Key on the claim of a packet and the answer of a person, on ${store.name}`, () => {
    test('a repeated claim with the same Idempotency-Key gets the first answer with its token [H262]', async () => {
      const service = await shareService(store);
      const path = `/packets/${(await createPacket(service)).id}/claim`;
      const claim = (lease_seconds: number) => send(service, path, 'once', { body: { agent_id: 'resolver', lease_seconds } });
      const first = await claim(60);
      assert.match(first.body.lease.token, /^lease_/);
      const again = await claim(60);
      assert.equal(again.status, 200);
      assert.equal(again.text, first.text);
      assert.ok(isReplay(again));
      assert.equal(again.headers.etag, first.headers.etag);
      assert.equal((await claim(61)).status, 409);
    });

    test('the token of a lease is not stored in plain text, and no other key gets it [H442]', async (t) => {
      const service = await startService(t, { store: store === inMemory ? onDisk : store });
      const path = `/packets/${(await createPacket(service)).id}/claim`;
      const body = { agent_id: 'resolver', lease_seconds: 60 };
      const { token } = (await send(service, path, 'once', { body })).body.lease;
      const other = (await service.call('POST', '/keys', { body: { name: 'other' } })).body.key;
      const refused = await send(service, path, 'once', { body, key: other });
      assert.equal(refused.status, 409);
      assert.ok(!refused.text.includes(token));
      assert.equal((await send(service, path, 'once', { body })).body.lease.token, token);
      await looking(service.databaseUrl, async ({ query }) => {
        const [row] = await query('select key, body from idempotency');
        assert.equal(row!.key === 'once', false);
        assert.match(String(row!.body), /"lease":\{"token":"[\w-]{20,}"/);
        assert.ok(!String(row!.body).includes(token.slice('lease_'.length)));
      });
    });

    test('a repeated response with the same Idempotency-Key gets the first answer, and is applied once [H262]', async () => {
      const service = await shareService(store);
      const { id, revision } = await packetIn(service, 'awaiting_human');
      const respond = () => send(service, `/packets/${id}/respond`, 'once', { body: { response: 'Yes', responded_by: 'dana' } });
      const [first, again] = [await respond(), await respond()];
      assert.equal(first.status, 200);
      assert.equal(again.text, first.text);
      assert.equal((await service.call('GET', `/packets/${id}`)).body.revision, revision + 1);
    });
  });

  describe(`Idempotency-Key across routes, on ${store.name}`, () => {
    test('a repeated PATCH with the same Idempotency-Key and If-Match gets the first answer, and is applied once [H407]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'worker' } });
      const headers = { 'Idempotency-Key': 'once', 'If-Match': '"2"' };
      const patch = (status: string) => service.call('PATCH', `/packets/${id}`, { body: { status }, headers });
      const first = await patch('in_progress');
      assert.deepEqual([first.status, isReplay(first), first.headers.etag], [200, false, '"3"']);
      // The answer is repeated though the packet has changed since.
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } })).status, 200);
      const again = await patch('in_progress');
      assert.deepEqual([again.status, isReplay(again), again.headers.etag, again.text], [200, true, '"3"', first.text]);
      assert.equal((await patch('failed')).status, 409);
      const { events } = (await service.call('GET', `/packets/${id}/history`)).body;
      assert.equal(events.length, 4);
    });

    test('the same key on another path is 409, in either order, and nothing is created [H262]', async () => {
      const service = await shareService(store);
      const one = await createPacket(service);
      const two = await createPacket(service);
      const body = packetRequest();
      const paths = ['/packets', `/packets/${one.id}/chain`, `/packets/${two.id}/chain`, '/packets/batch', '/keys'];
      const bodies: Record<string, unknown> = { '/packets/batch': { packets: [body] }, '/keys': { name: 'ci' } };
      const sendTo = (path: string, name: string) => send(service, path, name, { body: bodies[path] ?? body });
      for (const first of paths) {
        assert.equal((await sendTo(first, `first on ${first}`)).status, 201, first);
        const before = [await totals(service), await keyNames(service)];
        for (const other of paths) {
          if (other === first) continue;
          const answer = await sendTo(other, `first on ${first}`);
          assert.equal(answer.status, 409, `${first}, then ${other}`);
          assert.equal(answer.body.code, 'CONFLICT');
        }
        assert.deepEqual([await totals(service), await keyNames(service)], before);
      }
    });

    test('of a packet and an API key requested in parallel with one idempotency key, one is created', async () => {
      const service = await shareService(store);
      const answers = await Promise.all(
        Array.from({ length: 10 }, (_, index) =>
          index % 2 === 0 ? send(service, '/keys', 'key-1', { body: { name: 'ci' } }) : send(service, '/packets', 'key-1'),
        ),
      );
      for (const { status, text } of answers) assert.ok(status === 201 || status === 409, text);
      const made = answers.filter((answer) => answer.status === 201 && !isReplay(answer));
      assert.equal(made.length, 1);
      const { packets } = await totals(service);
      assert.equal(packets + (await keyNames(service)).length - 1, 1);
    });

    test('answers are repeated for as long as SERVICE_IDEMPOTENCY_RETENTION_SECONDS says', async () => {
      const service = await shareService(store, { SERVICE_IDEMPOTENCY_RETENTION_SECONDS: '172800' });
      assert.equal((await send(service, '/packets', 'key-1')).status, 201);
      service.clock.turn(48 * hourSeconds - 1);
      await service.handoff.runOnce.prune();
      assert.ok(isReplay(await send(service, '/packets', 'key-1')));
      service.clock.turn(2);
      await service.handoff.runOnce.prune();
      const fresh = await send(service, '/packets', 'key-1');
      assert.deepEqual([fresh.status, isReplay(fresh)], [201, false]);
    });

    test('answers older than 24 hours are deleted in rounds, however many there are', async () => {
      const service = await shareService(store);
      const names = Array.from({ length: 510 }, (_, index) => `key-${index}`);
      const created = await Promise.all(names.map((name) => send(service, '/packets', name)));
      assert.ok(created.every(({ status }) => status === 201));
      service.clock.turn(24 * hourSeconds + 1);
      const recent = await send(service, '/packets', 'recent');
      assert.equal(recent.status, 201);
      const soon = await service.handoff.runOnce.prune();
      const later = await service.handoff.runOnce.prune();
      assert.ok(soon < later, 'another round follows a full one immediately');
      const again = await Promise.all(names.map((name) => send(service, '/packets', name)));
      assert.equal(again.filter(isReplay).length, 0);
      assert.ok(isReplay(await send(service, '/packets', 'recent')));
      assert.equal((await totals(service)).packets, 1021);
    });

    test('a key reused after 24 hours keeps its new answer when the packet of the old answer is removed', async () => {
      const service = await shareService(store);
      const old = await send(service, '/packets', 'key-1');
      assert.equal(old.status, 201);
      service.clock.turn(24 * hourSeconds + 1);
      await service.handoff.runOnce.prune();
      const fresh = await send(service, '/packets', 'key-1');
      assert.equal(fresh.status, 201);
      assert.equal((await service.call('DELETE', `/packets/${old.body.id}?hard=true`)).status, 204);
      const again = await send(service, '/packets', 'key-1');
      assert.equal(again.status, 201);
      assert.ok(isReplay(again));
      assert.equal(again.text, fresh.text);
    });

    test('an idempotency key compares bytes: the same JSON formatted differently is another body [H262]', async () => {
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
}

// These requests are refused before the store is used, so one store is enough.
describe('Idempotency-Key', () => {
  const store = stores[0]!;

  test('400 on Idempotency-Key and X-Agent-Id when they are empty or longer than 255 characters [H260]', async () => {
    const service = await shareService(store);
    for (const name of ['', ' ', 'k'.repeat(256)]) {
      for (const [path, body] of [
        ['/packets', packetRequest()],
        ['/keys', { name: 'ci' }],
      ] as const) {
        const answer = await send(service, path, name, { body });
        assert.equal(answer.status, 400, `${path} ${name.length}`);
        assert.equal(answer.body.field, 'Idempotency-Key');
      }
    }
    for (const agent of ['', ' ', 'k'.repeat(256)]) {
      const { status, body } = await service.call('POST', '/packets', { body: packetRequest(), headers: { 'X-Agent-Id': agent } });
      assert.deepEqual([status, body.field], [400, 'X-Agent-Id']);
    }
    assert.equal((await totals(service)).packets, 0);
    const odd = { 'Idempotency-Key': '\u00ff'.repeat(255), 'X-Agent-Id': '\u00e9'.repeat(255) };
    assert.equal((await service.call('POST', '/packets', { body: packetRequest(), headers: odd })).status, 201);
  });
});
