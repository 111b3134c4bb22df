import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { errorCodes as fallbackCodes } from '../src/fallback/model/errors.ts';
import { apiPrefix, routes } from '../src/handoff/model/api.ts';
import { errorCodes as handoffCodes } from '../src/handoff/model/errors.ts';
import { createExample } from '../src/handoff/model/examples.ts';
import { bodies } from './support/bodies.ts';
import { signIn, signInSettings, startIssuer } from './support/issuer.ts';
import { packetIn } from './support/life.ts';
import {
  type CallOptions,
  createPacket,
  newTenant,
  packetRequest,
  startService,
  type TestAnswer,
  type TestService,
} from './support/service.ts';
import { sendRaw } from './support/socket.ts';

const errorCodes = { ...fallbackCodes, ...handoffCodes };

type Json = Record<string, unknown>;

interface Content {
  schema: Json;
  example?: unknown;
}

interface Operation {
  operationId: string;
  parameters: { name: string; in: string; example?: unknown; schema: Json }[];
  requestBody?: { content: Record<string, Content> };
  responses: Record<string, { headers?: Record<string, Json>; content?: Record<string, Content> }>;
  security?: unknown[];
}

interface Description {
  info: { version: string };
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Json>; headers: Record<string, Json> };
}

const exported = JSON.parse(readFileSync(new URL('../openapi/handoff.json', import.meta.url), 'utf8')) as Description;

/** Every operation with its JSON pointer in the document. */
const operations = Object.entries(exported.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({
    path,
    method: method.toUpperCase(),
    operation,
    pointer: `/paths/${pointerPart(path)}/${method}`,
  })),
);
const operationOf = (id: string) => operations.find(({ operation }) => operation.operationId === id)!;

function pointerPart(part: string): string {
  return encodeURIComponent(part.replaceAll('~', '~0').replaceAll('/', '~1'));
}

/** The schema at a JSON pointer into the document. */
function schemaAt(pointer: string): unknown {
  const parts = pointer.split('/').slice(1);
  return parts.reduce<unknown>(
    (node, part) => (node as Json)[decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')],
    exported,
  );
}

/** A validator of JSON Schema 2020-12 with the document, and a copy of the document in which all objects are closed. */
function createValidator(): (value: unknown, pointer: string, closed?: boolean) => string[] {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, allErrors: true, validateSchema: true });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addVocabulary(['openapi', 'info', 'servers', 'tags', 'security', 'paths', 'components']);
  ajv.addSchema(exported, 'open');
  ajv.addSchema(close(exported) as Json, 'closed');
  const compiled = new Map<string, ValidateFunction>();
  return (value, pointer, closed = false) => {
    const document = closed ? 'closed' : 'open';
    // Most failures have the same schema, which is compiled once.
    const name = document + JSON.stringify(schemaAt(pointer));
    const validate = compiled.get(name) ?? ajv.compile({ $ref: `${document}#${pointer}` });
    compiled.set(name, validate);
    validate(value);
    return (validate.errors ?? []).map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`);
  };
}

/** The schemas with `additionalProperties: false` on every object. */
function close(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(close);
  if (typeof node !== 'object' || node === null) return node;
  const { type, properties } = node as Json;
  const isObject = type === 'object' && typeof properties === 'object';
  const entries = Object.entries(node).map(([key, value]) => [key, close(value)]);
  return { ...Object.fromEntries(entries), ...(isObject ? { additionalProperties: false } : {}) };
}

const errorsIn = createValidator();

describe('the API description', () => {
  for (const prefix of ['', apiPrefix]) {
    test(`at ${prefix}/openapi.json equals the committed export [H275]`, async (t) => {
      const service = await startService(t);
      const answer = await service.call('GET', `/${prefix}/openapi.json`, { key: null });
      assert.equal(answer.status, 200);
      assert.deepEqual(answer.body, exported);
    });
  }

  test('lists the same methods of every path as the Allow header of the service', async (t) => {
    const service = await startService(t);
    for (const [path, methods] of Object.entries(exported.paths)) {
      const answer = await service.call('put' in methods ? 'PATCH' : 'PUT', `/${concrete(path)}`);
      assert.equal(answer.status, 405, path);
      const named = Object.keys(methods).map((method) => method.toUpperCase());
      // The description leaves out HEAD, which is answered like GET.
      const allowed = named.includes('GET') ? [...named, 'HEAD'] : named;
      assert.deepEqual(String(answer.headers.allow).split(', ').sort(), allowed.sort(), path);
    }
  });

  test('says for every operation whether it needs a key', async (t) => {
    const service = await startService(t);
    for (const { method, path, operation } of operations) {
      const isPublic = operation.security?.length === 0;
      const answer = await service.call(method, `/${concrete(path)}`, { key: null });
      assert.equal(answer.status, isPublic ? 200 : 401, `${method} ${path}`);
    }
  });

  test('describes every operation, parameter and answer', () => {
    for (const { operation } of operations) {
      const { summary, description, parameters, responses } = operation as unknown as {
        summary: string;
        description: string;
        parameters: { name: string; description?: string }[];
        responses: Record<string, { description: string }>;
      };
      assert.ok(summary.length > 0 && description.length > summary.length + 1, `${operation.operationId} is described beyond its summary`);
      for (const { name, description: text = '' } of parameters) assert.ok(text.length > 0, `${operation.operationId}: ${name}`);
      for (const [status, { description: text }] of Object.entries(responses))
        assert.ok(text.length > 0, `${operation.operationId}: ${status}`);
    }
  });

  test('has the default of a field only in its description: client generators treat a field with a default as required [H278]', () => {
    const { priority } = (
      exported.components.schemas.CreateRequest as unknown as { properties: { metadata: { properties: { priority: Json } } } }
    ).properties.metadata.properties;
    assert.match(String(priority.description), /Default: normal\.$/);
    const withDefault: string[] = [];
    const visit = (node: unknown, pointer: string): void => {
      if (typeof node !== 'object' || node === null) return;
      for (const [key, value] of Object.entries(node)) {
        // A schema of a caller has a property of that name.
        if (key === 'default' && pointer.includes('/properties/') && !pointer.endsWith('/properties')) withDefault.push(pointer);
        visit(value, `${pointer}/${key}`);
      }
    };
    visit(exported, '');
    assert.deepEqual(withDefault, []);
  });

  test('does not require parameters with a default', () => {
    const names = new Set<string>();
    for (const { operation } of operations) {
      for (const { name, required, schema } of operation.parameters as { name: string; required?: boolean; schema: Json }[]) {
        if (schema.default === undefined) continue;
        assert.equal(required, false, `${operation.operationId}: ${name}`);
        names.add(name);
      }
    }
    for (const name of ['limit', 'offset']) assert.ok(names.has(name), name);
  });
});

/** A path with an unknown id for each parameter. */
function concrete(path: string): string {
  return path.replace(/\{\w+\}/g, '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b');
}

describe('every example', () => {
  test('of a body is valid against its schema', () => {
    let examples = 0;
    for (const { operation, pointer } of operations) {
      const bodies = [
        ...Object.entries(operation.requestBody?.content ?? {}).map(
          ([type, content]) => [`requestBody/content/${pointerPart(type)}`, content] as const,
        ),
        ...Object.entries(operation.responses).flatMap(([status, { content = {} }]) =>
          Object.entries(content).map(([type, body]) => [`responses/${status}/content/${pointerPart(type)}`, body] as const),
        ),
      ];
      for (const [place, { example }] of bodies) {
        assert.notEqual(example, undefined, `${operation.operationId} has an example at ${place}`);
        assert.deepEqual(errorsIn(example, `${pointer}/${place}/schema`), [], `${operation.operationId} at ${place}`);
        examples += 1;
      }
    }
    assert.ok(examples > operations.length);
  });

  test('of an answer has only fields of its schema', () => {
    for (const { operation, pointer } of operations) {
      for (const [status, { content = {} }] of Object.entries(operation.responses)) {
        const body = content['application/json'];
        if (body === undefined) continue;
        const place = `${pointer}/responses/${status}/content/${pointerPart('application/json')}/schema`;
        assert.deepEqual(errorsIn(body.example, place, true), [], `${operation.operationId} ${status}`);
      }
    }
  });

  test('of a parameter is valid against its schema', () => {
    let examples = 0;
    for (const { operation, pointer } of operations) {
      for (const [index, { name, example }] of operation.parameters.entries()) {
        if (example === undefined) continue;
        assert.deepEqual(errorsIn(example, `${pointer}/parameters/${index}/schema`), [], `${operation.operationId}: ${name}`);
        examples += 1;
      }
    }
    assert.ok(examples > 0);
  });

  test('inside a schema is valid against that schema', () => {
    let examples = 0;
    const visit = (node: unknown, pointer: string): void => {
      if (typeof node !== 'object' || node === null) return;
      const { examples: own, type } = node as { examples?: unknown[]; type?: string };
      if (Array.isArray(own) && type !== undefined) {
        for (const example of own) assert.deepEqual(errorsIn(example, pointer), [], pointer);
        examples += own.length;
      }
      for (const [key, value] of Object.entries(node)) if (key !== 'examples') visit(value, `${pointer}/${pointerPart(key)}`);
    };
    visit(exported.components.schemas, '/components/schemas');
    assert.ok(examples > 0);
  });

  test('of a request is accepted by the service', async (t) => {
    const service = await startService(t);
    const packet = await service.call('POST', '/packets', {
      body: operationOf('createPacket').operation.requestBody!.content['application/json']!.example,
    });
    assert.equal(packet.status, 201);
    const ids = { createPacket: '', chainPacket: packet.body.id, patchPacket: packet.body.id, claimPacket: packet.body.id };
    // Ordered so that each request finds the packet in the status that it needs.
    const others = ['batchCreate', 'batchClaim', 'batchComplete', 'chainPacket', 'claimPacket', 'patchPacket', 'createTenant', 'createKey'];
    for (const id of others) {
      const { method, path, operation } = operationOf(id);
      const { example } = operation.requestBody!.content['application/json']!;
      const answer = await service.call(method, `/${path.replace(/\{\w+\}/, ids[id as keyof typeof ids] ?? '')}`, { body: example });
      assert.ok([200, 201].includes(answer.status), `${id}: ${answer.text}`);
    }
  });
});

describe('every described error', () => {
  const failures = operations.flatMap(({ operation }) =>
    Object.entries(operation.responses)
      .filter(([status]) => Number(status) >= 400)
      .map(([status, { content }]) => ({
        name: `${operation.operationId} ${status}`,
        status: Number(status),
        body: content?.['application/json'],
      })),
  );

  test('has the body with detail, code, field and status_code [H268]', () => {
    assert.ok(failures.length > operations.length);
    for (const { name, status, body } of failures) {
      // The answers of other protocols are those of these protocols.
      if (/^(mcp|a2a)/.test(name)) continue;
      for (const required of requiredOf(body!.schema)) {
        for (const field of ['detail', 'code', 'field', 'status_code']) assert.ok(required.includes(field), `${name}: ${field}`);
      }
      const example = body!.example as { status_code: number; code: keyof typeof errorCodes };
      assert.equal(example.status_code, status, name);
      assert.equal(errorCodes[example.code].status, status, name);
    }
  });

  test('a system path answers invalid HTTP with that body as well', async (t) => {
    const service = await startService(t);
    const address = await service.handoff.start();
    for (const path of ['/health', '/ready', '/metrics']) {
      const answer = await sendRaw(address, `GET ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n`);
      assert.equal(answer.status, 400);
      const { operation } = operations.find((one) => one.path === path)!;
      assert.deepEqual(errorsIn(answer.body, responsePointer(operation.operationId, 400), true), []);
    }
  });
});

/** The required fields of each alternative of a schema. */
function requiredOf(schema: Json): string[][] {
  const { $ref, anyOf, required } = schema as { $ref?: string; anyOf?: Json[]; required?: string[] };
  if (anyOf !== undefined) return anyOf.flatMap(requiredOf);
  return $ref === undefined ? [required ?? []] : requiredOf(exported.components.schemas[$ref.split('/').at(-1)!]!);
}

function responsePointer(id: string, status: number): string {
  return `${operationOf(id).pointer}/responses/${status}/content/${pointerPart('application/json')}/schema`;
}

/** Calls operations and validates each answer against the description. */
function createChecker(service: TestService) {
  const seen = new Set<string>();
  return {
    seen,
    /** The answer of an operation, which must have this status, a described body, and no undescribed headers of the service. */
    answer: async (
      id: string,
      status: number,
      {
        id: packetId = '',
        delivery = packetId,
        question = packetId,
        query = '',
        ...options
      }: CallOptions & { id?: string; delivery?: string; question?: string; query?: string } = {},
    ): Promise<TestAnswer> => {
      const { method, path, operation } = operationOf(id);
      const answer = await service.call(
        method,
        `/${path
          .replace('{delivery_id}', delivery)
          .replace('{question_id}', question)
          .replace(/\{\w+\}/, packetId)}${query}`,
        options,
      );
      assert.equal(answer.status, status, `${id}: ${answer.text}`);
      const described = operation.responses[status];
      assert.ok(described !== undefined, `${id} may answer ${status}`);
      if (described.content === undefined) assert.equal(answer.text, '', `${id} ${status} has no body`);
      else if (described.content['application/json'] !== undefined) {
        assert.deepEqual(errorsIn(answer.body, responsePointer(id, status), true), [], `${id} ${status}`);
      } else {
        const [type] = String(answer.headers['content-type']).split(';');
        assert.ok(
          Object.keys(described.content).some((media) => media.split(';')[0] === type),
          `${id} ${status}: ${type}`,
        );
      }
      const own = Object.keys(answer.headers).filter((name) => /^(x-ratelimit-|etag$|retry-after$|idempotency-)/.test(name));
      const names = Object.keys(described.headers ?? {}).map((name) => name.toLowerCase());
      for (const name of own) assert.ok(names.includes(name), `${id} ${status}: the header ${name} is described`);
      seen.add(id);
      return answer;
    },
  };
}

describe('the answers of the service', () => {
  test('match the description, for every operation', async (t) => {
    // Nothing listens at the URL of the webhook, and deliveries have only one attempt.
    const hooks = { SERVICE_WEBHOOK_ALLOW: '127.0.0.1', SERVICE_WEBHOOK_RETRY_SECONDS: '0' };
    const service = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '10000', ...hooks } });
    const { answer, seen } = createChecker(service);

    const body = packetRequest({
      hitl: { ...createExample.hitl, required: false },
      dependencies: [{ id: 'x', type: 'api', description: 'Billing' }],
    });
    const headers = { 'Idempotency-Key': 'once' };
    const { id } = (await answer('createPacket', 201, { body, headers })).body;
    const again = await answer('createPacket', 201, { body, headers });
    assert.equal(again.headers['idempotency-replayed'], 'true');

    const unchanged = await answer('getPacket', 200, { id });
    await answer('getPacket', 304, { id, headers: { 'if-none-match': String(unchanged.headers.etag) } });
    await answer('claimPacket', 200, { id, body: { agent_id: 'resolver' } });
    await answer('patchPacket', 200, {
      id,
      body: {
        status: 'in_progress',
        context: {
          conversation_state: [{ role: 'user', content: 'Hello', timestamp: '2026-03-01' }],
          custom: { any: [1, { thing: null }] },
        },
        decisions: [{ id: 'd2', decision: 'Refund', rationale: 'Fair', alternatives: ['Voucher', 3] }],
        actions: {
          completed: [{ id: 'a1', description: 'Refund', result: 'Done', completed_by: 'resolver' }],
          failed: [{ id: 'a2', description: 'Call', error: 'No answer' }],
        },
      },
    });
    await answer('patchPacket', 200, { id, body: { status: 'awaiting_human', hitl: createExample.hitl } });
    await answer('withdrawQuestion', 200, { id });
    const keyed = { ...createExample.hitl, key: 'refund' };
    await answer('askQuestion', 201, { id, body: keyed });
    await answer('askQuestion', 200, { id, body: keyed });
    await answer('askQuestion', 409, { id, body: createExample.hitl });
    await answer('askQuestion', 409, { id, body: { ...keyed, question: 'Else?' } });
    assert.equal((await answer('listAwaiting', 200)).body.total, 1);
    await answer('respondPacket', 200, { id, body: { response: 'Approve', responded_by: 'dana', notes: 'Fine' } });
    const { questions } = (await answer('listQuestions', 200, { id })).body;
    assert.equal(questions.length, 2);
    await answer('getQuestion', 200, { id, question: questions[1].question_id });
    await answer('chainPacket', 201, { id, body });
    assert.ok((await answer('packetHistory', 200, { id })).body.events.length > 4);
    assert.ok((await answer('packetBrief', 200, { id })).body.sections.length > 0);
    await answer('listPackets', 200);
    await answer('listPackets', 200, { query: '?view=full&limit=1' });
    assert.ok((await answer('searchPackets', 200, { query: '?q=charged' })).body.packets[0].snippet.length > 0);

    const batch = await answer('batchCreate', 201, { body: { packets: [body, { nothing: true }] } });
    assert.equal(batch.body.errors.length, 1);
    const made = batch.body.created[0].id;
    assert.equal((await answer('batchClaim', 200, { body: { packet_ids: [made, id, 'x'], agent_id: 'b' } })).body.errors.length, 2);
    assert.equal((await answer('batchComplete', 200, { body: { packet_ids: [made, 'x'] } })).body.errors.length, 1);
    await answer('deletePacket', 204, { id });

    const asking = (await answer('createPacket', 201, { body: packetRequest({ hitl: { required: true, reason: 'r', question: 'Yes?' } }) }))
      .body.id;
    await answer('createAnswerLink', 409, { id: asking });
    await answer('patchPacket', 200, { id: asking, body: { status: 'awaiting_human' } });
    const link = (await answer('createAnswerLink', 201, { id: asking, body: { responder: 'dana' } })).body.id;
    await answer('listAnswerLinks', 200, { id: asking });
    await answer('deleteAnswerLink', 204, { id: link });
    await answer('respondPacket', 409, { id: asking, body: { response: 'Yes', responded_by: 'dana', digest: '0'.repeat(64) } });

    const lease = { agent_id: 'resolver', lease_seconds: 60 };
    const taken = (await answer('createPacket', 201, { body })).body.id;
    const token = async () => ({ 'x-lease-token': (await answer('claimPacket', 200, { id: taken, body: lease })).body.lease.token });
    const first = await token();
    await answer('renewLease', 200, { id: taken, headers: first });
    await answer('renewLease', 409, { id: taken });
    await answer('endLease', 204, { id: taken, headers: first });
    await answer('releasePacket', 200, { id: taken, headers: await token() });
    await answer('claimNext', 200, { body: { agent_id: 'x', target_agent: '*', lease_seconds: 60 } });
    await answer('claimNext', 204, { body: { agent_id: 'nobody' } });
    assert.ok((await answer('listAgents', 200)).body.total > 0);
    const contract = { schema: { properties: { context: { required: ['custom'] } } }, examples: [{ context: { custom: {} } }] };
    const agent = { id: 'strict' };
    await answer('publishContract', 201, { ...agent, body: contract });
    await answer('publishContract', 200, { ...agent, body: { ...contract, description: 'Custom fields' } });
    const known = await answer('getContract', 200, agent);
    await answer('getContract', 304, { ...agent, headers: { 'if-none-match': String(known.headers.etag) } });
    assert.equal((await answer('listContracts', 200)).body.contracts.length, 1);
    const unfit = packetRequest({
      metadata: { ...(body.metadata as object), target_agent: { id: 'strict', name: 'Strict' } },
      context: { summary: 'No' },
    });
    await answer('createPacket', 400, { body: unfit });
    await answer('createPacket', 200, { body: unfit, query: '?dry_run=true' });
    await answer('chainPacket', 400, { id, body: unfit });
    assert.equal((await answer('batchCreate', 201, { body: { packets: [body, unfit] } })).body.errors.length, 1);
    await answer('deleteContract', 204, agent);
    const approval = { ...bodies.askApproval, exclude_source: false, action: { tool: 't', arguments: {}, call_id: 'c' } };
    const approving = (await answer('askApproval', 201, { body: approval })).body;
    await answer('askApproval', 200, { body: approval });
    const { key: responder } = (await answer('createKey', 201, { body: { name: 'dana', scopes: ['respond'], responder: 'dana' } })).body;
    const decided = { body: { decision: 'approve', responded_by: 'dana' }, key: responder };
    const { decision } = (await answer('respondPacket', 200, { id: approving.id, ...decided })).body.hitl;
    await answer('startExecution', 201, { id: approving.id, body: { arguments_digest: decision.arguments_digest } });
    await answer('startExecution', 409, { id: approving.id, body: { arguments_digest: decision.arguments_digest } });
    await answer('getExecution', 200, { id: approving.id });
    await answer('endExecution', 200, { id: approving.id, body: bodies.endExecution });
    const agents = ['refunds'];
    const { key: own } = (await answer('createKey', 201, { body: { name: 'agent', scopes: ['read', 'work'], agents } })).body;
    const repeated = { ...approval, action: { ...approval.action, call_id: 'd' } };
    const { id: remembered } = (await answer('askApproval', 201, { body: repeated, key: own })).body;
    const remember = { scope: 'tool', seconds: 60 };
    await answer('respondPacket', 200, { id: remembered, body: { ...decided.body, remember }, key: responder });
    const { standing_approvals: standing } = (await answer('listStandingApprovals', 200)).body;
    await answer('deleteStandingApproval', 204, { id: standing[0].id });
    for (const [one, plural] of [
      ['Policy', 'Policies'],
      ['Group', 'Groups'],
      ['Delegation', 'Delegations'],
      ['Schedule', 'Schedules'],
    ] as const) {
      const named = { id: 'one' };
      await answer(`put${one}`, 201, { ...named, body: bodies[`put${one}`] });
      await answer(`put${one}`, 200, { ...named, body: bodies[`put${one}`] });
      await answer(`get${one}`, 200, named);
      await answer(`list${plural}`, 200);
      if (one === 'Policy') {
        await answer('getPolicy', 304, { ...named, headers: { 'if-none-match': '"1"' } });
        await answer('tryPolicies', 200, { body: bodies.tryPolicies });
        await answer('replayPolicy', 200, { ...named, body: bodies.replayPolicy });
      }
      if (one === 'Schedule') {
        await answer('nextTimes', 200, named);
        await answer('runSchedule', 201, named);
      }
      await answer(`delete${one}`, 204, named);
    }
    await answer('getStats', 200);
    await answer('listAudit', 200);
    await answer('auditHead', 200);
    await answer('auditKeys', 200);
    await answer('exportAudit', 200);

    const key = (await answer('createKey', 201, { body: { name: 'ci' } })).body;
    await answer('listKeys', 200);
    await answer('getOwnKey', 200);
    await answer('suspendPerson', 200, { id: 'dana' });
    await answer('resumePerson', 200, { id: 'dana' });
    await answer('releasePerson', 200, { id: 'dana' });
    assert.equal((await answer('listPeople', 200)).body.total, 1);
    const issuer = await startIssuer(t, service.clock);
    const people = await startService(t, { clock: service.clock, settings: signInSettings(issuer) });
    const person = createChecker(people);
    await signIn(people, issuer);
    const [session] = (await person.answer('listSessions', 200)).body.sessions;
    await person.answer('deleteSession', 204, { id: session.id });
    for (const id of person.seen) seen.add(id);
    const rotated = await answer('rotateKey', 201, { id: key.id, body: { overlap_seconds: 60 } });
    await answer('deleteKey', 204, { id: key.id });
    await answer('deleteKey', 204, { id: rotated.body.id });
    const erasure = (await answer('createErasure', 202, { body: { packet_ids: [id], reason: 'Request' } })).body;
    await service.handoff.runOnce.erase();
    await answer('getErasure', 200, { id: erasure.id });
    await answer('listErasures', 200);
    await answer('getPacket', 200, { id });
    const tenant = (await answer('createTenant', 201, { body: { name: 'Acme', tier: 'pro', handoffs_per_day: 3 } })).body;
    await answer('getTenant', 200, { id: tenant.id });
    await answer('patchTenant', 200, { id: tenant.id, body: { handoffs_per_day: null } });
    await answer('createKey', 201, { body: { name: 'first', tenant_id: tenant.id } });
    await answer('listTenantKeys', 200, { id: tenant.id });
    await answer('listTenants', 200);
    await answer('deleteTenant', 204, { id: tenant.id });

    const hook = { url: 'http://127.0.0.1:9/hook', secret: 'a-secret-of-16-or-more' };
    const { id: hookId } = (await answer('createWebhook', 201, { body: hook })).body;
    await answer('listWebhooks', 200);
    await answer('patchWebhook', 200, { id: hookId, body: { active: true } });
    const { id: deliveryId } = (await answer('pingWebhook', 202, { id: hookId })).body;
    await service.handoff.runOnce.deliver();
    await answer('listDeliveries', 200, { id: hookId });
    await answer('getDelivery', 200, { id: hookId, delivery: deliveryId });
    await answer('listDeadLetters', 200);
    await answer('replayDeadLetter', 200, { id: deliveryId });
    await answer('replayDeadLetter', 409, { id: deliveryId });
    await answer('retryAll', 200, { body: { force: true } });
    await answer('deleteWebhook', 204, { id: hookId });
    const { id: channelId } = (await answer('createChannel', 201, { body: { kind: 'slack', target: 'http://127.0.0.1:9/services/x' } }))
      .body;
    await answer('createChannel', 400, { body: { kind: 'email', target: 'dana@example.com' } });
    await answer('listChannels', 200);
    await answer('getChannel', 200, { id: channelId });
    await answer('patchChannel', 200, { id: channelId, body: { name: null, responder: 'dana' } });
    const { id: messageId } = (await answer('testChannel', 202, { id: channelId })).body;
    await service.handoff.runOnce.deliver();
    await answer('listChannelDeliveries', 200, { id: channelId });
    await answer('replayChannelDelivery', 202, { id: channelId, delivery: messageId });
    await answer('replayChannelDelivery', 409, { id: channelId, delivery: messageId });
    await answer('deleteChannel', 204, { id: channelId });
    await answer('health', 200, { key: null });
    await answer('ready', 200, { key: null });
    await answer('metrics', 200, { key: null });

    assert.deepEqual([...seen].sort(), Object.keys(routes).sort());
  });

  test('match the description, for every error', async (t) => {
    const service = await startService(t, { settings: { SERVICE_RATE_LIMIT_PER_MINUTE: '10000' } });
    const { answer } = createChecker(service);
    const { id } = await createPacket(service);
    const unknown = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';

    await answer('createPacket', 400, { body: { metadata: {} } });
    await answer('createPacket', 401, { body: {}, key: 'wrong' });
    await answer('createPacket', 413, { body: { filler: 'x'.repeat(1_100_000) } });
    await answer('createPacket', 415, { raw: 'x', headers: { 'content-type': 'text/plain' } });
    await answer('batchCreate', 400, { body: { packets: [{}] } });
    await answer('listPackets', 400, { query: '?limit=0' });
    await answer('listPackets', 400, { query: '?cursor=x' });
    await answer('searchPackets', 400, { query: '?q=' });
    await answer('getPacket', 404, { id: unknown });
    await answer('packetHistory', 404, { id: unknown });
    await answer('packetBrief', 404, { id: unknown });
    await answer('patchPacket', 412, { id, body: { status: 'failed' }, headers: { 'if-match': '"7"' } });
    await answer('claimPacket', 200, { id, body: { agent_id: 'a' } });
    const refused = await answer('claimPacket', 409, { id, body: { agent_id: 'b' } });
    assert.equal(refused.body.claimed_by.agent_id, 'a');
    await answer('respondPacket', 409, { id, body: { response: 'yes', responded_by: 'dana' } });
    await answer('deletePacket', 204, { id });
    await answer('deletePacket', 409, { id });
    await answer('claimPacket', 410, { id, body: { agent_id: 'b' } });
    await answer('deleteKey', 404, { id: unknown });
    await answer('getTenant', 404, { id: unknown });

    const { key } = await newTenant(service, { handoffs_per_day: 0 });
    await answer('createPacket', 429, { body: packetRequest(), key });
    await answer('batchCreate', 429, { body: { packets: [packetRequest()] }, key });
    await answer('deletePacket', 403, { id, query: '?hard=true', key });
    await answer('listTenants', 403, { key });

    const headers = { 'a2a-version': '1.0' };
    await answer('mcp', 400, { body: {} });
    await answer('mcp', 400, {
      query: '?agent_id=one',
      body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      headers: { 'x-agent-id': 'two' },
    });
    await answer('mcp', 406, { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } });
    await answer('mcp', 415, { raw: '{}', headers: { 'content-type': 'text/plain' } });
    await answer('mcp', 401, { body: {}, key: null });
    await answer('a2a', 400, { raw: '{' });
    await answer('a2a', 400, { body: {}, headers: { 'x-agent-id': 'a'.repeat(300) } });
    await answer('a2aSendMessage', 400, { body: {}, headers });
    await answer('a2aSendMessage', 400, { raw: '{', headers });
    await answer('a2aSendMessage', 400, { body: {}, headers: { 'x-agent-id': 'a'.repeat(300) } });
    await answer('a2aSendMessage', 415, { raw: '{}', headers: { ...headers, 'content-type': 'text/plain' } });
    await answer('a2aListTasks', 400, { query: '?pageSize=x', headers });
    await answer('a2aListTasks', 401, { headers, key: 'x' });
    await answer('a2aListTasks', 403, { headers: { ...headers, host: 'elsewhere.example.com' } });
    await answer('a2aGetTask', 404, { id: unknown, headers });
    const worker = await service.call('POST', '/keys', { body: { name: 'worker', scopes: ['work'] } });
    await answer('a2aGetTask', 403, { id, headers, key: worker.body.key });
  });
});

/** The names that the object does not have. */
const missing = (value: object, wanted: readonly string[]) => wanted.filter((name) => !(name in value));

describe('Version 1', () => {
  test('keeps its operations, their parameters and the fields of every answer [H275]', async (t) => {
    const service = await startService(t);
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
      'get /audit': ['actor', 'action', 'packet_id', 'key_id', 'created_after', 'created_before', 'limit', 'offset'],
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
    const tenant = [
      'id',
      'name',
      'tier',
      'handoffs_per_day',
      'requests_per_hour',
      'max_api_keys',
      'created_at',
      'updated_at',
      'deleted_at',
    ];
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
    for (const [value, fields] of shapes) assert.deepEqual(missing(value, fields), [], Object.keys(value).join(' '));
  });
});
