import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { FastifyInstance } from 'fastify';
import Type from 'typebox';

import { listen } from '../../../src/kit/http/app.ts';
import { appFor, mountOn, putThing } from '../../support/app.ts';
import { sendRaw } from '../../support/socket.ts';
import { countTurns } from '../../support/until.ts';

const Thing = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 512 }),
    tags: Type.Optional(Type.Array(Type.Object({ id: Type.String() }), { minItems: 1, maxItems: 100_000 })),
    at: Type.Optional(Type.String({ format: 'timestamp' })),
    custom: Type.Optional(Type.Object({}, { additionalProperties: true })),
    question: Type.Optional(Type.Union([Type.Object({ seconds: Type.Integer({ minimum: 1 }) }), Type.Null()])),
  },
  { additionalProperties: false },
);

/** An application with one route that takes a body, and the bodies that its handler got. */
function things(t: TestContext, bodyLimit = 8_000_000) {
  const app = appFor(t);
  const mount = mountOn(app, { bodyLimit: () => bodyLimit });
  const kept: unknown[] = [];
  mount(putThing(Thing), ({ body }) => {
    kept.push(body);
    return {};
  });
  return { app, kept, start: () => listen(app, '127.0.0.1', 0) };
}

async function post(app: FastifyInstance, body: unknown, headers: Record<string, string> = { 'content-type': 'application/json' }) {
  const payload = typeof body === 'string' ? body : JSON.stringify(body);
  const answer = await app.inject({ method: 'POST', url: '/things', headers, payload });
  return { status: answer.statusCode, text: answer.body, body: answer.json() };
}

test('the answer stays small, however many faults a body has and however long a name is [H271]', async (t) => {
  const { app, kept } = things(t);
  const many = await post(app, { name: 'x', tags: Array(5000).fill(7) });
  assert.deepEqual([many.status, many.body.field, many.body.errors.length], [400, 'tags.0', 50]);
  const unknown = Object.fromEntries(Array.from({ length: 4000 }, (_, index) => [`field_${index}`, 1]));
  const fields = await post(app, { name: 'x', ...unknown });
  assert.deepEqual([fields.status, fields.body.field], [400, 'field_0']);
  // For a body of more than 64 KiB only one fault is reported: finding the others would block the event loop.
  const large = await post(app, { name: 'x', tags: Array(100_000).fill({}) });
  assert.deepEqual([large.status, large.body.field, large.body.errors], [400, 'tags.0.id', undefined]);
  const long = 'x'.repeat(500_000);
  const longName = await post(app, { name: 'x', [long]: 1 });
  assert.ok(longName.body.field.startsWith('xxx'));
  const twice = await post(app, `{"${long}":1,"${long}":2}`);
  const deep = await post(app, `{"name":"x","custom":{"${long}":{"__proto__":1}}}`);
  for (const { status, text } of [many, fields, large, longName, twice, deep]) {
    assert.equal(status, 400);
    assert.ok(text.length < 20_000, `${text.length}`);
  }
  assert.deepEqual(kept, []);
});

test('an error in a nullable object is reported once, with its field', async (t) => {
  const { app } = things(t);
  for (const [question, field] of [
    [{ seconds: 0 }, 'question.seconds'],
    [7, 'question'],
  ] as const) {
    const { status, body } = await post(app, { name: 'x', question });
    assert.deepEqual([status, body.field, body.errors], [400, field, undefined]);
  }
});

test('400 with a specific sentence: empty, too many, too long, too small, an invalid date', async (t) => {
  const { app } = things(t);
  for (const [changes, sentence] of [
    [{ name: '' }, 'name must not be empty.'],
    [{ name: 'x'.repeat(513) }, 'name can have at most 512 characters.'],
    [{ tags: [] }, 'tags must not be empty.'],
    [{ tags: Array(100_001).fill(0) }, 'tags can have at most 100000 items.'],
    [{ question: { seconds: 0 } }, 'question.seconds must be at least 1.'],
  ] as const)
    assert.equal((await post(app, { name: 'x', ...changes })).body.detail, sentence);
  assert.match((await post(app, { name: 'x', at: '2026-02-31T00:00:00Z' })).body.detail, /^at must be an ISO 8601 date/);
});

test('415: a body that is not declared as JSON in UTF-8 [H251, H268]', async (t) => {
  const { app, kept } = things(t);
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/json; charset=utf-16',
    'application/json; charset=iso-8859-1',
    'application/jsonp',
    'json',
    ';',
    '',
  ])
    assert.deepEqual((await post(app, { name: 'x' }, { 'content-type': type })).body.status_code, 415, type);
  for (const encoding of ['gzip', 'br', 'identity, gzip']) {
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
    assert.equal((await post(app, { name: 'x' }, headers)).status, 415, encoding);
  }
  assert.deepEqual(kept, []);
  const types = ['application/json', 'APPLICATION/JSON; Charset="UTF-8"', 'application/json;charset=utf8', 'application/vnd.acme+json'];
  for (const type of types) assert.equal((await post(app, { name: 'x' }, { 'content-type': type })).status, 200, type);
});

/** Sends the whole body before it reads the answer, as many clients do. Resolves with the status. */
function sendWhole(url: string, agent: Agent, headers: Record<string, string | number>, body: Buffer): Promise<number> {
  return new Promise((resolve, reject) => {
    const sending = request(url, { method: 'POST', agent, headers });
    const sent = new Promise<void>((done) => void sending.on('finish', done));
    sending.on('error', reject);
    sending.on('response', (answer) => {
      answer.resume();
      answer.on('end', () => void sent.then(() => resolve(answer.statusCode ?? 0)));
    });
    sending.end(body);
  });
}

test('413, 415 and 400 reach a client that sends its whole body before it reads, and keep the connection usable [H253]', async (t) => {
  const [small, wide] = [await things(t, 1_000_000).start(), await things(t).start()];
  const [agent, closing] = [new Agent({ keepAlive: true, maxSockets: 1 }), new Agent({ keepAlive: false })];
  t.after(() => agent.destroy());
  const large = Buffer.alloc(8_000_000, 'x');
  for (const [type, address, expected] of [
    ['application/json', small, 413],
    ['text/plain', small, 415],
    ['application/json', wide, 400],
  ] as const) {
    for (const framing of [{ 'content-length': large.length }, { 'transfer-encoding': 'chunked' }]) {
      for (const by of [agent, closing]) {
        const answer = await sendWhole(`${address}/things`, by, { 'content-type': type, ...framing }, large);
        assert.equal(answer, expected, `${type} ${JSON.stringify(framing)}`);
      }
    }
  }
  assert.equal(Object.values(agent.freeSockets).flat().length, 2);
});

test('over a socket: oversized, endless, truncated and malformed requests end in an answer or a closed connection [H233, H254]', async (t) => {
  const { kept, start } = things(t, 4096);
  const address = await start();
  const line = (headers: string, body = '') =>
    `POST /things HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}\r\n\r\n${body}`;
  const valid = JSON.stringify({ name: 'x' });
  const chunk = `1000\r\n${' '.repeat(4096)}\r\n`;

  // Refused before the body has arrived.
  for (const text of [line('Content-Length: 52428800'), line('Transfer-Encoding: chunked', `${chunk}1\r\n `)])
    assert.equal((await sendRaw(address, text, { once: true })).body.status_code, 413);
  const endless = await sendRaw(address, line('Transfer-Encoding: chunked'), { flood: chunk });
  assert.ok([0, 413].includes(endless.status), endless.text);
  const unasked = await sendRaw(address, line('Content-Length: 1073741824'), { flood: 'x'.repeat(65_536) });
  assert.ok([0, 413].includes(unasked.status), unasked.text);

  for (const text of [
    line(`Content-Length: ${valid.length}`, valid.slice(0, -1)),
    line('Transfer-Encoding: chunked', `${valid.length.toString(16)}\r\n${valid}\r\n`),
    line('Transfer-Encoding: chunked', `ffff\r\n${valid}`),
    line(`Content-Length: ${valid.length}\r\nTransfer-Encoding: chunked`, valid),
    line('Content-Length: -1'),
    line(`Content-Length: ${valid.length}\r\nContent-Length: 1`, valid),
    line('Transfer-Encoding: chunked', `zz\r\n${valid}\r\n0\r\n\r\n`),
    line('Bad Header: x'),
    'GET / HTTP/9.9\r\n\r\n',
    'nonsense\r\n\r\n',
    '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc',
  ]) {
    const { body } = await sendRaw(address, text, { end: true });
    assert.deepEqual([body.status_code, body.code, body.field], [400, 'VALIDATION_ERROR', null], text);
  }
  assert.deepEqual(kept, []);
  const good = await sendRaw(address, line(`Connection: close\r\nContent-Length: ${valid.length}`, valid));
  assert.equal(good.status, 200);
});

test('400: HTTP/1.1 without a Host; an older client needs none', async (t) => {
  const address = await things(t).start();
  const { status, body } = await sendRaw(address, 'GET /things HTTP/1.1\r\nConnection: close\r\n\r\n');
  assert.deepEqual([status, body.code, body.status_code], [400, 'VALIDATION_ERROR', 400]);
  assert.equal((await sendRaw(address, 'GET /things HTTP/1.0\r\n\r\n')).status, 405);
});

test('slow senders are cut off: 15 s for headers, 60 s for a request, answered 408 [H254]', async (t) => {
  const { app, start } = things(t);
  const address = await start();
  assert.deepEqual([app.server.headersTimeout, app.server.requestTimeout], [15_000, 60_000]);
  // Triggers what Node does after either timeout, without waiting.
  app.server.once('connection', (socket) => {
    app.server.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket);
  });
  const { status, body } = await sendRaw(address, 'POST /things HTTP/1.1\r\nHost: x\r\nX-Slow: ');
  assert.deepEqual([status, body.status_code, typeof body.code, body.field], [408, 408, 'string', null]);
});

test('of several large bodies that arrive at once one is read in each turn of the event loop', async (t) => {
  const app = appFor(t);
  const name = 'x'.repeat(100_000);
  await countTurns(async (turn) => {
    const read: number[] = [];
    mountOn(app, { bodyLimit: () => 1_000_000 })(putThing(Type.Object({ name: Type.String() })), () => {
      read.push(turn());
      return {};
    });
    const answers = await Promise.all(Array.from({ length: 5 }, () => post(app, { name })));
    assert.deepEqual([answers.map(({ status }) => status), new Set(read).size], [Array(5).fill(200), 5], `${read}`);
  });
});
