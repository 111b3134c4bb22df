import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import fc from 'fast-check';

import { isOption } from '../../../src/handoff/model/options.ts';
import { readJson } from '../../../src/kit/json.ts';
import { isEquated, type ModelPacket, PacketModel, tokensOf, vocabulary } from '../../support/packet-model.ts';
import { runs } from '../../support/runs.ts';
import { newTenant, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { endOfFile } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const hostile = fc.constantFrom(
  '\u0000',
  '\ud800',
  '\udfff\ud800',
  '\u2028',
  '\ufeff',
  '\uffff',
  'é',
  'e\u0301',
  '漢字',
  '👩‍👩‍👧',
  '"',
  '\\',
  '\\u0000',
  '\r\n',
  "'; drop table packets; --",
  '{"a":1}',
  '__proto__',
  'null',
  '0',
  '-1',
  '1e400',
  '%00',
  '%',
  '<script>',
  'NaN',
  '\u202e',
  ' ',
);
const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.string({ unit: 'grapheme' }),
  hostile,
  fc.tuple(hostile, fc.string()).map((parts) => parts.join('')),
);
const nonEmpty = anyText.filter((text) => text !== '');
const name = nonEmpty.map((text) => text.replaceAll('\u0000', '')).filter((text) => text !== '');
const json = fc
  .jsonValue({ maxDepth: 4, stringUnit: 'binary' })
  .filter((value) => !/"(__proto__|constructor|prototype)":/.test(JSON.stringify(value)));
const moment = fc.date({ noInvalidDate: true, min: new Date('1970-01-01'), max: new Date('2100-01-01') }).map((date) => date.toISOString());
const priority = fc.constantFrom('low', 'normal', 'high', 'critical');

/** A record with optional fields and unknown ones, which are kept. */
function open(
  required: Record<string, fc.Arbitrary<unknown>>,
  optional: Record<string, fc.Arbitrary<unknown>> = {},
): fc.Arbitrary<Record<string, unknown>> {
  const known = fc.record({ ...required, ...optional }, { requiredKeys: Object.keys(required) });
  const further = fc.dictionary(
    anyText.map((text) => `x ${text}`),
    json,
    { maxKeys: 2 },
  );
  return fc.tuple(known, further).map(([fields, more]) => ({ ...fields, ...more }));
}
const few = (item: fc.Arbitrary<unknown>) => fc.array(item, { maxLength: 3 });
const fewById = (item: fc.Arbitrary<Record<string, unknown>>) => fc.uniqueArray(item, { maxLength: 3, selector: ({ id }) => id });

/** Generates any valid create request within the size limits. */
const createRequest = fc.record(
  {
    metadata: open(
      {
        source_agent: open({ id: name, name, framework: name }),
        target_agent: open({ id: name, name }, { framework: name }),
      },
      { priority, tags: few(name) },
    ),
    context: open(
      { summary: nonEmpty },
      {
        conversation_state: few(open({ role: anyText, content: anyText }, { timestamp: moment })),
        artifacts: few(open({ key: name, value: json }, { content_type: anyText })),
        custom: fc.dictionary(
          anyText.filter((text) => !/^(__proto__|constructor|prototype)$/.test(text)),
          json,
          { maxKeys: 3 },
        ),
      },
    ),
    decisions: fewById(open({ id: name, decision: nonEmpty, rationale: anyText }, { alternatives: few(json), decided_by: anyText })),
    actions: open(
      {},
      {
        pending: fewById(open({ id: name, description: nonEmpty, assignee: anyText }, { priority, depends_on: few(anyText) })),
        completed: fewById(open({ id: name, description: nonEmpty, result: anyText }, { completed_by: anyText })),
        failed: fewById(open({ id: name, description: nonEmpty, error: anyText })),
      },
    ),
    dependencies: fewById(open({ id: name, type: anyText, description: nonEmpty }, { status: anyText, source: anyText })),
    hitl: open(
      { required: fc.boolean(), reason: anyText, question: nonEmpty },
      {
        options: few(json.filter(isOption)),
        timeout_seconds: fc.integer({ min: 1, max: 3_153_600_000 }),
        on_timeout: fc.constantFrom('keep', 'fail', 'expire'),
      },
    ),
  },
  { requiredKeys: ['metadata', 'context'] },
);

type Loose = Record<string, unknown>;
const object = (value: unknown) => value as Record<string, Loose>;

/** The packet that the service must create for a request. */
function expectedContent(request: Loose, at: string): Loose {
  const { metadata, context, actions = {} } = object(request);
  const { hitl } = request as { hitl?: Loose };
  const unanswered = {
    response: null,
    responded_by: null,
    responded_at: null,
    notes: null,
    requested_at: null,
    expires_at: null,
    asked_by: null,
    question_id: null,
  };
  return readJson(
    JSON.stringify({
      metadata: { priority: 'normal', tags: [], ...metadata, created_at: at },
      context: { conversation_state: [], artifacts: [], custom: {}, ...context },
      decisions: request.decisions ?? [],
      actions: { pending: [], completed: [], failed: [], ...actions },
      dependencies: request.dependencies ?? [],
      hitl: hitl === undefined ? null : { ...hitl, ...unanswered },
    }),
  ) as Loose;
}

/** The paths of optional fields of a create request, where null counts as left out. */
const optionalPaths = [
  'parent_packet_id',
  'decisions',
  'actions',
  'dependencies',
  'hitl',
  'metadata.priority',
  'metadata.tags',
  'metadata.target_agent.framework',
  'context.conversation_state',
  'context.artifacts',
  'context.custom',
  'actions.pending',
  'actions.failed',
  'hitl.options',
  'hitl.timeout_seconds',
  'hitl.on_timeout',
];

function withNulls(request: Loose, paths: readonly string[]): Loose {
  const copy = structuredClone(request);
  for (const path of paths) {
    const keys = path.split('.');
    const last = keys.pop()!;
    const inner = keys.reduce<Loose | undefined>((node, key) => node?.[key] as Loose | undefined, copy);
    if (inner !== undefined && inner !== null && !(last in inner)) inner[last] = null;
  }
  return copy;
}

function assertAnswer({ status, body, text }: TestAnswer): void {
  assert.ok(status < 500, `${status} ${text.slice(0, 500)}`);
  if (status < 400) return;
  assert.equal(body.status_code, status);
  assert.equal(typeof body.detail, 'string');
  assert.equal(typeof body.code, 'string');
  assert.ok(body.field === null || typeof body.field === 'string');
}

/** How many cases each test has on a store: enough for the differences between them on PostgreSQL. */
const extents = {
  'SQLite in memory': { each: runs(60), models: runs(20), commands: 60 },
  PostgreSQL: { each: runs(50), models: runs(6), commands: 50 },
};

for (const store of stores.filter(({ name }) => name in extents)) {
  const { each, models, commands } = extents[store.name as keyof typeof extents];

  describe(`Any input on ${store.name}`, () => {
    let service: TestService;
    before(async () => {
      service = await startService(endOfFile, { store });
    });

    test('a create request comes back as sent, with the documented defaults, from POST, GET, list and batch', async () => {
      await fc.assert(
        fc.asyncProperty(createRequest, fc.subarray(optionalPaths), async (request, nulls) => {
          const sent = withNulls(request, nulls);
          const created = await service.call('POST', '/packets', { body: sent });
          assert.equal(created.status, 201, created.text);
          const { metadata, context, decisions, actions, dependencies, hitl, id, status, revision } = readJson(created.text) as Loose;
          assert.deepEqual(
            { metadata, context, decisions, actions, dependencies, hitl },
            expectedContent(request, service.clock.read().toISOString()),
          );
          assert.deepEqual([status, revision], ['created', 1]);
          assert.equal((await service.call('GET', `/packets/${id}`)).text, created.text);
          const list = await service.call('GET', '/packets?limit=1&view=full');
          assert.ok(list.text.startsWith(`{"packets":[${created.text}]`));
          const batch = await service.call('POST', '/packets/batch', { body: { packets: [sent] } });
          assert.equal(batch.status, 201);
          const [made] = (readJson(batch.text) as { created: Loose[] }).created;
          assert.deepEqual(made!.context, context);
          service.clock.turn(1);
        }),
        { numRuns: each },
      );
      // Indexing does not fail either.
      const answer = await service.call('GET', '/packets/search?q=packets');
      assert.equal(answer.status, 200);
      assert.equal(await service.handoff.runOnce.index(), 100);
    });

    test('a create request with any value anywhere is created or refused with 400, nothing else', async () => {
      const { id } = (await service.call('POST', '/packets', { body: fc.sample(createRequest, { numRuns: 1, seed: 1 })[0] })).body;
      await fc.assert(
        fc.asyncProperty(
          createRequest,
          fc.nat(),
          json,
          fc.constantFrom('/packets', `/packets/${id}`, `/packets/${id}/chain`),
          async (request, place, value, path) => {
            const places: [Loose, string][] = [];
            const visit = (node: unknown) => {
              if (typeof node !== 'object' || node === null) return;
              for (const key of Object.keys(node)) {
                places.push([node as Loose, key]);
                visit((node as Loose)[key]);
              }
            };
            const body = structuredClone(request) as Loose;
            visit(body);
            const [inner, key] = places[place % places.length]!;
            inner[key] = value;
            const { total } = (await service.call('GET', '/packets?limit=1')).body;
            const answer = await service.call(path.endsWith(id) ? 'PATCH' : 'POST', path, { body });
            assertAnswer(answer);
            assert.ok([200, 201, 400].includes(answer.status), answer.text);
            const written = answer.status === 201 ? 1 : 0;
            assert.equal((await service.call('GET', '/packets?limit=1')).body.total, total + written);
          },
        ),
        { numRuns: each },
      );
    });

    test('invalid bodies, bytes, paths and queries never cause a 5xx', async () => {
      const { id } = (await service.call('POST', '/packets', { body: fc.sample(createRequest, { numRuns: 1, seed: 2 })[0] })).body;
      const target = fc.constantFrom(
        ...[
          'POST /packets',
          'POST /packets/batch',
          'POST /packets/batch/claim',
          'POST /packets/batch/complete',
          'POST /keys',
          'POST /tenants',
        ],
        ...[`PATCH /packets/${id}`, `POST /packets/${id}/claim`, `POST /packets/${id}/respond`, `POST /packets/${id}/chain`],
      );
      const names = fc.constantFrom(
        'agent_id',
        'response',
        'responded_by',
        'packets',
        'packet_ids',
        'name',
        'tier',
        'status',
        'metadata',
        'context',
        'hitl',
        'decisions',
        'actions',
        'max_api_keys',
        'notes',
      );
      const garbage = fc.oneof(
        json.map((value) => JSON.stringify(value)),
        fc.dictionary(names, fc.oneof(json, fc.array(anyText), hostile)).map((value) => JSON.stringify(value)),
        anyText,
        fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      );
      await fc.assert(
        fc.asyncProperty(target, garbage, async (line, raw) => {
          const [method, path] = line.split(' ') as [string, string];
          assertAnswer(await service.call(method, path, { raw }));
        }),
        { numRuns: each * 2 },
      );
      const parameter = fc.constantFrom(
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
        'view',
        'q',
        'actor',
        'action',
        'packet_id',
        'hard',
      );
      const encoded = anyText.map((text) => encodeURIComponent(text.toWellFormed()));
      const value = fc.oneof(
        encoded,
        moment.map(encodeURIComponent),
        fc.integer().map(String),
        fc.constantFrom('created', 'true', 'high', 'full', '%ff', '%zz', '1', '0'),
      );
      const query = fc
        .array(fc.tuple(fc.oneof(parameter, encoded), value), { maxLength: 4 })
        .map((pairs) => pairs.map((pair) => pair.join('=')).join('&'));
      const place = fc.oneof(
        fc.constantFrom('/packets', '/packets/search', '/packets/awaiting', '/audit', '/keys', '/tenants', '//health'),
        encoded.map((text) => `/packets/${text}`),
        encoded.map((text) => `/${text}`),
      );
      await fc.assert(
        fc.asyncProperty(place, query, async (path, search) => assertAnswer(await service.call('GET', `${path}?${search}`))),
        { numRuns: each * 2 },
      );
    });

    test('any search text finds exactly the packets with its words', async () => {
      const { key } = await newTenant(service);
      const someText = anyText.filter((text) => !isEquated(text));
      const texts = fc.sample(
        fc
          .oneof(
            someText,
            fc.array(fc.constantFrom(...vocabulary)).map((words) => words.join(' ')),
          )
          .filter((text) => text !== ''),
        { numRuns: 60, seed: 7 },
      );
      const agent = { id: 'a', name: 'a', framework: 'f' };
      for (const summary of texts) {
        const body = { metadata: { source_agent: agent, target_agent: agent }, context: { summary } };
        assert.equal((await service.call('POST', '/packets', { body, key })).status, 201);
      }
      await fc.assert(
        fc.asyncProperty(
          fc.oneof(
            someText,
            fc.constantFrom(...texts),
            fc.subarray([...vocabulary]).map((words) => words.join(' ')),
          ),
          async (text) => {
            const q = text.toWellFormed();
            const answer = await service.call('GET', `/packets/search?limit=200&q=${encodeURIComponent(q)}`, { key });
            assertAnswer(answer);
            if (answer.status === 400) return assert.ok(q.trim() === '' || q.includes('\u0000'), q);
            assert.equal(answer.body.total, answer.body.packets.length);
            // A text without quotes and spaces is one phrase, whatever else it contains.
            const phrase = tokensOf(q);
            if (/["\s]/.test(q) || phrase.length === 0 || phrase.length > 32) return;
            const has = (summary: string) => ` ${tokensOf(summary).join(' ')} `.includes(` ${phrase.join(' ')} `);
            assert.equal(answer.body.total, texts.filter(has).length, JSON.stringify(q));
          },
        ),
        { numRuns: each },
      );
    });

    test('any sequence of operations leaves the state that a simple model of the specification predicts', async () => {
      await fc.assert(
        fc.asyncProperty(fc.commands(modelCommands, { maxCommands: commands, size: 'max' }), async (sequence) => {
          const model = new PacketModel();
          const tenant = await newTenant(service);
          const admin = await service.call('POST', '/keys', { body: { name: 'admin', admin: true, tenant_id: tenant.id } });
          const call: Real['call'] = (method, path, body) =>
            service.call(method, path, { key: admin.body.key, ...(body === undefined ? {} : { body }) });
          const real: Real = { call, turn: () => service.clock.turn(0.001), now: () => service.clock.read().toISOString(), entries: 0 };
          real.entries = (await call('GET', '/audit?limit=1')).body.total;
          await fc.asyncModelRun(() => ({ model, real }), sequence);
          await compareAll(model, real);
        }),
        { numRuns: models },
      );
    });
  });
}

/** The service under test, as the commands use it. */
interface Real {
  call: (method: string, path: string, body?: unknown) => Promise<TestAnswer>;
  turn(): void;
  now(): string;
  /** Entries of the audit log before the first command. */
  entries: number;
}

type Step = (model: PacketModel, real: Real) => Promise<void>;

/** A command that is possible in any state; the model predicts its result. */
const step = (label: string, run: Step): fc.AsyncCommand<PacketModel, Real> => ({ check: () => true, run, toString: () => label });

const agents = ['ann', 'bob', 'çé'] as const;
const tags = ['red', 'blue', 'ünï', 'x,y'.replace(',', '-')] as const;
const statuses = ['created', 'claimed', 'in_progress', 'awaiting_human', 'completed', 'failed', 'expired'] as const;
const words = fc.array(fc.constantFrom(...vocabulary), { minLength: 1, maxLength: 5 }).map((some) => some.join(' '));
const question = fc.record({ required: fc.boolean(), reason: fc.constant('r'), question: words });
const attributes = fc.record(
  {
    source: fc.constantFrom(...agents),
    target: fc.constantFrom(...agents),
    priority,
    tags: fc.subarray([...tags]),
    summary: words,
    hitl: question,
  },
  { requiredKeys: ['source', 'target', 'summary'] },
);
const content = fc.record(
  { priority, tags: fc.subarray([...tags]), summary: words, decision: words, hitl: question },
  { requiredKeys: [] },
);
const which = fc.nat({ max: 1000 });

/** The id of any packet so far, including removed ones; an unknown id before the first. */
const pick = (model: PacketModel, index: number): string =>
  model.ids[index % Math.max(1, model.ids.length)] ?? '0197b5a6-8c3e-7f01-9a2b-000000000000';

function createBody({
  source,
  target,
  priority: urgency,
  tags: labels,
  summary,
  hitl,
}: {
  source: string;
  target: string;
  priority?: string;
  tags?: string[];
  summary: string;
  hitl?: unknown;
}): unknown {
  return {
    metadata: {
      source_agent: { id: source, name: source, framework: 'f' },
      target_agent: { id: target, name: target },
      ...(urgency === undefined ? {} : { priority: urgency }),
      ...(labels === undefined ? {} : { tags: labels }),
    },
    context: { summary },
    ...(hitl === undefined ? {} : { hitl }),
  };
}

/** Asserts that the status of the answer is the model's, and that a packet in it has the model's state. */
function assertOutcome(answer: TestAnswer, expected: number, packet?: ModelPacket): void {
  assert.equal(answer.status, expected, answer.text);
  if (packet === undefined || expected >= 300) return;
  const { id, status, revision, metadata, context, claimed_by } = answer.body;
  assert.deepEqual(
    {
      id,
      status,
      revision,
      priority: metadata.priority,
      tags: metadata.tags,
      summary: context.summary,
      holder: claimed_by?.agent_id ?? null,
    },
    {
      id: packet.id,
      status: packet.status,
      revision: packet.revision,
      priority: packet.priority,
      tags: packet.tags,
      summary: packet.summary,
      holder: packet.holder,
    },
  );
}

const modelCommands = [
  attributes.map((given) =>
    step(`create ${JSON.stringify(given)}`, async (model, real) => {
      real.turn();
      const answer = await real.call('POST', '/packets', createBody(given));
      assertOutcome(answer, 201, model.create(answer.body.id, given, real.now()));
    }),
  ),
  fc.tuple(which, attributes).map(([index, given]) =>
    step(`chain ${index}`, async (model, real) => {
      real.turn();
      const parent = pick(model, index);
      const answer = await real.call('POST', `/packets/${parent}/chain`, createBody(given));
      if (!model.has(parent)) return assertOutcome(answer, 404);
      assertOutcome(answer, 201, model.chain(parent, answer.body.id, given, real.now()));
      assert.equal(answer.body.parent_packet_id, parent);
    }),
  ),
  fc.tuple(which, fc.constantFrom(...agents)).map(([index, agent]) =>
    step(`claim ${index} by ${agent}`, async (model, real) => {
      const id = pick(model, index);
      const expected = model.claim(id, agent);
      const answer = await real.call('POST', `/packets/${id}/claim`, { agent_id: agent });
      assertOutcome(answer, expected, model.get(id));
      if (expected === 409) assert.equal(answer.body.claimed_by?.agent_id ?? null, model.get(id)!.holder);
    }),
  ),
  fc.tuple(which, fc.option(fc.constantFrom(...statuses), { nil: undefined }), content).map(([index, status, changes]) =>
    step(`patch ${index} ${status} ${JSON.stringify(changes)}`, async (model, real) => {
      const id = pick(model, index);
      const { priority: urgency, tags: labels, summary, decision, hitl } = changes;
      const decisionId = `d${model.get(id)?.revision ?? 0}`;
      const metadata = { ...(urgency === undefined ? {} : { priority: urgency }), ...(labels === undefined ? {} : { tags: labels }) };
      const body = {
        ...(status === undefined ? {} : { status }),
        ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
        ...(summary === undefined ? {} : { context: { summary } }),
        ...(decision === undefined ? {} : { decisions: [{ id: decisionId, decision, rationale: 'because' }] }),
        ...(hitl === undefined ? {} : { hitl }),
      };
      assertOutcome(await real.call('PATCH', `/packets/${id}`, body), model.patch(id, status, changes), model.get(id));
    }),
  ),
  fc.tuple(which, words).map(([index, response]) =>
    step(`respond ${index}`, async (model, real) => {
      const id = pick(model, index);
      const expected = model.respond(id);
      const answer = await real.call('POST', `/packets/${id}/respond`, { response, responded_by: 'dana' });
      assertOutcome(answer, expected, model.get(id));
      if (expected === 200) assert.equal(answer.body.hitl.response, response);
    }),
  ),
  fc.tuple(which, fc.boolean()).map(([index, hard]) =>
    step(`delete ${index} ${hard ? 'for good' : 'softly'}`, async (model, real) => {
      const id = pick(model, index);
      const expected = hard ? model.remove(id) : model.expire(id);
      assertOutcome(await real.call('DELETE', `/packets/${id}${hard ? '?hard=true' : ''}`), expected);
    }),
  ),
  fc.tuple(fc.array(which, { minLength: 1, maxLength: 6 }), fc.boolean()).map(([indexes, claims]) =>
    step(`batch ${claims ? 'claim' : 'complete'} ${indexes}`, async (model, real) => {
      const ids = indexes.map((index) => pick(model, index));
      const done = ids.filter((id) => (claims ? model.claim(id, 'ann') : model.complete(id)) === 200);
      const answer = claims
        ? await real.call('POST', '/packets/batch/claim', { packet_ids: ids, agent_id: 'ann' })
        : await real.call('POST', '/packets/batch/complete', { packet_ids: ids });
      assert.equal(answer.status, 200, answer.text);
      assert.deepEqual(
        answer.body[claims ? 'claimed' : 'completed'].map(({ id }: { id: string }) => id),
        done,
      );
      assert.equal(answer.body.errors.length, ids.length - done.length);
    }),
  ),
  fc
    .tuple(
      fc.record(
        {
          statuses: fc.subarray([...statuses], { minLength: 1 }),
          source: fc.constantFrom(...agents),
          target: fc.constantFrom(...agents),
          tags: fc.subarray([...tags], { minLength: 1 }),
          priority,
          hitl: fc.boolean(),
          after: which,
          before: which,
        },
        { requiredKeys: [] },
      ),
      fc.integer({ min: 1, max: 7 }),
      fc.nat({ max: 12 }),
      fc.boolean(),
    )
    .map(([filter, limit, offset, byCursor]) =>
      step(`list ${JSON.stringify(filter)} limit ${limit} ${byCursor ? 'by cursor' : `offset ${offset}`}`, async (model, real) => {
        const momentOf = (index: number | undefined) =>
          index === undefined ? undefined : (model.get(pick(model, index))?.created_at ?? real.now());
        const wanted = { ...filter, after: momentOf(filter.after), before: momentOf(filter.before) };
        const expected = model.list(wanted);
        const query = new URLSearchParams({ limit: String(limit) });
        const set = (key: string, value: string | undefined) => value !== undefined && query.set(key, value);
        set('status', filter.statuses?.join(','));
        set('source_agent', filter.source);
        set('target_agent', filter.target);
        set('tags', filter.tags?.join(','));
        set('priority', filter.priority);
        set('hitl_required', filter.hitl === undefined ? undefined : String(filter.hitl));
        set('created_after', wanted.after);
        set('created_before', wanted.before);
        if (!byCursor) query.set('offset', String(offset));
        const seen: string[] = [];
        for (;;) {
          const { status, body, text } = await real.call('GET', `/packets?${query}`);
          assert.equal(status, 200, text);
          assert.equal(body.total, expected.length);
          seen.push(...body.packets.map(({ id }: { id: string }) => id));
          assert.ok(body.packets.length <= limit);
          if (!byCursor) {
            const more = offset + limit < expected.length;
            assert.equal(body.next_cursor !== null, more);
          }
          if (!byCursor || body.next_cursor === null) break;
          query.set('cursor', body.next_cursor);
        }
        assert.deepEqual(seen, byCursor ? expected : expected.slice(offset, offset + limit));
      }),
    ),
  fc
    .tuple(
      fc.array(fc.constantFrom(...vocabulary), { minLength: 1, maxLength: 3 }),
      fc.boolean(),
      fc.option(fc.constantFrom(...statuses), { nil: undefined }),
      fc.option(priority, { nil: undefined }),
    )
    .map(([terms, asPhrase, status, urgency]) =>
      step(`search ${terms} ${asPhrase} ${status} ${urgency}`, async (model, real) => {
        const text = asPhrase ? `"${terms.join(' ')}"` : terms.join(' ');
        const expected = model.search(asPhrase ? [terms.join(' ')] : terms, status, urgency);
        const query = new URLSearchParams({
          q: text,
          limit: '200',
          ...(status === undefined ? {} : { status }),
          ...(urgency === undefined ? {} : { priority: urgency }),
        });
        const answer = await real.call('GET', `/packets/search?${query}`);
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.body.total, expected.length);
        assert.deepEqual(answer.body.packets.map(({ id }: { id: string }) => id).sort(), expected);
      }),
    ),
];

/** Compares everything that the service shows of the tenant with the model. */
async function compareAll(model: PacketModel, { call, entries }: Real): Promise<void> {
  for (const status of [undefined, ...statuses]) {
    const expected = model.list(status === undefined ? {} : { statuses: [status] });
    const { body } = await call('GET', `/packets?limit=200${status === undefined ? '' : `&status=${status}`}`);
    assert.equal(body.total, expected.length);
    assert.deepEqual(
      body.packets.map(({ id }: { id: string }) => id),
      expected,
    );
  }
  const awaiting = await call('GET', '/packets/awaiting?limit=200');
  assert.deepEqual(
    awaiting.body.packets.map(({ id }: { id: string }) => id),
    model.list({ statuses: ['awaiting_human'] }),
  );
  for (const id of model.ids) {
    const history = await call('GET', `/packets/${id}/history`);
    if (!model.has(id)) {
      assert.equal(history.status, 404);
      continue;
    }
    assert.deepEqual(
      history.body.events.map(({ event_type }: { event_type: string }) => event_type),
      model.get(id)!.events,
    );
  }
  assert.equal((await call('GET', '/audit?limit=1')).body.total, entries + model.entries);
}
