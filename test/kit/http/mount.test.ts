import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';

import { JsonText } from '../../../src/kit/http/response.ts';
import { defineRoute } from '../../../src/kit/route.ts';
import { appFor, mountOn, putThing } from '../../support/app.ts';
import { sendRaw } from '../../support/socket.ts';
import { until } from '../../support/until.ts';

test('an answer is reduced to its schema at any depth, unless the schema is open', async (t) => {
  const app = appFor(t);
  const mount = mountOn(app);
  const Thing = Type.Object({ id: Type.String(), free: Type.Object({}, { additionalProperties: true }) });
  const route = defineRoute({
    id: 'listThings',
    method: 'GET',
    path: '/things',
    tag: 'things',
    access: 'public',
    summary: 'List things',
    responses: { 200: { description: 'They.', schema: Type.Object({ things: Type.Array(Thing) }) } },
  });
  const row = { id: '1', hash: 'secret', free: { any: 'thing' } };
  mount(route, () => ({ things: [row], hash: 'secret' }));
  const answer = await app.inject({ method: 'GET', url: '/things' });
  assert.equal(answer.statusCode, 200);
  assert.deepEqual(answer.json(), { things: [{ id: '1', free: { any: 'thing' } }] });
});

test('large bodies in progress share a limit, of which a tenant may use a part: beyond it 503 until memory is released [H234]', async (t) => {
  const app = appFor(t);
  const mount = mountOn(app, {
    admit(_route, request) {
      request.info.caller = String(request.headers.tenant);
    },
    bodyLimit: () => 1_000_000,
    maxBodyBytes: 1_000_000,
  });
  const route = putThing(Type.Object({ text: Type.String() }));
  let waiting: (() => void)[] = [];
  let failing = false;
  mount(route, async () => {
    await new Promise<void>((resolve) => void waiting.push(resolve));
    if (failing) throw new Error('failed');
    return {};
  });
  const put = async (length: number, tenant = 'one') =>
    (await app.inject({ method: 'POST', url: '/things', headers: { tenant }, payload: { text: 'x'.repeat(length) } })).statusCode;
  const release = () => {
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  for (failing of [false, true, false]) {
    const first = put(150_000);
    await until(() => waiting.length >= 1);
    assert.equal(await put(150_000), 503);
    // Small bodies are not counted, and refused ones release their memory.
    const others = [put(60_000), put(90_000), ...['two', 'three', 'four'].map((tenant) => put(240_000, tenant))];
    await until(() => waiting.length >= 6);
    assert.equal(await put(240_000, 'five'), 503);
    release();
    assert.deepEqual(await Promise.all([first, ...others]), Array(6).fill(failing ? 500 : 200));
  }
});

test('a large body releases its memory also when Fastify ends the request before its handler [H234]', async (t) => {
  const app = appFor(t);
  app.addHook('preValidation', (request, reply, done) => {
    if (request.headers.ended === undefined) done();
    else reply.code(418).send();
  });
  const mount = mountOn(app, { bodyLimit: () => 1_000_000, maxBodyBytes: 1_000_000 });
  mount(putThing(Type.Object({ text: Type.String() })), () => ({}));
  const put = async (headers: Record<string, string>) =>
    (await app.inject({ method: 'POST', url: '/things', headers, payload: { text: 'x'.repeat(150_000) } })).statusCode;
  for (let time = 0; time < 10; time += 1) assert.equal(await put({ ended: 'yes' }), 418);
  assert.equal(await put({}), 200);
});

describe('A mounted route', () => {
  const echo = defineRoute({
    id: 'echo',
    method: 'POST',
    path: '/echo',
    tag: 'texts',
    access: 'any',
    summary: 'Say it again',
    query: Type.Object({ loud: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
    body: Type.Union([Type.String(), Type.Object({ text: Type.String() })]),
    textTypes: ['text/plain', 'application/yaml'],
    responses: { 200: { description: 'It.' } },
  });

  function mounted(t: TestContext): FastifyInstance {
    const app = appFor(t);
    const mount = mountOn(app, {
      bodyLimit: () => 16,
      tooLarge: (limit) => `At most ${limit} bytes.`,
      admissionParameters: ['api_key'],
    });
    mount(echo, ({ query, body }) => new JsonText(JSON.stringify({ query, body })));
    return app;
  }
  const post = (app: FastifyInstance, url: string, type: string, payload: string | Buffer) =>
    app.inject({ method: 'POST', url, headers: { 'content-type': type }, payload });

  test('reads its text types as text and JSON as JSON', async (t) => {
    const app = mounted(t);
    assert.equal((await post(app, '/echo', 'text/plain', '{"text":"a"}')).body, '{"query":{},"body":"{\\"text\\":\\"a\\"}"}');
    assert.equal((await post(app, '/echo', 'application/yaml; charset=utf-8', 'a: 1')).body, '{"query":{},"body":"a: 1"}');
    assert.equal((await post(app, '/echo', 'application/json', '{"text":"a"}')).body, '{"query":{},"body":{"text":"a"}}');
    const other = await post(app, '/echo', 'text/html', 'a');
    assert.equal(other.statusCode, 415);
    assert.equal(other.json().detail, 'The body must be application/json, text/plain, application/yaml in UTF-8.');
    for (const bytes of [Buffer.from([0xff]), Buffer.from('a\0b')])
      assert.equal((await post(app, '/echo', 'text/plain', bytes)).statusCode, 400);
  });

  test("ignores query parameters of admission, and refuses unknown ones with the service's sentences", async (t) => {
    const app = mounted(t);
    assert.equal((await post(app, '/echo?api_key=secret&loud=true', 'text/plain', 'a')).body, '{"query":{"loud":true},"body":"a"}');
    assert.equal((await post(app, '/echo?key=secret', 'text/plain', 'a')).statusCode, 400);
    const large = await post(app, '/echo', 'text/plain', 'x'.repeat(17));
    assert.deepEqual([large.statusCode, large.json().detail], [413, 'At most 16 bytes.']);
  });
});

test('a reset connection is detected during a request; a client that only ends its sending half gets its answer, and no interim one [H98]', async (t) => {
  const app = appFor(t);
  const mount = mountOn(app);
  const route = defineRoute({
    id: 'wait',
    method: 'GET',
    path: '/wait',
    tag: 'things',
    access: 'public',
    summary: 'Wait',
    responses: { 200: { description: 'It.', schema: Type.Object({ closed: Type.Boolean(), ended: Type.Boolean() }) } },
  });
  const begun = Promise.withResolvers<AbortSignal>();
  mount(route, async (_, { signal, endSignal }) => {
    begun.resolve(signal);
    if (!endSignal.aborted) await once(endSignal, 'abort');
    return { closed: signal.aborted, ended: endSignal.aborted };
  });
  const address = await app.listen({ host: '127.0.0.1', port: 0 });
  const { hostname, port } = new URL(address);
  const client = connect(Number(port), hostname);
  client.write('GET /wait HTTP/1.1\r\nHost: x\r\n\r\n');
  const signal = await begun.promise;
  client.resetAndDestroy();
  if (!signal.aborted) await once(signal, 'abort');
  const { text, body } = await sendRaw(address, 'GET /wait HTTP/1.1\r\nHost: x\r\n\r\n', { end: true });
  assert.match(text, /^HTTP\/1\.1 200 /);
  assert.deepEqual(body, { closed: false, ended: true });
});
