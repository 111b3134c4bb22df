import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, test } from 'node:test';

import { canonicalJson } from '../../../src/handoff/rules/canonical-json.ts';
import { historyOf, packetIn, question } from '../../support/life.ts';
import { createPacket, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const respond = (service: TestService, id: string, body: object) =>
  service.call('POST', `/packets/${id}/respond`, { body: { responded_by: 'dana', ...body } });
const waiting = async (service: TestService, hitl: object) =>
  (await packetIn(service, 'awaiting_human', { hitl: { ...question, ...hitl } })).id as string;

const schema = {
  type: 'object',
  title: 'Refund',
  properties: {
    amount: { type: 'number', minimum: 0.5, maximum: 100 },
    count: { type: 'integer' },
    name: { type: 'string', minLength: 2, maxLength: 4 },
    plan: { enum: ['basic', 'plus'] },
    agreed: { type: 'boolean' },
    mail: { type: 'string', format: 'email' },
    site: { type: 'string', format: 'uri' },
    day: { type: 'string', format: 'date' },
    at: { type: 'string', format: 'date-time' },
  },
  required: ['amount'],
};

for (const store of stores) {
  describe(`The options of a question on ${store.name}`, () => {
    test('may have a label and a style; with strict_options the response must be the value of one [H171]', async () => {
      const service = await shareService(store);
      const options = ['Approve', { value: 'refuse', label: 'Refuse it', style: 'danger' }, ['b']];
      const id = await waiting(service, { options, strict_options: true });
      for (const response of ['Refuse it', 'approve', '']) {
        const refused = await respond(service, id, { response });
        assert.deepEqual([refused.status, refused.body.field], [400, 'response'], response);
        assert.match(refused.body.detail, /"Approve", "refuse", "\[\\"b\\"\]"/);
      }
      assert.equal((await respond(service, id, { response: '["b"]' })).status, 200);
      assert.deepEqual((await service.call('GET', `/packets/${id}`)).body.hitl.options, options);
    });
  });

  describe(`The digest of a question on ${store.name}`, () => {
    test('is the SHA-256 of the canonical JSON of what a person is shown, from the moment it is asked [H172]', async () => {
      const service = await shareService(store);
      const forged = { ...question, options: ['Ja', 'Nein'], digest: 'f'.repeat(64), data: { forged: true } };
      const packet = await createPacket(service, { hitl: forged });
      assert.deepEqual([packet.hitl.digest, packet.hitl.data], [undefined, undefined]);
      const { status, body } = await service.call('PATCH', `/packets/${packet.id}`, {
        body: { status: 'awaiting_human', hitl: { digest: null, data: null } },
      });
      assert.equal(status, 200);
      const shown = {
        decisions: body.decisions,
        options: ['Ja', 'Nein'],
        pending: body.actions.pending,
        question: question.question,
        reason: question.reason,
        schema: null,
        summary: body.context.summary,
      };
      assert.equal(body.hitl.digest, hash('sha256', canonicalJson(shown)));
      assert.equal(body.hitl.data, undefined);
      const listed = await service.call('GET', '/packets/awaiting');
      assert.equal(listed.body.packets[0].hitl.digest, body.hitl.digest);
    });

    test('an answer by the address of the console is marked so in the history, and no header marks one [H212]', async () => {
      const service = await shareService(store);
      for (const [prefix, via] of [
        ['//console/api/v1', 'console'],
        ['', 'api'],
      ] as const) {
        const id = await waiting(service, {});
        const body = { response: 'Yes', responded_by: 'dana' };
        const answer = await service.call('POST', `${prefix}/packets/${id}/respond`, { body, headers: { 'x-answered-via': 'console' } });
        assert.equal(answer.status, 200);
        assert.equal((await historyOf(service, id)).at(-1)!.details.via, via);
      }
    });

    test('of another state is 409 STALE with the current question; the right one is kept in the history [H172]', async () => {
      const service = await shareService(store);
      const id = await waiting(service, {});
      const { digest } = (await service.call('GET', `/packets/${id}`)).body.hitl;
      const changed = await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'Another order.' } } });
      assert.notEqual(changed.body.hitl.digest, digest);
      const stale = await respond(service, id, { response: 'Yes', digest });
      assert.deepEqual([stale.status, stale.body.code], [409, 'STALE']);
      assert.deepEqual(stale.body.hitl, changed.body.hitl);
      for (const wrong of [{}, { data: { none: true } }])
        assert.equal((await respond(service, id, { ...wrong, digest })).body.code, 'STALE');
      assert.equal((await respond(service, id, { digest: changed.body.hitl.digest })).body.field, 'response');
      assert.equal((await service.call('GET', `/packets/${id}`)).body.revision, changed.body.revision);
      // What a person is not shown does not matter.
      await service.call('PATCH', `/packets/${id}`, {
        body: { metadata: { tags: ['x'] }, dependencies: [{ id: 'd', type: 't', description: 'D' }] },
      });
      const right = await respond(service, id, { response: 'Yes', digest: changed.body.hitl.digest });
      assert.equal(right.status, 200, right.text);
      const event = (await historyOf(service, id)).at(-1)!;
      const { question_id } = changed.body.hitl;
      assert.deepEqual(event.details, {
        response: 'Yes',
        question_id,
        question: question.question,
        digest: changed.body.hitl.digest,
        via: 'api',
        answered_by: right.body.hitl.answered_by,
      });
      const malformed = await respond(service, id, { response: 'Yes', digest: 'x' });
      assert.deepEqual([malformed.status, malformed.body.field], [400, 'digest']);
    });
  });

  describe(`The schema of a question on ${store.name}`, () => {
    test('makes data required, which must satisfy it; 400 names the field [H173]', async () => {
      const service = await shareService(store);
      const id = await waiting(service, { schema });
      for (const [data, field] of [
        [undefined, 'data'],
        [{}, 'data.amount'],
        [{ amount: '5' }, 'data.amount'],
        [{ amount: 0.4 }, 'data.amount'],
        [{ amount: 101 }, 'data.amount'],
        [{ amount: 1, count: 1.5 }, 'data.count'],
        [{ amount: 1, name: 'x' }, 'data.name'],
        [{ amount: 1, name: 'xxxxx' }, 'data.name'],
        [{ amount: 1, plan: 'gold' }, 'data.plan'],
        [{ amount: 1, agreed: 'true' }, 'data.agreed'],
        [{ amount: 1, mail: 'dana' }, 'data.mail'],
        [{ amount: 1, site: 'example' }, 'data.site'],
        [{ amount: 1, day: '2026-02-30' }, 'data.day'],
        [{ amount: 1, at: '2026-02-28' }, 'data.at'],
        [{ amount: 1, at: '2026-02-30T10:00:00Z' }, 'data.at'],
        [{ amount: 1, other: 1 }, 'data.other'],
        [JSON.parse('{"amount":1,"__proto__":{}}'), 'data.__proto__'],
        [{ amount: 1, site: `https://x.example/${'x'.repeat(16_384)}` }, 'data'],
      ] as const) {
        const refused = await respond(service, id, { response: 'Yes', ...(data === undefined ? {} : { data }) });
        assert.deepEqual([refused.status, refused.body.field], [400, field], JSON.stringify(data)?.slice(0, 80));
      }
      const data = {
        amount: 5,
        count: 2,
        name: '😀😀',
        plan: 'plus',
        agreed: true,
        mail: 'a@b',
        site: 'https://x.example',
        day: '2026-02-28',
        at: '2026-02-28T10:00:00Z',
      };
      const answered = await respond(service, id, { data });
      assert.equal(answered.status, 200);
      assert.deepEqual([answered.body.hitl.data, answered.body.hitl.response], [data, JSON.stringify(data)]);
      const event = (await historyOf(service, id)).at(-1)!;
      assert.deepEqual(event.details.data, data);
      // The next question has no answer yet.
      const again = await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl: { question: 'And now?' } } });
      assert.deepEqual([again.body.hitl.data, again.body.hitl.response], [undefined, null]);
    });
  });
}

for (const store of stores) {
  describe(`A form with what elicitation of MCP has, on ${store.name}`, () => {
    // One field for each kind of schema of MCP 2026-07-28, with all that it may have.
    const form = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        text: { type: 'string', title: 'T', description: 'D', minLength: 1, maxLength: 9, format: 'email', default: 'a@b' },
        amount: { type: 'number', title: 'T', description: 'D', minimum: 0, maximum: 9.5, default: 1.5 },
        count: { type: 'integer', minimum: 0, maximum: 9, default: 2 },
        sure: { type: 'boolean', title: 'T', description: 'D', default: false },
        one: { type: 'string', enum: ['a', 'b'], default: 'b' },
        titled: { type: 'string', oneOf: [{ const: 'a', title: 'A' }], default: 'a' },
        named: { type: 'string', enum: ['a', 'b'], enumNames: ['A', 'B'], default: 'a' },
        several: { type: 'array', minItems: 1, maxItems: 2, items: { type: 'string', enum: ['a', 'b', 'c'] }, default: ['a'] },
        many: {
          type: 'array',
          items: {
            anyOf: [
              { const: 'a', title: 'A' },
              { const: 'b', title: 'B' },
            ],
          },
          default: ['a', 'b'],
        },
        level: { type: 'integer', enum: [1, 2, 3] },
        untyped: { enum: [10, 20] },
      },
      required: ['text', 'level'],
    };

    test('is asked, takes what each field allows, and fills in defaults [H462]', async () => {
      const service = await shareService(store);
      const id = await waiting(service, { schema: form });
      for (const [data, field] of [
        [{}, 'data.level'],
        [{ level: 4 }, 'data.level'],
        [{ level: '1' }, 'data.level'],
        [{ level: 1, untyped: 11 }, 'data.untyped'],
        [{ level: 1, titled: 'A' }, 'data.titled'],
        [{ level: 1, several: [] }, 'data.several'],
        [{ level: 1, several: ['a', 'b', 'c'] }, 'data.several'],
        [{ level: 1, several: ['a', 'a'] }, 'data.several'],
        [{ level: 1, many: ['A'] }, 'data.many'],
        [{ level: 1, many: 'a' }, 'data.many'],
        [{ level: 1, count: 9007199254740992 }, 'data.count'],
      ] as const) {
        const refused = await respond(service, id, { data });
        assert.deepEqual([refused.status, refused.body.field], [400, field], JSON.stringify(data));
      }
      const answered = await respond(service, id, { data: { level: 3, untyped: 20, many: ['b'], sure: true } });
      const defaults = { text: 'a@b', amount: 1.5, count: 2, one: 'b', titled: 'a', named: 'a', several: ['a'] };
      assert.deepEqual(answered.body.hitl?.data, { ...defaults, level: 3, untyped: 20, many: ['b'], sure: true }, answered.text);
    });

    test('is declined by an option beside it, and strict_options holds beside it [H462]', async () => {
      const service = await shareService(store);
      const options = ['Decline', { value: 'later', label: 'Ask me later' }];
      const asked = { schema: form, options, strict_options: true };
      const id = await waiting(service, asked);
      const refused = await respond(service, id, { response: 'Perhaps' });
      assert.deepEqual([refused.status, refused.body.field], [400, 'data']);
      assert.match(refused.body.detail, /Without it, response must be one of "Decline", "later"\.$/);
      const other = await respond(service, id, { response: 'Perhaps', data: { level: 1 } });
      assert.deepEqual([other.status, other.body.field], [400, 'response']);
      const declined = await respond(service, id, { response: 'later' });
      assert.deepEqual([declined.status, declined.body.hitl?.response, declined.body.hitl?.data], [200, 'later', undefined], declined.text);
      const filled = await respond(service, await waiting(service, asked), { data: { level: 1 } });
      assert.equal(filled.body.hitl?.data.level, 1, filled.text);
    });
  });
}

// The form of a question does not depend on the store.
describe('A question', () => {
  const store = stores[0]!;

  test('is refused if an option is an object of another form than {value, label?, style?}', async () => {
    const service = await shareService(store);
    const { id } = await packetIn(service, 'claimed', {});
    for (const option of [{ plan: 'b' }, { value: 1 }, { value: 'a', label: 3 }, { value: 'a', style: 'loud' }]) {
      const hitl = { ...question, options: ['Yes', option] };
      const patched = await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } });
      assert.deepEqual([patched.status, patched.body.field], [400, 'hitl.options.1'], patched.text);
      await assert.rejects(createPacket(service, { hitl }), /hitl.options.1/);
    }
  });

  test('has a schema of a flat object with at most 20 properties, or 400 names what is wrong with it; without a schema data is refused [H173]', async () => {
    const service = await shareService(store);
    const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`p${index}`, { type: 'string' }]));
    for (const [wrong, field] of [
      [{ ...schema, type: 'array' }, 'hitl.schema.type'],
      [{ type: 'object', properties: {} }, 'hitl.schema.properties'],
      [{ type: 'object', properties: many }, 'hitl.schema.properties'],
      [{ type: 'object', properties: { a: { type: 'object' } } }, 'hitl.schema.properties.a.type'],
      [{ type: 'object', properties: { a: { type: 'string', pattern: '(x+)+$' } } }, 'hitl.schema.properties.a.pattern'],
      [{ ...schema, required: ['nothing'] }, 'hitl.schema.required'],
      ...[
        [{ type: 'integer', enum: [1, 'two'] }, 'enum'],
        [{ type: 'integer', enum: [1.5] }, 'enum'],
        [{ type: 'string', oneOf: [{ const: 1, title: 'One' }] }, 'oneOf'],
        [{ enum: ['a'], enumNames: ['A', 'B'] }, 'enumNames'],
        [{ enum: ['a'], oneOf: [{ const: 'a', title: 'A' }] }, 'oneOf'],
        [{ type: 'boolean', enum: ['a'] }, 'enum'],
        [{ type: 'array' }, 'items'],
        [{ type: 'array', enum: ['a'] }, 'items'],
        [{ type: 'string', items: { enum: ['a'] } }, 'items'],
        [{ type: 'string', default: 5 }, 'default'],
        [{ type: 'integer', minimum: 3, default: 2 }, 'default'],
        [{ type: 'array', items: { enum: ['a'] }, default: ['b'] }, 'default'],
        [{ description: 'no type' }, 'type'],
      ].map(([a, keyword]) => [{ type: 'object', properties: { a } }, `hitl.schema.properties.a.${keyword}`] as const),
    ] as const) {
      const hitl = { ...question, schema: wrong };
      const created = await service.call('POST', '/packets', { body: { metadata: {}, context: {}, hitl } });
      assert.equal(created.status, 400);
      const { id } = await createPacket(service);
      const patched = await service.call('PATCH', `/packets/${id}`, { body: { hitl } });
      assert.deepEqual([patched.status, patched.body.field], [400, field], JSON.stringify(wrong));
      if (field.endsWith('.pattern'))
        assert.equal(
          patched.body.detail,
          `${field} is not a field of this request; hitl.schema.properties.a takes type, title, description, default, enum, enumNames, oneOf, items, minItems, maxItems, format, minLength, maxLength, minimum, maximum.`,
        );
    }
    assert.deepEqual((await respond(service, await waiting(service, {}), { response: 'Yes', data: {} })).body.field, 'data');
  });
});
