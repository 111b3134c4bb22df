import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { historyOf } from '../../support/life.ts';
import { createPacket, newTenant, packetRequest, type TestAnswer } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** A request with only the required fields. */
const least = () => ({
  metadata: { source_agent: { id: 's', name: 'S', framework: 'cli' }, target_agent: { id: 't', name: 'T' } },
  context: { summary: 'So far.' },
});

/** A request with one item in every list, each with only its required fields. */
const oneOfEach = () => ({
  ...least(),
  context: { summary: 'So far.', conversation_state: [{ role: 'user', content: 'Hello' }], artifacts: [{ key: 'k', value: 1 }] },
  decisions: [{ id: 'd1', decision: 'D', rationale: 'R' }],
  actions: {
    pending: [{ id: 'a1', description: 'D', assignee: 'me' }],
    completed: [{ id: 'a2', description: 'D', result: 'R' }],
    failed: [{ id: 'a3', description: 'D', error: 'E' }],
  },
  dependencies: [{ id: 'p1', type: 'api', description: 'D' }],
  hitl: { required: true, reason: 'R', question: 'Q' },
});

/** A request with every optional field as well. */
const everything = () => ({
  metadata: {
    source_agent: { id: 's', name: 'S', framework: 'cli' },
    target_agent: { id: 't', name: 'T', framework: 'langgraph' },
    priority: 'critical',
    tags: ['billing', 'urgent'],
  },
  context: {
    summary: 'So far.',
    conversation_state: [{ role: 'user', content: 'Hello', timestamp: '2026-03-01T09:00:00Z' }],
    artifacts: [{ key: 'k', value: { deep: [1, 2.5, true, null] }, content_type: 'application/json' }],
    custom: { ticket: 4711, nothing: null },
  },
  decisions: [{ id: 'd1', decision: 'D', rationale: 'R', alternatives: ['wait', { or: 'not' }], decided_by: 's' }],
  actions: {
    pending: [{ id: 'a1', description: 'D', assignee: 'me', priority: 'low', depends_on: ['a2'] }],
    completed: [{ id: 'a2', description: 'D', result: 'R', completed_by: 's' }],
    failed: [{ id: 'a3', description: 'D', error: 'E' }],
  },
  dependencies: [{ id: 'p1', type: 'api', description: 'D', status: 'up', source: 'bank' }],
  hitl: { required: true, reason: 'R', question: 'Q', options: ['Yes', 'No'], timeout_seconds: 60, on_timeout: 'fail' },
});

/** The paths of all required fields, including those of list items. */
const requiredPaths = [
  'metadata',
  'metadata.source_agent',
  'metadata.source_agent.id',
  'metadata.source_agent.name',
  'metadata.source_agent.framework',
  'metadata.target_agent',
  'metadata.target_agent.id',
  'metadata.target_agent.name',
  'context',
  'context.summary',
  'context.conversation_state.0.role',
  'context.conversation_state.0.content',
  'context.artifacts.0.key',
  'context.artifacts.0.value',
  'decisions.0.id',
  'decisions.0.decision',
  'decisions.0.rationale',
  'actions.pending.0.id',
  'actions.pending.0.description',
  'actions.pending.0.assignee',
  'actions.completed.0.id',
  'actions.completed.0.description',
  'actions.completed.0.result',
  'actions.failed.0.id',
  'actions.failed.0.description',
  'actions.failed.0.error',
  'dependencies.0.id',
  'dependencies.0.type',
  'dependencies.0.description',
  'hitl.required',
  'hitl.reason',
  'hitl.question',
];

/** The paths of all optional fields in `everything`. */
const optionalPaths = [
  'metadata.target_agent.framework',
  'metadata.priority',
  'metadata.tags',
  'context.conversation_state.0.timestamp',
  'context.conversation_state',
  'context.artifacts.0.content_type',
  'context.artifacts',
  'context.custom',
  'decisions.0.alternatives',
  'decisions.0.decided_by',
  'decisions',
  'actions.pending.0.priority',
  'actions.pending.0.depends_on',
  'actions.pending',
  'actions.completed.0.completed_by',
  'actions.completed',
  'actions.failed',
  'actions',
  'dependencies.0.status',
  'dependencies.0.source',
  'dependencies',
  'hitl.options',
  'hitl.timeout_seconds',
  'hitl.on_timeout',
  'hitl',
];

/** The request with the value at the path; undefined removes the field. */
function withValue(request: object, path: string, value: unknown): object {
  const copy = structuredClone(request);
  const names = path.split('.');
  const last = names.pop()!;
  let node = copy as Record<string, unknown>;
  for (const name of names) node = node[name] as Record<string, unknown>;
  if (value === undefined) delete node[last];
  else node[last] = value;
  return copy;
}

/** A packet without the fields that differ between any two packets. */
// biome-ignore lint/suspicious/noExplicitAny: a test looks into packets of every shape.
const content = ({ id: _id, _links, ...rest }: any) => rest;

function assertRefused({ status, body, text }: TestAnswer, expected: number, field: string | null): void {
  assert.deepEqual([status, body.status_code, body.field], [expected, expected, field], text.slice(0, 300));
}

for (const store of stores) {
  describe(`POST /packets on ${store.name}`, () => {
    test('201: the packet starts as created, with the content that was sent', async () => {
      const service = await shareService(store);
      const answer = await service.call('POST', '/packets', { body: packetRequest() });
      assert.equal(answer.status, 201);
      const { body } = answer;
      assert.equal(body.status, 'created');
      assert.equal(body.revision, 1);
      assert.equal(body.claimed_at, null);
      assert.equal(answer.headers.etag, '"1"');
      assert.deepEqual((await service.call('GET', `/packets/${body.id}`)).body, body);
    });

    test('a minimal request gets every documented default [H7]', async () => {
      const service = await shareService(store);
      const answer = await service.call('POST', '/packets', { body: least() });
      assert.equal(answer.status, 201);
      const { id } = answer.body;
      const at = service.clock.read().toISOString();
      assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
      assert.deepEqual(answer.body, {
        id,
        version: '1.0.0',
        parent_packet_id: null,
        status: 'created',
        revision: 1,
        lease: null,
        metadata: { ...least().metadata, priority: 'normal', tags: [], created_at: at },
        context: { summary: 'So far.', conversation_state: [], artifacts: [], custom: {} },
        decisions: [],
        actions: { pending: [], completed: [], failed: [] },
        dependencies: [],
        hitl: null,
        claimed_by: null,
        claimed_at: null,
        created_at: at,
        updated_at: at,
        _links: { self: `/api/v1/packets/${id}`, claim: `/api/v1/packets/${id}/claim`, history: `/api/v1/packets/${id}/history` },
      });
    });

    test('every field comes back as it was sent [H1]', async () => {
      const service = await shareService(store);
      const answer = await service.call('POST', '/packets', { body: everything() });
      assert.equal(answer.status, 201);
      const sent = everything();
      const { metadata, context, decisions, actions, dependencies, hitl } = answer.body;
      assert.deepEqual(metadata, { ...sent.metadata, created_at: answer.body.created_at });
      assert.deepEqual(
        { context, decisions, actions, dependencies },
        {
          context: sent.context,
          decisions: sent.decisions,
          actions: sent.actions,
          dependencies: sent.dependencies,
        },
      );
      const unanswered = {
        response: null,
        responded_by: null,
        responded_at: null,
        notes: null,
        requested_at: null,
        expires_at: null,
        question_id: null,
        asked_by: null,
      };
      assert.deepEqual(hitl, { ...sent.hitl, ...unanswered });
    });

    test('null is kept in fields that take any JSON [H1]', async () => {
      const service = await shareService(store);
      const body = withValue(withValue(oneOfEach(), 'context.artifacts.0.value', null), 'context.custom', { nothing: null });
      const answer = await service.call('POST', '/packets', { body });
      assert.equal(answer.status, 201);
      assert.equal(answer.body.context.artifacts[0].value, null);
      assert.deepEqual(answer.body.context.custom, { nothing: null });
    });

    test('unknown fields inside nested objects are kept [H3]', async () => {
      const service = await shareService(store);
      const places = [
        'metadata',
        'metadata.source_agent',
        'metadata.target_agent',
        'context',
        'context.conversation_state.0',
        'context.artifacts.0',
        'decisions.0',
        'actions',
        'actions.pending.0',
        'actions.completed.0',
        'actions.failed.0',
        'dependencies.0',
        'hitl',
      ];
      const extra = { list: [1, { x: null }], text: 'kept' };
      const request = places.reduce((body, place) => withValue(body, `${place}.x_extra`, extra), oneOfEach() as object);
      const answer = await service.call('POST', '/packets', { body: request });
      assert.equal(answer.status, 201);
      const { body } = await service.call('GET', `/packets/${answer.body.id}`);
      for (const place of places) {
        const node = place.split('.').reduce((value, name) => value[name], body);
        assert.deepEqual(node.x_extra, extra, place);
      }
    });

    test("a request can't contain the answer to its question [H8]", async () => {
      const service = await shareService(store);
      const hitl = { ...oneOfEach().hitl, response: 'Yes', responded_by: 'me', responded_at: '2026-01-01T00:00:00Z' };
      const answer = await service.call('POST', '/packets', { body: { ...oneOfEach(), hitl } });
      assert.equal(answer.status, 201);
      assert.deepEqual([answer.body.hitl.response, answer.body.hitl.responded_by, answer.body.hitl.responded_at], [null, null, null]);
    });

    test('parent_packet_id links the packet to another, and both histories record it [H37]', async () => {
      const service = await shareService(store);
      const parent = await createPacket(service);
      const answer = await service.call('POST', '/packets', { body: { ...least(), parent_packet_id: parent.id } });
      assert.equal(answer.status, 201);
      assert.equal(answer.body.parent_packet_id, parent.id);
      const chained = (await historyOf(service, parent.id)).at(-1)!;
      assert.deepEqual([chained.event_type, chained.details.child_packet_id], ['chained', answer.body.id]);
      const created = (await historyOf(service, answer.body.id))[0]!;
      assert.deepEqual([created.event_type, created.details.parent_packet_id], ['created', parent.id]);
    });

    test('a duplicate tag is kept as sent, and counts once', async () => {
      const service = await shareService(store);
      const metadata = { ...(packetRequest().metadata as object), tags: ['twice', 'once', 'twice'] };
      const answer = await service.call('POST', '/packets', { body: packetRequest({ metadata }) });
      assert.equal(answer.status, 201, answer.text);
      assert.deepEqual(answer.body.metadata.tags, ['twice', 'once', 'twice']);
      const { packets, total } = (await service.call('GET', '/packets?tags=twice')).body;
      assert.deepEqual([packets.length, total], [1, 1]);
    });

    test('100 concurrent creates make 100 packets, listed newest first without gaps or duplicates', async () => {
      const service = await shareService(store);
      const answers = await Promise.all(Array.from({ length: 100 }, () => service.call('POST', '/packets', { body: least() })));
      for (const { status } of answers) assert.equal(status, 201);
      const { body } = await service.call('GET', '/packets?limit=200');
      assert.equal(body.total, 100);
      const listed: string[] = body.packets.map(({ id }: { id: string }) => id);
      assert.deepEqual(listed, [...new Set(answers.map((answer) => answer.body.id as string))].sort().reverse());
    });

    test('a packet has at most 100 tags, and a name at most 1,024 characters [H6]', async () => {
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

    test('a request body may have 64 KiB, 256 KiB or 1 MiB by tier, but not a byte more [H233]', async () => {
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

    test('any text and number is kept unchanged: NUL, lone surrogates, line separators, both writing directions [H248, H249]', async () => {
      const service = await shareService(store);
      const text = 'a\u0000b \ud800 \udc00x \u2028\u2029 \u202eflip \ufeff \uffff 👩‍👩‍👧 e\u0301 \u001f';
      const request = {
        ...everything(),
        metadata: { ...everything().metadata, tags: ['\ud800', '\u2028', '\uffff', '👩‍👩‍👧'] },
        context: {
          summary: text,
          conversation_state: [{ role: 'user', content: text }],
          artifacts: [{ key: 'k', value: { [text]: text } }],
          custom: { [text]: text, numbers: [9007199254740992, 1e308, 5e-324, 0.1, 0] },
        },
        decisions: [{ id: 'd1', decision: text, rationale: text, alternatives: [text], decided_by: text }],
        hitl: { ...everything().hitl, question: text, reason: text, options: [text] },
      };
      const created = await service.call('POST', '/packets', { body: request });
      assert.equal(created.status, 201);
      const { id } = created.body;
      const { body } = await service.call('GET', `/packets/${id}`);
      assert.deepEqual(body, created.body);
      assert.equal(body.context.summary, text);
      assert.deepEqual(body.context.custom, request.context.custom);
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

    test('the longest agent ids and tags are stored and found; one character more is 400 [H6]', async () => {
      const service = await shareService(store);
      // Four bytes per character, all different, so that nothing compresses.
      const longest = (salt: number) =>
        String.fromCodePoint(...Array.from({ length: 512 }, (_, index) => 0x20000 + ((index * 7919 + salt * 104729) % 42_000)));
      const request = {
        ...everything(),
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
        assertRefused(await service.call('POST', '/packets', { body: withValue(request, field, `${longest(4)}x`) }), 400, field);
      }
    });
  });
}

// These requests are refused, or their defaults filled in, before the store is used, so one store is enough.
describe('POST /packets', () => {
  const store = stores[0]!;

  test('null for an optional field counts as left out [H1]', async () => {
    const service = await shareService(store);
    for (const path of [...optionalPaths, 'parent_packet_id']) {
      const absent = await service.call('POST', '/packets', { body: withValue(everything(), path, undefined) });
      const nulled = await service.call('POST', '/packets', { body: withValue(everything(), path, null) });
      assert.equal(nulled.status, 201, `${path}: ${nulled.text}`);
      assert.deepEqual(content(nulled.body), content(absent.body), path);
    }
  });

  test('400 for null in a required field, named by its full path [H1]', async () => {
    const service = await shareService(store);
    for (const path of requiredPaths.filter((one) => one !== 'context.artifacts.0.value')) {
      const answer = await service.call('POST', '/packets', { body: withValue(oneOfEach(), path, null) });
      assert.equal(answer.status, 400, path);
      assert.equal(answer.body.field, path);
    }
  });

  test('400 names a missing required field by its full path [H1, H268]', async () => {
    const service = await shareService(store);
    for (const path of requiredPaths) {
      const answer = await service.call('POST', '/packets', { body: withValue(oneOfEach(), path, undefined) });
      assert.equal(answer.status, 400, path);
      assert.deepEqual([answer.body.code, answer.body.field, answer.body.status_code], ['VALIDATION_ERROR', path, 400]);
      assert.equal(answer.body.errors, undefined, 'one fault needs no list');
    }
    assert.equal((await service.call('GET', '/packets')).body.total, 0);
  });

  test('400 for a missing field that is hard to guess shows a valid value', async () => {
    const service = await shareService(store);
    for (const [path, value] of [
      ['metadata.source_agent.framework', 'langgraph'],
      ['hitl.reason', 'Refunds over 50 need approval'],
    ] as const) {
      const refused = await service.call('POST', '/packets', { body: withValue(oneOfEach(), path, undefined) });
      assert.deepEqual([refused.status, refused.body.detail], [400, `${path} is required, for example "${value}".`]);
      assert.equal((await service.call('POST', '/packets', { body: withValue(oneOfEach(), path, value) })).status, 201);
    }
  });

  test('400 lists all faults in errors, each with its path and a sentence [H268]', async () => {
    const service = await shareService(store);
    const body = {
      metadata: { source_agent: { id: '', name: 7 }, priority: 'urgent' },
      context: { conversation_state: [{ role: 'user' }, { content: 'x', timestamp: 'yesterday' }] },
      decisions: 'none',
      hitl: { required: 'yes', reason: '', question: '', timeout_seconds: 0 },
      surprise: true,
    };
    const answer = await service.call('POST', '/packets', { body });
    assert.equal(answer.status, 400);
    const fields = answer.body.errors.map(({ field }: { field: string }) => field);
    assert.deepEqual([...fields].sort(), [
      'context.conversation_state.0.content',
      'context.conversation_state.1.role',
      'context.conversation_state.1.timestamp',
      'context.summary',
      'decisions',
      'hitl.question',
      'hitl.required',
      'hitl.timeout_seconds',
      'metadata.priority',
      'metadata.source_agent.framework',
      'metadata.source_agent.id',
      'metadata.source_agent.name',
      'metadata.target_agent',
      'surprise',
    ]);
    for (const { field, detail } of answer.body.errors) assert.ok(detail.startsWith(field), detail);
    assert.deepEqual([answer.body.field, answer.body.detail], [answer.body.errors[0].field, answer.body.errors[0].detail]);
  });

  test('400 names the field with the wrong form [H1]', async () => {
    const service = await shareService(store);
    const wrong: [path: string, ...values: unknown[]][] = [
      ['metadata.source_agent.id', ''],
      ['metadata.source_agent.name', ''],
      ['metadata.target_agent.id', ''],
      ['metadata.target_agent.name', ''],
      ['metadata.priority', 'HIGH', 'urgent'],
      ['context.summary', ''],
      ['context.conversation_state.0.timestamp', 'yesterday', '2026-02-31T00:00:00Z', '2026-13-01T00:00:00Z'],
      ['decisions.0.id', ''],
      ['decisions.0.decision', ''],
      ['actions.pending.0.id', ''],
      ['actions.pending.0.description', ''],
      ['actions.pending.0.priority', 'urgent'],
      ['actions.completed.0.description', ''],
      ['actions.failed.0.description', ''],
      ['dependencies.0.id', ''],
      ['dependencies.0.description', ''],
      ['hitl.question', ''],
      ['hitl.timeout_seconds', 0, -1, 1.5, 2 ** 53, 1e300, 3_153_600_001],
      ['hitl.on_timeout', 'approve'],
      ['parent_packet_id', '', 'not-a-uuid'],
    ];
    for (const [path, ...values] of wrong) {
      for (const value of values) {
        const answer = await service.call('POST', '/packets', { body: withValue(everything(), path, value) });
        assert.equal(answer.status, 400, `${path} ${JSON.stringify(value)}: ${answer.text}`);
        assert.equal(answer.body.field, path);
      }
    }
  });

  test('roles, types and every text other than an id, a name or a statement may be empty [H1]', async () => {
    const service = await shareService(store);
    const texts = [
      'metadata.source_agent.framework',
      'context.conversation_state.0.role',
      'context.conversation_state.0.content',
      'context.artifacts.0.key',
      'decisions.0.rationale',
      'actions.pending.0.assignee',
      'actions.completed.0.result',
      'actions.failed.0.error',
      'dependencies.0.type',
      'hitl.reason',
    ];
    const answer = await service.call('POST', '/packets', {
      body: texts.reduce((body, path) => withValue(body, path, ''), oneOfEach() as object),
    });
    assert.equal(answer.status, 201, answer.text);
  });

  test("400 with the field: NUL in a name, which a text column can't store [H248]", async () => {
    const service = await shareService(store);
    const names = ['metadata.source_agent.id', 'metadata.source_agent.name', 'metadata.target_agent.id', 'metadata.tags.0'];
    for (const field of [...names, 'decisions.0.id', 'actions.pending.0.id', 'dependencies.0.id']) {
      assertRefused(await service.call('POST', '/packets', { body: withValue(everything(), field, 'a\u0000b') }), 400, field);
    }
    assertRefused(await service.call('POST', '/keys', { body: { name: '\u0000' } }), 400, 'name');
    assertRefused(await service.call('POST', '/tenants', { body: { name: '\u0000' } }), 400, 'name');
    assert.equal((await service.call('GET', '/packets')).body.total, 0);
  });
});
