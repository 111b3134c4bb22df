import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { describe, test } from 'node:test';
import { routes } from '../../../src/handoff/model/api.ts';
import { createExample } from '../../../src/handoff/model/examples.ts';
import type { HandoffRoute } from '../../../src/handoff/model/route.ts';
import { errorCodes } from '../../../src/kit/errors.ts';
import type { Route } from '../../../src/kit/route.ts';
import {
  adminKey,
  type CallOptions,
  createPacket,
  newTenant,
  packetRequest,
  startService,
  type TestAnswer,
  type TestService,
} from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { sendRaw } from '../../support/socket.ts';
import { stores } from '../../support/stores.ts';

const unknownId = '0197b5a6-8c3e-7f01-9a2b-000000000000';

/** Settings with a small limit on packets. */
const small = { SERVICE_PACKET_BYTES_BUSINESS: '4096' };

/** A create request with every part. */
const whole = {
  ...createExample,
  context: {
    ...createExample.context,
    conversation_state: [{ role: 'user', content: 'I was charged twice.', timestamp: '2026-03-01T09:00:00Z' }],
    custom: { thread: 'abc' },
  },
  decisions: [{ id: 'd1', decision: 'Refund', rationale: 'Two charges', alternatives: ['Voucher'], decided_by: 'frontline' }],
  actions: {
    pending: [{ id: 'a1', description: 'Refund', assignee: 'resolver', priority: 'high', depends_on: ['a0'] }],
    completed: [{ id: 'a0', description: 'Look up', result: 'found', completed_by: 'frontline' }],
    failed: [{ id: 'a9', description: 'Call', error: 'no answer' }],
  },
  dependencies: [{ id: 'x1', type: 'system', description: 'Ledger', status: 'up', source: 'ops' }],
};

/** The routes that take a body. */
type WithBody = { [Name in keyof typeof routes]: object extends (typeof routes)[Name]['body'] ? never : Name }[keyof typeof routes];

/** A valid body for each route, by the operation's name. */
const bodiesOf: Record<WithBody, Record<string, unknown>> = {
  createPacket: whole,
  chainPacket: whole,
  patchPacket: {
    status: 'claimed',
    decisions: whole.decisions,
    actions: whole.actions,
    context: { summary: 'On' },
    hitl: createExample.hitl,
  },
  claimPacket: { agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' },
  respondPacket: { response: 'Approve', responded_by: 'dana', notes: 'Loyal customer' },
  batchCreate: { packets: [whole] },
  batchClaim: { packet_ids: [unknownId], agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' },
  batchComplete: { packet_ids: [unknownId], agent_id: 'resolver' },
  claimNext: {
    agent_id: 'resolver',
    agent_name: 'Resolver',
    framework: 'langgraph',
    lease_seconds: 60,
    target_agent: 'resolver',
    tags: ['billing'],
    priorities: ['high'],
    wait_seconds: 0,
  },
  renewLease: { lease_seconds: 60 },
  createWebhook: { url: 'https://example.com/hook', events: ['packet.created'], secret: 'a-secret-of-16-or-more' },
  patchWebhook: { url: 'https://example.com/hook', events: ['packet.created'], secret: 'a-secret-of-16-or-more', active: true },
  retryAll: { webhook_id: unknownId, force: true },
  rotateKey: { overlap_seconds: 60 },
  createAnswerLink: { responder: 'dana', expires_in: 60 },
  createChannel: { kind: 'slack', target: 'https://hooks.slack.com/services/T/B/x', name: 'Dana', events: ['asked'], responder: 'dana' },
  patchChannel: { target: 'https://hooks.slack.com/services/T/B/y', name: 'Dana', events: ['asked'], responder: 'dana', active: true },
  createKey: { name: 'ci', tier: 'pro', admin: false, tenant_id: unknownId },
  createTenant: { name: 'Acme', tier: 'pro', handoffs_per_day: 5, max_api_keys: 5 },
  patchTenant: { name: 'Acme', tier: 'pro', handoffs_per_day: 5, max_api_keys: 5 },
};
const bodies: Record<string, Record<string, unknown>> = bodiesOf;

const every: [string, Route & HandoffRoute][] = Object.entries(routes);
const withBody = every.filter(([, route]) => route.body !== undefined);
/** The path of a route with an id, or with one for each of its parameters. */
function pathOf(route: Route, ...ids: string[]): string {
  let index = 0;
  return route.path.replace(/\{\w+\}/g, () => encodeURIComponent(ids[index++] ?? ids[0]!));
}

/** Asserts the documented error body: four keys of the right types, without anything that callers must not see. */
function assertRefused(
  { status, body, text }: Pick<TestAnswer, 'status' | 'body' | 'text'>,
  expected: number,
  field?: string | null,
): void {
  assert.equal(status, expected, text.slice(0, 300));
  assert.equal(typeof body.detail, 'string');
  assert.notEqual(body.detail, '');
  assert.ok(body.code in errorCodes, body.code);
  assert.ok(body.field === null || typeof body.field === 'string');
  assert.equal(body.status_code, expected);
  assert.doesNotMatch(text, /node_modules|\.ts:\d|sqlite|select |insert |postgres/i);
  if (field !== undefined) assert.equal(body.field, field, text.slice(0, 300));
}

/** The number of packets, audit entries, indexed packets and keys of the tenant, and the number of tenants. */
async function footprint({ call }: TestService): Promise<number[]> {
  const answers = await Promise.all(
    ['/packets?limit=1', '/audit?limit=1', '/packets/search?q=charged', '/keys', '/tenants'].map((path) => call('GET', path)),
  );
  return answers.map(({ status, body }) => {
    assert.equal(status, 200);
    return body.total ?? body.length;
  });
}

/** Every path in a body with its value, except below fields that take any JSON. */
function* places(value: unknown, path: string[] = []): Generator<{ path: string[]; value: unknown }> {
  const free = /(artifacts\.\d+\.value|alternatives\.\d+|options\.\d+|custom\.\w+|packets\.\d+)$/;
  if (path.length > 0) yield { path, value };
  if (typeof value !== 'object' || value === null) return;
  for (const [key, item] of Object.entries(value)) {
    if (!free.test([...path, key].join('.'))) yield* places(item, [...path, key]);
  }
}

/** The body with another value at the path. */
function withValue(body: unknown, path: readonly string[], value: unknown): Record<string, unknown> {
  const copy = structuredClone(body) as Record<string, unknown>;
  const inner = path.slice(0, -1).reduce((node, key) => node[key] as Record<string, unknown>, copy);
  inner[path.at(-1)!] = value;
  return copy;
}

/** Values of another type than the given one. */
const otherThan = (value: unknown): unknown[] =>
  Array.isArray(value)
    ? ['text', {}]
    : typeof value === 'object'
      ? ['text', [], 7]
      : typeof value === 'string'
        ? [7, {}, []]
        : ['text', {}, 1.5];

const nested = (depth: number, open = '[', close = ']') => open.repeat(depth) + close.repeat(depth);
const rawWithCustom = (json: string) =>
  JSON.stringify(packetRequest({ context: { summary: 's', custom: { x: 'HERE' } } })).replace('"HERE"', json);

for (const store of stores) {
  describe(`Bad input on ${store.name}`, () => {
    test('an invalid item of a batch is refused by itself, with its field', async () => {
      const service = await shareService(store);
      const items = [...places(whole)].flatMap(({ path, value }) =>
        otherThan(value).map((wrong) => ({ path, item: withValue(whole, path, wrong) })),
      );
      for (let from = 0; from < items.length; from += 90) {
        const some = items.slice(from, from + 90);
        const odd = [null, 7, 'text', []];
        const answer = await service.call('POST', '/packets/batch', {
          body: { packets: [...some.map(({ item }) => item), ...odd, whole] },
        });
        assert.equal(answer.status, 201);
        assert.equal(answer.body.created.length, 1);
        const fields = answer.body.errors.map(({ field }: { field: string | null }) => field);
        assert.deepEqual(fields, [...some.map(({ path }) => path.join('.')), ...odd.map(() => null)]);
      }
      assert.equal((await service.call('GET', '/packets')).body.total, Math.ceil(items.length / 90));
    });

    test('fields that only the service sets are ignored inside a create request [H11]', async () => {
      const service = await shareService(store);
      const packet = await createPacket(service, {
        metadata: { ...whole.metadata, created_at: '1999-01-01T00:00:00.000Z', tenant_id: unknownId },
        hitl: { ...createExample.hitl, response: 'Approve', responded_by: 'nobody', expires_at: '1999-01-01T00:00:00.000Z' },
      });
      assert.equal(packet.metadata.created_at, service.clock.read().toISOString());
      assert.equal(packet.hitl.response, null);
      assert.equal(packet.hitl.responded_by, null);
      assert.equal(packet.hitl.expires_at, null);
    });

    test('nesting: 64 levels are kept; 65 and 10,000 are 400 [H247]', async () => {
      const service = await shareService(store);
      const before = await footprint(service);
      // The body, context and custom add three levels.
      for (const json of [nested(62), nested(10_000), nested(100_000), nested(10_000, '{"a":', '}').replace('{"a":}', '{}')]) {
        assertRefused(await service.call('POST', '/packets', { raw: rawWithCustom(json) }), 400, null);
        assertRefused(await service.call('POST', '/packets', { raw: json }), 400, null);
      }
      assert.deepEqual(await footprint(service), before);
      const kept = await service.call('POST', '/packets', { raw: rawWithCustom(nested(61)) });
      assert.equal(kept.status, 201);
      assert.equal(JSON.stringify(kept.body.context.custom.x), nested(61));
      assert.equal((await service.call('GET', '/packets/search?q=s')).body.total, 1);
    });

    test('any text is kept unchanged: NUL, lone surrogates, line separators, both writing directions [H248]', async () => {
      const service = await shareService(store);
      const text = 'a\u0000b \ud800 \udc00x \u2028\u2029 \u202eflip \ufeff \uffff 👩‍👩‍👧 e\u0301 \u001f';
      const request = {
        ...whole,
        metadata: { ...whole.metadata, tags: ['\ud800', '\u2028', '\uffff', '👩‍👩‍👧'] },
        context: {
          summary: text,
          conversation_state: [{ role: 'user', content: text }],
          artifacts: [{ key: 'k', value: { [text]: text } }],
          custom: { [text]: text },
        },
        decisions: [{ id: 'd1', decision: text, rationale: text, alternatives: [text], decided_by: text }],
        hitl: { ...createExample.hitl, question: text, reason: text, options: [text] },
      };
      const created = await service.call('POST', '/packets', { body: request });
      assert.equal(created.status, 201);
      const { id } = created.body;
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.deepEqual(body, created.body);
      assert.equal(body.context.summary, text);
      assert.deepEqual(body.context.custom, { [text]: text });
      assert.deepEqual(body.metadata.tags, request.metadata.tags);
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } })).status, 200);
      const answered = await service.call('POST', `/packets/${id}/respond`, {
        body: { response: text, responded_by: 'dana \ud800', notes: text },
      });
      assert.equal(answered.status, 200);
      assert.equal(answered.body.hitl.response, text);
      const { body: history } = await service.call('GET', `/packets/${id}/history`);
      assert.equal(history.events.at(-1).details.response, text);
      assert.equal((await service.call('GET', '/packets/search?q=flip')).body.total, 1);
      assert.equal((await service.call('GET', '/packets?tags=%E2%80%A8')).body.total, 1);
    });

    test("400 with the field: NUL in a name, which a text column can't store [H248]", async () => {
      const service = await shareService(store);
      const before = await footprint(service);
      const names = ['metadata.source_agent.id', 'metadata.source_agent.name', 'metadata.target_agent.id', 'metadata.tags.0'];
      for (const field of [...names, 'decisions.0.id', 'actions.pending.0.id', 'dependencies.0.id']) {
        assertRefused(await service.call('POST', '/packets', { body: withValue(whole, field.split('.'), 'a\u0000b') }), 400, field);
      }
      assertRefused(await service.call('POST', '/keys', { body: { name: '\u0000' } }), 400, 'name');
      assertRefused(await service.call('POST', '/tenants', { body: { name: '\u0000' } }), 400, 'name');
      assert.deepEqual(await footprint(service), before);
    });

    test('the longest agent ids and tags are stored and found; one character more is 400 [H13]', async () => {
      const service = await shareService(store);
      // Four bytes per character, all different, so that nothing compresses.
      const longest = (salt: number) =>
        String.fromCodePoint(...Array.from({ length: 512 }, (_, index) => 0x20000 + ((index * 7919 + salt * 104729) % 42_000)));
      const request = {
        ...whole,
        metadata: {
          source_agent: { id: longest(1), name: 'n', framework: 'f' },
          target_agent: { id: longest(2), name: 'n' },
          tags: [longest(3)],
        },
      };
      assert.equal((await service.call('POST', '/packets', { body: request })).status, 201);
      assert.equal((await service.call('GET', `/packets?source_agent=${encodeURIComponent(longest(1))}`)).body.total, 1);
      assert.equal((await service.call('GET', `/packets?tags=${encodeURIComponent(longest(3))}`)).body.total, 1);
      for (const field of ['metadata.source_agent.id', 'metadata.target_agent.id', 'metadata.tags.0']) {
        assertRefused(await service.call('POST', '/packets', { body: withValue(request, field.split('.'), `${longest(4)}x`) }), 400, field);
      }
    });

    test('no packet prevents others from being found: words cut in half, 20,000 long words, texts that grow [H87]', async () => {
      const service = await shareService(store);
      const cut = `a${'\u{10428}'.repeat(40)}`;
      const words = Array.from({ length: 19_000 }, (_, index) => String(index).padStart(53, 'abcdefgh'));
      const growing = '\ufdfa '.repeat(60_000);
      for (const summary of [cut, words.join(' '), growing, '\ud800'.repeat(1000), '']) {
        const answer = await service.call('POST', '/packets', {
          body: packetRequest({ context: { summary: summary === '' ? '\u0000' : summary } }),
        });
        assert.equal(answer.status, 201);
      }
      await createPacket(service);
      for (const found of [cut, words[0]!, 'charged']) {
        const answer = await service.call('GET', `/packets/search?q=${encodeURIComponent(found)}`);
        assert.equal(answer.status, 200);
        assert.equal(answer.body.total, 1);
      }
    });

    test('numbers: exact as doubles, or 400 with the field [H13, H249]', async () => {
      const service = await shareService(store);
      const before = await footprint(service);
      for (const json of ['1e400', '-1e400', '[{"y":1e999}]']) {
        const field = json.startsWith('[') ? 'context.custom.x.0.y' : 'context.custom.x';
        assertRefused(await service.call('POST', '/packets', { raw: rawWithCustom(json) }), 400, field);
      }
      for (const timeout of ['9007199254740993', '1e300', '0', '-1', '1.5', '3153600001']) {
        const raw = JSON.stringify(whole).replace('"timeout_seconds":3600', `"timeout_seconds":${timeout}`);
        assertRefused(await service.call('POST', '/packets', { raw }), 400, 'hitl.timeout_seconds');
      }
      for (const [field, value] of [
        ['handoffs_per_day', 1e30],
        ['handoffs_per_day', -1],
        ['max_api_keys', 2 ** 53],
        ['max_api_keys', 0.5],
      ] as const) {
        assertRefused(await service.call('POST', '/tenants', { body: { name: 'Acme', [field]: value } }), 400, field);
      }
      assert.deepEqual(await footprint(service), before);
      const { status, body } = await service.call('POST', '/packets', { raw: rawWithCustom('[9007199254740993,1e308,5e-324,0.1,-0]') });
      assert.equal(status, 201);
      assert.deepEqual(body.context.custom.x, [9007199254740992, 1e308, 5e-324, 0.1, 0]);
    });

    test('413: one byte over the limit; a body at the limit is accepted, and a batch applies it to each item [H233]', async () => {
      const service = await shareService(store, small);
      const sized = (bytes: number) => {
        const empty = Buffer.byteLength(JSON.stringify(packetRequest({ context: { summary: '' } })));
        return JSON.stringify(packetRequest({ context: { summary: 'é'.repeat(10) + 'x'.repeat(bytes - empty - 20) } }));
      };
      assert.equal((await service.call('POST', '/packets', { raw: sized(4096) })).status, 201);
      const before = await footprint(service);
      assertRefused(await service.call('POST', '/packets', { raw: sized(4097) }), 413, null);
      const alone = await service.call('POST', '/packets/batch', { raw: `{"packets":[${sized(4097)}]}` });
      assertRefused(alone, 400);
      assert.equal(alone.body.errors[0].code, 'PAYLOAD_TOO_LARGE');
      assert.deepEqual(await footprint(service), before);
      const batch = await service.call('POST', '/packets/batch', { raw: `{"packets":[${sized(4096)},${sized(4097)}]}` });
      assert.equal(batch.status, 201);
      assert.deepEqual(
        batch.body.errors.map(({ index, code }: { index: number; code: string }) => [index, code]),
        [[1, 'PAYLOAD_TOO_LARGE']],
      );
      assertRefused(
        await service.call('POST', '/packets/batch', { raw: `{"packets":[${Array(101).fill(sized(4096)).join(',')}]}` }),
        413,
        null,
      );
    });

    test('any search text is safe: the syntax of a search engine has no meaning [H82]', async () => {
      const service = await shareService(store);
      await createPacket(service);
      const texts = [
        "' OR 1=1 --",
        '"',
        '"""',
        'a AND NOT b',
        'NEAR(a b, 5)',
        'summary:charged',
        'charged*',
        '^charged',
        'a & | ! <-> :*',
        '\\',
        '$1',
        '%',
        '_',
        '(((',
        ')',
        '{}',
        '-charged',
        "charged':*",
        '\ud7ff\ue000',
        '👩‍👩‍👧',
        'x'.repeat(5000),
        'a '.repeat(2000),
        '"'.repeat(999),
      ];
      for (const text of texts) {
        const answer = await service.call('GET', `/packets/search?q=${encodeURIComponent(text)}`);
        assert.equal(answer.status, 200, text.slice(0, 50));
        assert.ok(answer.body.total <= 1);
      }
    });

    test('400 on cursor: garbage, another tenant, another filter, or together with offset [H70]', async () => {
      const service = await shareService(store);
      const other = await newTenant(service);
      for (let count = 0; count < 3; count += 1) await createPacket(service);
      const cursor: string = (await service.call('GET', '/packets?limit=1')).body.next_cursor;
      const filtered: string = (await service.call('GET', '/packets?limit=1&priority=high')).body.next_cursor;
      assert.equal((await service.call('GET', `/packets?limit=2&cursor=${cursor}`)).status, 200);
      const flipped = (cursor[0] === 'A' ? 'B' : 'A') + cursor.slice(1);
      const junk = [
        '',
        'abc',
        '%00',
        '%FF',
        'null',
        '{}',
        '..%2f',
        unknownId,
        'A'.repeat(1024),
        'A'.repeat(5000),
        flipped,
        cursor.slice(0, -4),
        `${cursor}AAAA`,
        cursor.slice(0, 16),
        `${cursor}%00`,
        Buffer.from(unknownId).toString('base64url'),
        filtered,
      ];
      for (const one of junk) assertRefused(await service.call('GET', `/packets?cursor=${one}`), 400, 'cursor');
      assertRefused(await service.call('GET', `/packets?cursor=${cursor}`, { key: other.key }), 400, 'cursor');
      for (const filter of ['status=created', 'priority=high', 'source_agent=frontline', 'tags=billing', 'created_after=2020-01-01']) {
        assertRefused(await service.call('GET', `/packets?${filter}&cursor=${cursor}`), 400, 'cursor');
      }
      assertRefused(await service.call('GET', `/packets/awaiting?cursor=${cursor}`), 400, 'cursor');
      assertRefused(await service.call('GET', `/packets?offset=1&cursor=${cursor}`), 400, 'cursor');
    });

    test('an invalid id is answered like an unknown one, on every route that takes an id [H237]', async () => {
      const service = await shareService(store);
      const before = await footprint(service);
      const junk = [
        'nope',
        '0',
        '-1',
        'null',
        '%00',
        '%0a',
        '..%2f..%2fx',
        "'%3b--",
        '%F0%9F%92%A9',
        'a'.repeat(300),
        'a'.repeat(10_000),
        unknownId.toUpperCase(),
        `${unknownId}0`,
        `%7B${unknownId}%7D`,
        unknownId.replaceAll('-', ''),
        `urn:uuid:${unknownId}`,
      ];
      for (const [name, route] of every.filter(([, { path }]) => path.includes('{'))) {
        const ask = (id: string) =>
          service.call(route.method, route.path.replace(/\{\w+\}/, id), bodies[name] === undefined ? {} : { body: bodies[name] });
        const unknown = await ask(unknownId);
        assertRefused(unknown, 404, null);
        for (const id of junk) {
          const answer = await ask(id);
          assertRefused(answer, 404, null);
          assert.equal(answer.body.detail, unknown.body.detail);
        }
        for (const id of ['%ff', '%zz', '%']) assertRefused(await ask(id), 404, null);
      }
      assert.deepEqual(await footprint(service), before);
    });

    test('401: invalid keys, two key headers, and a key anywhere but in its header', async () => {
      const service = await shareService(store);
      const address = await service.listen();
      const junk = [
        '',
        ' ',
        'x',
        'svc_',
        `svc_${'0'.repeat(49)}`,
        'x'.repeat(10_000),
        'Bearer x',
        '\u00ff\u00fe',
        "' or 1=1",
        `${adminKey}x`,
      ];
      for (const key of junk) assertRefused(await service.call('GET', '/packets', { key }), 401, null);
      for (const authorization of [`Bearer ${adminKey}x`, `Basic ${adminKey}`, adminKey])
        assertRefused(await service.call('GET', '/packets', { key: null, headers: { authorization } }), 401, null);
      assertRefused(await service.call('GET', `/packets?api_key=${adminKey}`, { key: null }), 401, null);
      assertRefused(await service.call('POST', '/packets', { key: null, body: { ...whole, api_key: adminKey } }), 401, null);
      const get = (headers: string) =>
        sendRaw(address, `GET /api/v1/packets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n\r\n`);
      assertRefused(await get(`X-API-Key: ${adminKey}\r\nX-API-Key: ${adminKey}`), 401, null);
      assertRefused(await get(`X-API-Key: ${adminKey}\r\nx-api-key: other`), 401, null);
      assertRefused(await get(`X-API-Key: ${adminKey}\u0000`), 400, null);
      assertRefused(await get(`X-API-Key: ${'x'.repeat(100_000)}`), 431, null);
      // Spaces around a header's value are not part of it (RFC 9110, 5.5).
      assert.equal((await get(`X-API-Key:  ${adminKey} `)).status, 200);
    });

    test('every failure in the API description can occur, with the specified body', async (t) => {
      const service = await shareService(store, small);
      const limited = await startService(t, { store, settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '1' } });
      assert.equal((await limited.call('GET', '/keys')).status, 200);
      const { key } = await newTenant(service, { max_api_keys: 1 });
      const keyWith = async (scope: string) => (await service.call('POST', '/keys', { body: { name: scope, scopes: [scope] } })).body.key;
      const lesser = [
        ['read', await keyWith('read')] as const,
        ['respond', await keyWith('respond')] as const,
        ['work', await keyWith('work')] as const,
      ];
      const met = new Set<string>();
      // Streams stay open; they have their own tests.
      const refusing = every.filter(([, { access, tag }]) => access !== 'public' && tag !== 'streams');
      const meet = async (
        name: keyof typeof routes,
        expected: number,
        id: string | string[],
        options: CallOptions = {},
        query = '',
        on: TestService = service,
      ) => {
        const route: Route = routes[name];
        const body = bodies[name] === undefined || options.raw !== undefined ? {} : { body: bodies[name] };
        assertRefused(await on.call(route.method, pathOf(route, ...[id].flat()) + query, { ...body, ...options }), expected);
        assert.ok(expected in route.responses, `${name} does not document ${expected}`);
        met.add(`${name} ${expected}`);
      };

      for (const [given, route] of refusing) {
        const name = given as keyof typeof routes;
        await meet(name, 401, unknownId, { key: null });
        await meet(name, 429, unknownId, {}, '', limited);
        if (route.access === 'admin') await meet(name, 403, unknownId, { key });
        else if (route.access !== 'any')
          await meet(name, 403, unknownId, { key: lesser.find(([scope]) => ![route.access, route.alternative].includes(scope))![1] });
        await meet(name, 400, unknownId, {}, '?nope=1');
        if (route.path.includes('{')) await meet(name, 404, unknownId);
        if (route.body === undefined) continue;
        await meet(name, 400, unknownId, { raw: '{' });
        await meet(name, 413, unknownId, { raw: ' '.repeat(500_000) });
        await meet(name, 415, unknownId, { headers: { 'content-type': 'text/plain' } });
      }

      const { id: expired } = await createPacket(service);
      assert.equal((await service.call('DELETE', `/packets/${expired}`)).status, 204);
      const { id: claimed } = await createPacket(service);
      assert.equal((await service.call('POST', `/packets/${claimed}/claim`, { body: { agent_id: 'a' } })).status, 200);
      const { id: late } = await createPacket(service, { hitl: createExample.hitl });
      assert.equal((await service.call('PATCH', `/packets/${late}`, { body: { status: 'awaiting_human' } })).status, 200);
      service.clock.turn(createExample.hitl.timeout_seconds);
      const used = { headers: { 'Idempotency-Key': 'used' } };
      assert.equal((await service.call('POST', '/packets', { body: packetRequest(), ...used })).status, 201);
      const stale = { headers: { 'If-Match': '"99"' } };

      await meet('createPacket', 409, claimed, used);
      await meet('chainPacket', 409, claimed, used);
      await meet('batchCreate', 409, claimed, used);
      await meet('patchPacket', 409, expired, { body: { context: { summary: 'On' } } });
      await meet('deletePacket', 409, expired);
      await meet('claimPacket', 409, claimed);
      await meet('respondPacket', 409, claimed);
      await meet('createAnswerLink', 409, claimed);
      await meet('createKey', 409, claimed, { key, body: { name: 'second' } });
      await meet('deleteTenant', 409, '00000000-0000-7000-8000-000000000001');
      await meet('claimPacket', 410, expired);
      await meet('respondPacket', 410, late);
      await meet('createAnswerLink', 410, late);
      for (const name of ['patchPacket', 'deletePacket', 'claimPacket', 'respondPacket'] as const) await meet(name, 412, claimed, stale);
      await meet('deletePacket', 403, claimed, { key }, '?hard=true');
      await meet('createKey', 403, claimed, { key, body: { name: 'mine', admin: true } });
      await meet('createKey', 404, claimed);

      await meet('createWebhook', 409, claimed, used);
      await meet('claimNext', 409, claimed, used);
      await meet('retryAll', 404, claimed);
      const { body: hook } = await service.call('POST', '/hooks', { body: bodies.createWebhook });
      const { body: ping } = await service.call('POST', `/hooks/${hook.id}/ping`);
      await meet('replayDeadLetter', 409, ping.id);
      assert.equal((await service.call('PATCH', `/hooks/${hook.id}`, { body: { active: false } })).status, 200);
      await meet('pingWebhook', 409, hook.id);
      await meet('createChannel', 409, claimed, used);
      const { body: channel } = await service.call('POST', '/channels', { body: bodies.createChannel });
      const { body: message } = await service.call('POST', `/channels/${channel.id}/test`);
      await meet('replayChannelDelivery', 409, [channel.id, message.id]);
      assert.equal((await service.call('PATCH', `/channels/${channel.id}`, { body: { active: false } })).status, 200);
      await meet('testChannel', 409, channel.id);

      const { id: free } = await createPacket(service);
      await meet('releasePacket', 409, free);
      await meet('releasePacket', 412, claimed, stale);
      await meet('withdrawQuestion', 409, free);
      await meet('withdrawQuestion', 412, claimed, stale);
      await meet('renewLease', 409, claimed);
      await meet('endLease', 409, claimed);
      const { body: plain } = await service.call('POST', '/keys', { body: { name: 'plain' } });
      await meet('releasePacket', 403, claimed, { key: plain.key });
      const { body: keys } = await service.call('GET', '/keys');
      await meet('rotateKey', 403, keys.find(({ admin }: { admin: boolean }) => admin).id, { key: plain.key });
      assert.equal((await service.call('POST', `/keys/${plain.id}/rotate`)).status, 201);
      await meet('rotateKey', 409, plain.id);

      // A public route only refuses invalid HTTP, before routing. A page of a list is only too large with 16 MiB of
      // packets, which the tests of lists cover.
      const documented = refusing.flatMap(([name, { method, responses }]) =>
        Object.keys(responses)
          .filter((status) => method !== 'GET' || status !== '413')
          .map((status) => `${name} ${status}`),
      );
      assert.deepEqual(
        documented.filter((one) => / 4\d\d$/.test(one) && !met.has(one)),
        [],
      );
    });
  });
}

// These requests are refused before the store is used, so one store is enough.
describe('Bad input', () => {
  test('400: broken JSON, on every route that takes a body [H269]', async (t) => {
    const service = await startService(t);
    const { id } = await createPacket(service);
    const before = await footprint(service);
    const valid = JSON.stringify(whole);
    const broken = [
      '{',
      '{"a"',
      'nul',
      '[1,]',
      "{'a':1}",
      '{"a":01}',
      '{"a":NaN}',
      '{"a":"\u0001"}',
      '\u0000',
      `${valid}}`,
      `\ufeff${valid}`,
      ' ',
    ];
    const truncated = [0.1, 0.5, 0.9, 0.999].map((share) => valid.slice(0, Math.floor(valid.length * share)));
    for (const [, route] of withBody) {
      for (const raw of [...broken, ...truncated]) {
        assertRefused(await service.call(route.method, pathOf(route, id), { raw }), 400, null);
      }
      if (!route.bodyOptional) assertRefused(await service.call(route.method, pathOf(route, id), { raw: '' }), 400, null);
    }
    assert.deepEqual(await footprint(service), before);
  });

  test('400: bytes that are not UTF-8', async (t) => {
    const service = await startService(t);
    const before = await footprint(service);
    const valid = JSON.stringify(packetRequest());
    const bytes = [[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]];
    for (const sequence of bytes) {
      const [head, tail] = valid.split('charged');
      const raw = Buffer.concat([Buffer.from(head!), Buffer.from(sequence), Buffer.from(tail!)]);
      assertRefused(await service.call('POST', '/packets', { raw }), 400, null);
    }
    assertRefused(await service.call('POST', '/packets', { raw: Buffer.from(valid, 'utf16le') }), 400, null);
    assert.deepEqual(await footprint(service), before);
  });

  test('400 with the field: a wrong type anywhere in any body [H270]', async (t) => {
    const service = await startService(t);
    const { id } = await createPacket(service);
    const before = await footprint(service);
    let tried = 0;
    for (const [name, route] of withBody) {
      for (const { path, value } of places(bodies[name])) {
        for (const wrong of otherThan(value)) {
          const answer = await service.call(route.method, pathOf(route, id), { body: withValue(bodies[name], path, wrong) });
          assertRefused(answer, 400, path.join('.'));
          tried += 1;
        }
      }
      for (const wrong of ['text', 7, true, null, [], [bodies[name]]]) {
        assertRefused(await service.call(route.method, pathOf(route, id), { body: wrong }), 400, null);
      }
    }
    assert.ok(tried > 300, `${tried}`);
    assert.deepEqual(await footprint(service), before);
  });

  test('400 with the field: an unknown field, or one that only the service sets, at the top level of any body [H3]', async (t) => {
    const service = await startService(t);
    const { id } = await createPacket(service);
    const before = await footprint(service);
    const own = [
      'surprise',
      'id',
      'status',
      'revision',
      'created_at',
      'updated_at',
      'claimed_at',
      'claimed_by',
      'version',
      'key',
      'admin',
      'tenant_id',
    ];
    for (const [name, route] of withBody) {
      for (const field of own.filter((field) => !(field in bodies[name]!))) {
        assertRefused(await service.call(route.method, pathOf(route, id), { body: { ...bodies[name], [field]: 'x' } }), 400, field);
      }
    }
    const answer = await service.call('PATCH', `/packets/${id}`, { body: { metadata: { source_agent: whole.metadata.source_agent } } });
    assertRefused(answer, 400, 'metadata.source_agent');
    assertRefused(
      await service.call('PATCH', `/packets/${id}`, { body: { metadata: { created_at: '2020-01-01' } } }),
      400,
      'metadata.created_at',
    );
    assert.deepEqual(await footprint(service), before);
  });

  test('400 with the field: names of JavaScript prototypes, anywhere [H246]', async (t) => {
    const service = await startService(t);
    const before = await footprint(service);
    for (const name of ['__proto__', 'constructor', 'prototype', '\\u005f_proto__']) {
      const plain = name.replace('\\u005f', '_');
      const valid = JSON.stringify(whole);
      const top = await service.call('POST', '/packets', { raw: `{"${name}":{"admin":true},${valid.slice(1)}` });
      assertRefused(top, 400, plain);
      const inCustom = await service.call('POST', '/packets', { raw: rawWithCustom(`{"${name}":{"admin":true}}`) });
      assertRefused(inCustom, 400, `context.custom.x.${plain}`);
      const inItem = await service.call('POST', '/packets', { raw: valid.replace('"decisions":[{', `"decisions":[{"${name}":1,`) });
      assertRefused(inItem, 400, `decisions.0.${plain}`);
    }
    assert.equal(({} as { admin?: boolean }).admin, undefined);
    assert.deepEqual(await footprint(service), before);
  });

  test('400 with the field: a name that appears twice [H245]', async (t) => {
    const service = await startService(t);
    const before = await footprint(service);
    const valid = JSON.stringify(whole);
    const twice: [string, string][] = [
      [`{"context":{"summary":"other"},${valid.slice(1)}`, 'context'],
      [valid.replace('"summary":', '"summary":"other","summary":'), 'context.summary'],
      [valid.replace('"summary":', '"s\\u0075mmary":"other","summary":'), 'context.summary'],
      [valid.replace('"decision":', '"id":"d2","decision":'), 'decisions.0.id'],
      [rawWithCustom('[1,[{}],{"a":{"b":1,"c":"}{\\"b\\":","b":2}}]'), 'context.custom.x.2.a.b'],
    ];
    for (const [raw, field] of twice) assertRefused(await service.call('POST', '/packets', { raw }), 400, field);
    assert.deepEqual(await footprint(service), before);
    // Text that looks like a field name is not one.
    const { body } = await service.call('POST', '/packets', { raw: rawWithCustom('{"a":"\\"a\\":1,{\\"a\\":","b":"\\\\"}') });
    assert.deepEqual(body.context.custom.x, { a: '"a":1,{"a":', b: '\\' });
  });

  test('the answer stays small, however many faults a body has and however long a name is [H271]', async (t) => {
    const service = await startService(t);
    const before = await footprint(service);
    const many = await service.call('POST', '/packets', { body: { ...whole, decisions: Array.from({ length: 5000 }, () => 7) } });
    assertRefused(many, 400, 'decisions.0');
    assert.equal(many.body.errors.length, 50);
    const unknown = Object.fromEntries(Array.from({ length: 4000 }, (_, index) => [`field_${index}`, 1]));
    const fields = await service.call('POST', '/packets', { body: { ...whole, ...unknown } });
    assertRefused(fields, 400, 'field_0');
    const large = await service.call('POST', '/packets', { body: { ...whole, decisions: Array.from({ length: 100_000 }, () => ({})) } });
    assertRefused(large, 400, 'decisions.0.id');
    // For a body of more than 64 KiB only one fault is reported: finding the others would block the event loop.
    assert.equal(large.body.errors, undefined);
    const long = 'x'.repeat(500_000);
    const longName = await service.call('POST', '/packets', { body: { ...whole, [long]: 1 } });
    assertRefused(longName, 400);
    assert.ok(longName.body.field.startsWith('xxx'));
    const twice = await service.call('POST', '/packets', { raw: `{"${long}":1,"${long}":2}` });
    assertRefused(twice, 400);
    const deep = await service.call('POST', '/packets', { raw: rawWithCustom(`{"${long}":{"__proto__":1}}`) });
    assertRefused(deep, 400);
    for (const { text } of [many, fields, large, longName, twice, deep]) assert.ok(text.length < 20_000, `${text.length}`);
    assert.deepEqual(await footprint(service), before);
  });

  test('415: a body that is not declared as JSON in UTF-8 [H252, H269]', async (t) => {
    const service = await startService(t);
    const before = await footprint(service);
    const raw = JSON.stringify(packetRequest());
    const wrong = [
      'text/plain',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json; charset=utf-16',
      'application/json; charset=iso-8859-1',
      'application/jsonp',
      'json',
      ';',
      '',
    ];
    for (const type of wrong) {
      assertRefused(await service.call('POST', '/packets', { raw, headers: { 'content-type': type } }), 415, null);
    }
    for (const encoding of ['gzip', 'br', 'identity, gzip'])
      assertRefused(await service.call('POST', '/packets', { raw, headers: { 'content-encoding': encoding } }), 415, null);
    assert.deepEqual(await footprint(service), before);
    for (const type of [
      'application/json',
      'APPLICATION/JSON; Charset="UTF-8"',
      'application/json;charset=utf8',
      'application/vnd.acme+json',
    ]) {
      assert.equal((await service.call('POST', '/packets', { raw, headers: { 'content-type': type } })).status, 201);
    }
  });

  test('413, 415 and 400 reach a client that sends its whole body before it reads, and keep the connection usable [H253]', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const closing = new Agent({ keepAlive: false });
    t.after(() => agent.destroy());
    const large = Buffer.alloc(8_000_000, 'x');
    for (const [type, path, expected] of [
      ['application/json', '/packets', 413],
      ['text/plain', '/packets', 415],
      ['application/json', '/packets/batch', 400],
    ] as const) {
      for (const framing of [{ 'content-length': large.length }, { 'transfer-encoding': 'chunked' }]) {
        for (const by of [agent, closing]) {
          const answer = await sendWhole(`${address}/api/v1${path}`, by, { 'content-type': type, ...framing }, large);
          assert.equal(answer, expected, `${path} ${JSON.stringify(framing)}`);
        }
      }
    }
    assert.equal(Object.values(agent.freeSockets).flat().length, 1);
  });

  test('400 with the field: an error in a nullable object is reported once', async (t) => {
    const service = await startService(t);
    const { id } = await createPacket(service);
    const one = await service.call('PATCH', `/packets/${id}`, { body: { hitl: { timeout_seconds: 0 } } });
    assertRefused(one, 400, 'hitl.timeout_seconds');
    assert.equal(one.body.errors, undefined);
    const other = await service.call('PATCH', `/packets/${id}`, { body: { hitl: 7 } });
    assertRefused(other, 400, 'hitl');
    assert.equal(other.body.errors, undefined);
  });

  test('400 with a specific sentence: too few, too many, too long, too large, an invalid date', async (t) => {
    const service = await startService(t);
    const refusal = async (changes: Record<string, unknown>) =>
      (await service.call('POST', '/packets', { body: packetRequest(changes) })).body.detail;
    const turn = { role: 'user', content: 'x', timestamp: '2026-02-31T00:00:00Z' };
    const agent = { id: 'x'.repeat(513), name: 'A', framework: 'f' };
    for (const [changes, sentence] of [
      [{ context: { summary: 'x', conversation_state: [turn] } }, /conversation_state\.0\.timestamp must be an ISO 8601 date/],
      [{ metadata: { ...createExample.metadata, source_agent: agent } }, /source_agent\.id can have at most 512 characters\./],
      [{ metadata: { ...createExample.metadata, tags: Array(101).fill('t') } }, /tags can have at most 100 items\./],
      [{ hitl: { required: true, reason: 'r', question: 'q', timeout_seconds: 0 } }, /timeout_seconds must be at least 1\./],
    ] as const) {
      assert.match(await refusal(changes), sentence);
    }
    assert.equal((await service.call('POST', '/packets/batch', { body: { packets: [] } })).body.detail, 'packets must not be empty.');
    const item = await service.call('POST', '/packets/batch', { body: { packets: [null] } });
    assert.match(item.body.errors[0].error, /^The packet must be an object/);
    assert.equal((await service.call('GET', '/packets?limit=0')).body.detail, 'limit must be at least 1.');
  });

  test('400 with the field: query parameters that are unknown, repeated, out of range or of a wrong type [H243, H270]', async (t) => {
    const service = await startService(t);
    await createPacket(service);
    const pages = [
      'limit=0',
      'limit=201',
      'limit=-1',
      'limit=abc',
      'limit=',
      'limit=1e3',
      'limit=1e2',
      'limit=0x10',
      'limit=5.5',
      'limit=%205',
      'limit=99999999999999999999',
      'limit=NaN',
      'offset=-1',
      'offset=1e99',
      'offset=9007199254740993',
      'limit=5&limit=5',
      'offset=0&offset=1',
    ];
    const moments = [
      'created_after=yesterday',
      'created_after=',
      'created_before=2026-13-01',
      'created_before=1',
      'created_after=2026-03-01T25:00:00Z',
      'created_after=%2B275760-09-13',
      'created_after=2026-02-31',
      'created_before=2026-04-31T00:00:00Z',
      'created_after=2025-02-29',
    ];
    const list = [
      'status=nope',
      'status=created,',
      'status=,',
      'status=',
      'status=Created',
      'priority=urgent',
      'priority=',
      'hitl_required=1',
      'hitl_required=yes',
      'hitl_required=',
      'view=whole',
      `tags=${Array(21)
        .fill('a')
        .map((tag, index) => tag + index)
        .join(',')}`,
      'cursor=a&offset=1',
    ];
    const odd = [
      'q=x',
      'nope=1',
      'limit[]=1',
      '__proto__=1',
      'constructor=1',
      '%00=1',
      'source_agent=%00',
      'target_agent=a%00b',
      'tags=a,%00',
      'status=a&status=b',
      '%=1',
      'tenant_id=x',
    ];
    const search = ['q=', 'q=%20', 'q=a%00b', 'q=a&q=b', 'q=a&cursor=x', 'q=a&source_agent=b', 'q=a&status=nope', 'q=a&priority=nope'];
    const audit = ['actor=%00', 'action=%00', 'packet_id=%00', 'cursor=x', 'status=created', 'actor=a&actor=b'];
    const cases: Record<string, string[]> = {
      '/packets': [...pages, ...moments, ...list.filter((query) => query !== 'status=created,'), ...odd],
      '/packets/awaiting': [...pages, 'status=created', 'q=x', '%00=1'],
      '/packets/search': [...search, ...pages.map((query) => `q=a&${query}`)],
      '/audit': [...audit, ...pages, ...moments],
    };
    for (const [path, queries] of Object.entries(cases)) {
      for (const query of queries) {
        const answer = await service.call('GET', `${path}?${query}`);
        const last = decodeURIComponent(query.replace('%=', '%25=')).split('&').at(-1)!.split('=')[0]!;
        assertRefused(answer, 400, query === 'cursor=a&offset=1' ? 'cursor' : last);
      }
    }
    assertRefused(await service.call('GET', '/packets/search'), 400, 'q');
    assertRefused(await service.call('DELETE', `/packets/${unknownId}?hard=maybe`), 400, 'hard');
    for (const harmless of [
      'source_agent=%ff',
      'source_agent=%ED%A0%80',
      'source_agent=%zz',
      '&&&',
      'status=created,claimed,',
      `source_agent=${'x'.repeat(10_000)}`,
      "tags='%20or%201=1--",
    ]) {
      assert.equal((await service.call('GET', `/packets?${harmless}`)).status, 200, harmless);
    }
  });

  test('404 and 405: paths and methods that do not exist, in the specified body', async (t) => {
    const service = await startService(t);
    for (const path of ['/nope', '//nope', '/packets/', '/packets/x/y/z', '//api/v2/packets', '//..%2f..%2fetc%2fpasswd', '/PACKETS']) {
      assertRefused(await service.call('GET', path), 404, null);
    }
    for (const method of ['PUT', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE']) {
      const answer = await service.call(method, '/packets');
      assertRefused(answer, 405, null);
      assert.deepEqual(String(answer.headers.allow).split(', ').sort(), ['GET', 'HEAD', 'POST']);
    }
    assertRefused(await service.call('GET', `/packets/${unknownId}/claim`), 405, null);
  });

  test('400: idempotency keys and agent ids that are empty or too long [H260]', async (t) => {
    const service = await startService(t);
    const before = await footprint(service);
    for (const name of ['Idempotency-Key', 'X-Agent-Id']) {
      for (const value of ['', ' ', 'x'.repeat(256)]) {
        assertRefused(await service.call('POST', '/packets', { body: packetRequest(), headers: { [name]: value } }), 400, name);
      }
    }
    assert.deepEqual(await footprint(service), before);
    const odd = { 'Idempotency-Key': '\u00ff'.repeat(255), 'X-Agent-Id': "\u00e9'--" };
    assert.equal((await service.call('POST', '/packets', { body: packetRequest(), headers: odd })).status, 201);
  });

  test('over a socket: oversized, endless, truncated and malformed requests end in an answer or a closed connection [H233, H254]', async (t) => {
    const service = await startService(t, { settings: small });
    const address = await service.handoff.start();
    const before = await footprint(service);
    const post = (headers: string, body = '') =>
      `POST /api/v1/packets HTTP/1.1\r\nHost: x\r\nX-API-Key: ${adminKey}\r\nContent-Type: application/json\r\n${headers}\r\n\r\n${body}`;
    const valid = JSON.stringify(packetRequest());
    const chunk = `1000\r\n${' '.repeat(4096)}\r\n`;

    // Refused before the body has arrived.
    assertRefused(await sendRaw(address, post('Content-Length: 52428800'), { once: true }), 413, null);
    assertRefused(await sendRaw(address, post('Transfer-Encoding: chunked', `${chunk}1\r\n `), { once: true }), 413, null);
    const endless = await sendRaw(address, post('Transfer-Encoding: chunked'), { flood: chunk });
    assert.ok([0, 413].includes(endless.status), endless.text);
    const unasked = await sendRaw(address, post('Content-Length: 1073741824'), { flood: 'x'.repeat(65_536) });
    assert.ok([0, 413].includes(unasked.status), unasked.text);

    const cut = [
      post(`Content-Length: ${valid.length}`, valid.slice(0, -1)),
      post('Transfer-Encoding: chunked', `${valid.length.toString(16)}\r\n${valid}\r\n`),
      post('Transfer-Encoding: chunked', `ffff\r\n${valid}`),
    ];
    for (const text of cut) assertRefused(await sendRaw(address, text, { end: true }), 400, null);

    const malformed = [
      post(`Content-Length: ${valid.length}\r\nTransfer-Encoding: chunked`, valid),
      post('Content-Length: -1'),
      post(`Content-Length: ${valid.length}\r\nContent-Length: 1`, valid),
      post('Transfer-Encoding: chunked', `zz\r\n${valid}\r\n0\r\n\r\n`),
      post('Bad Header: x'),
      'GET / HTTP/9.9\r\n\r\n',
      'nonsense\r\n\r\n',
      '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc',
    ];
    for (const text of malformed) assertRefused(await sendRaw(address, text, { end: true }), 400, null);

    assert.deepEqual(await footprint(service), before);
    const good = await sendRaw(address, post(`Connection: close\r\nContent-Length: ${valid.length}`, valid));
    assert.equal(good.status, 201);
  });

  test('400: HTTP/1.1 without a Host; an older client needs none', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    const refused = await sendRaw(address, 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n');
    assert.equal(refused.status, 400);
    assert.deepEqual([refused.body.code, refused.body.status_code], ['VALIDATION_ERROR', 400]);
    assert.equal((await sendRaw(address, 'GET /health HTTP/1.0\r\n\r\n')).status, 200);
  });

  test('slow senders are cut off: 15 s for headers, 60 s for a request, answered 408 [H254]', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    const { server } = service.handoff.app;
    assert.equal(server.headersTimeout, 15_000);
    assert.equal(server.requestTimeout, 60_000);
    // Triggers what Node does after either timeout, without waiting.
    server.once('connection', (socket) => {
      server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
    });
    const late = await sendRaw(address, 'POST /api/v1/packets HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    assert.equal(late.status, 408);
    assert.deepEqual([late.body.status_code, typeof late.body.code, late.body.field], [408, 'string', null]);
  });
});

/** Sends the whole body before it reads the answer, as many clients do. Resolves with the status. */
function sendWhole(url: string, agent: Agent, headers: Record<string, string | number>, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const sending = request(url, { method: 'POST', agent, headers: { 'x-api-key': adminKey, ...headers } });
    const sent = new Promise<void>((done) => void sending.on('finish', done));
    sending.on('error', reject);
    sending.on('response', (answer) => {
      answer.resume();
      answer.on('end', () => void sent.then(() => resolve(answer.statusCode ?? 0)));
    });
    sending.end(body);
  });
}
