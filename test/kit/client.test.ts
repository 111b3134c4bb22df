import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import Type from 'typebox';
import { nodeTransport } from '../../src/handoff/cli/node-transport.ts';
import { createClient, type InputOf, operationsOf } from '../../src/kit/client.ts';
import { ApiError, NetworkError, TimeoutError } from '../../src/kit/client-errors.ts';
import { type ClientStep, Connection, type ConnectionOptions } from '../../src/kit/connection.ts';
import { defineRoute } from '../../src/kit/route.ts';
import { defaulted } from '../../src/kit/schemas.ts';
import { fetchTransport, type Transport } from '../../src/kit/transport.ts';
import { type Received, startPeer, TestClientDependencies } from '../support/client-dependencies.ts';

const thing = { tag: 'things', access: 'key', summary: 'A thing' };
const paging = { limit: defaulted(Type.Integer({ default: 2 })), offset: defaulted(Type.Integer({ default: 0 })) };
const Thing = Type.Object({ id: Type.String() });
const routes = {
  getThing: defineRoute({
    ...thing,
    id: 'getThing',
    method: 'GET',
    path: '/things/{id}',
    params: Type.Object({ id: Type.String() }),
    query: Type.Object({ q: Type.Optional(Type.String()), at: Type.Optional(Type.Array(Type.String())) }),
    responses: { 200: { description: 'It.', schema: Thing }, 304: { description: 'As it was.' } },
  }),
  listThings: defineRoute({
    ...thing,
    id: 'listThings',
    method: 'GET',
    path: '/things',
    query: Type.Object({ ...paging, cursor: Type.Optional(Type.String()) }),
    responses: {
      200: {
        description: 'Them.',
        schema: Type.Object({ things: Type.Array(Thing), total: Type.Integer(), next_cursor: Type.Union([Type.String(), Type.Null()]) }),
      },
    },
  }),
  listParts: defineRoute({
    ...thing,
    id: 'listParts',
    method: 'GET',
    path: '/parts',
    query: Type.Object(paging),
    responses: { 200: { description: 'Them.', schema: Type.Array(Thing) } },
  }),
  putThing: defineRoute({
    ...thing,
    id: 'putThing',
    method: 'POST',
    path: '/things',
    body: Type.Object({ name: Type.String(), wait_seconds: Type.Optional(Type.Integer()) }),
    responses: { 204: { description: 'Done.' } },
  }),
  makeThing: defineRoute({
    ...thing,
    id: 'makeThing',
    method: 'POST',
    path: '/things/new',
    body: Type.Object({ name: Type.Optional(Type.String()) }),
    headers: { 'Idempotency-Key': 'Repeats.' },
    responses: { 201: { description: 'It.', schema: Thing } },
  }),
  numbers: defineRoute({
    ...thing,
    id: 'numbers',
    method: 'GET',
    path: '/numbers',
    responses: { 200: { description: 'Them.', schema: Type.String(), contentType: 'text/plain' } },
  }),
};

type Answering = (reply: ServerResponse, request: Received, turn: number) => void;
const json =
  (status: number, body: unknown, headers: Record<string, string> = {}): Answering =>
  (reply) =>
    void reply.writeHead(status, headers).end(JSON.stringify(body));
/** Answers in order; the last one repeats. */
const inLane =
  (...answers: Answering[]): Answering =>
  (reply, request, turn) =>
    answers[Math.min(turn, answers.length) - 1]!(reply, request, turn);

/** An answer whose body goes on for as long as it is read. */
const endless =
  (status: number): Answering =>
  (reply) => {
    reply.writeHead(status);
    const chunk = Buffer.alloc(1024 * 1024, 'x');
    // As a body of JSON it is as endless as the line of an event.
    reply.write('data: ');
    const more = () => void (reply.destroyed || reply.write(chunk, () => setImmediate(more)));
    more();
  };

/** A client, its environment, and a server that records requests. */
async function open(t: TestContext, answering: Answering, options: Partial<ConnectionOptions> = {}) {
  const peer = await startPeer(t, answering);
  const dependencies = new TestClientDependencies();
  const steps: ClientStep[] = [];
  const connection = new Connection({
    baseUrl: `${peer.address}/`,
    headers: { 'x-api-key': 'k' },
    dependencies,
    onStep: (step) => steps.push(step),
    ...options,
  });
  const client = createClient<typeof routes>(operationsOf(routes, ({ path }) => `/api${path}`) as never, connection);
  return { ...peer, client, connection, dependencies, steps };
}

/** Asserts types at compile time. */
type Is<Condition extends boolean, Expected extends Condition> = Expected;
type Optional<T, Name extends keyof T> = Record<never, never> extends Pick<T, Name> ? true : false;

describe('The types of a client', () => {
  test('require required fields, and make fields with a default optional', () => {
    const checks: [
      Is<Optional<InputOf<typeof routes.getThing>, 'params'>, false>,
      Is<Optional<InputOf<typeof routes.getThing>, 'query'>, true>,
      Is<Optional<InputOf<typeof routes.listThings>, 'query'>, true>,
      Is<Optional<InputOf<typeof routes.putThing>, 'body'>, false>,
      Is<Optional<InputOf<typeof routes.makeThing>, 'body'>, true>,
    ] = [false, true, true, false, true];
    assert.equal(checks.length, 5);
    const unused = (client: ReturnType<typeof createClient<typeof routes>>) => {
      // @ts-expect-error the id is required
      void client.getThing();
      // @ts-expect-error the id is a text
      void client.getThing({ params: { id: 1 } });
      // @ts-expect-error the body is required
      void client.putThing({});
      // @ts-expect-error a route without pages has none
      void client.getThing.pages;
      void client.listThings().then(({ total }: { total: number }) => total);
    };
    assert.equal(typeof unused, 'function');
  });
});

for (const [name, transport] of Object.entries({ fetchTransport, nodeTransport })) {
  describe(`A client by ${name}`, () => {
    test('sends headers as UTF-8, and refuses line breaks without showing the value', async (t) => {
      const { client, received } = await open(t, json(201, { id: 'x' }), { transport, headers: { 'x-agent-id': 'Zoë 🦊' } });
      await client.makeThing({ idempotencyKey: 'schlüssel' });
      const [{ headers }] = received as [Received];
      const texts = [headers['x-agent-id'], headers['idempotency-key']].map((value) => Buffer.from(String(value), 'latin1').toString());
      assert.deepEqual(texts, ['Zoë 🦊', 'schlüssel']);
      for (const idempotencyKey of ['secret\n', 'secret\0', 'secret\r\nx-other: 1'])
        await assert.rejects(client.makeThing({ idempotencyKey }), {
          name: 'TypeError',
          message: "idempotency-key can't have line breaks or other control characters.",
        });
    });

    test('encodes any path and query, and leaves out undefined values', async (t) => {
      const { client, received } = await open(t, json(200, { id: 'x' }), { transport });
      const query = { q: 'a&b=ü', at: ['1', '2'], other: undefined };
      assert.deepEqual(await client.getThing({ params: { id: '../a/b?c' }, query }), { id: 'x' });
      const [{ method, url, headers, body }] = received as [Received];
      assert.deepEqual(
        [method, url, headers['x-api-key'], headers['content-type'], body],
        ['GET', '/api/things/..%2Fa%2Fb%3Fc?q=a%26b%3D%C3%BC&at=1%2C2', 'k', undefined, ''],
      );
    });

    test('sends a JSON body with the headers of the call, and accepts an answer without a body', async (t) => {
      const { client, received } = await open(t, (reply) => void reply.writeHead(204).end(), { transport });
      assert.equal(await client.putThing({ body: { name: 'Ñ' }, headers: { 'x-api-key': 'other' } }), undefined);
      const [{ headers, body }] = received as [Received];
      assert.deepEqual([headers['x-api-key'], headers['content-type'], body], ['other', 'application/json', '{"name":"Ñ"}']);
    });

    test('returns status, headers and text with withResponse', async (t) => {
      const text = '{"id": "x", "size": 12345678901234567890}';
      const { client } = await open(t, (reply) => void reply.writeHead(200, { etag: '"7"' }).end(text), { transport });
      const answer = await client.getThing.withResponse({ params: { id: 'x' } });
      assert.deepEqual([answer.status, answer.headers.etag, answer.body?.id, answer.text], [200, '"7"', 'x', text]);
    });

    test('a 304 is an answer with withResponse, and an error otherwise', async (t) => {
      const { client } = await open(t, (reply) => void reply.writeHead(304, { etag: '"7"' }).end(), { transport });
      const request = { params: { id: 'x' }, headers: { 'if-none-match': '"7"' } };
      const answer = await client.getThing.withResponse(request);
      assert.deepEqual([answer.status, answer.headers.etag, answer.body], [304, '"7"', undefined]);
      await assert.rejects(client.getThing(request), ApiError);
    });

    test("rejects with the service's error", async (t) => {
      const refusal = {
        detail: 'No.',
        code: 'VALIDATION_ERROR',
        field: 'name',
        status_code: 400,
        errors: [{ field: 'name', detail: 'No.' }],
      };
      const { client } = await open(t, json(400, refusal, { 'x-request-id': '2s-1' }), { transport });
      await assert.rejects(client.putThing({ body: { name: 'N' } }), (error) => {
        assert.ok(error instanceof ApiError);
        assert.deepEqual([error.status_code, error.message, error.code, error.field], [400, 'No.', 'VALIDATION_ERROR', 'name']);
        assert.deepEqual([error.request_id, error.errors], ['2s-1', refusal.errors]);
        return true;
      });
    });

    test("rejects with the status alone if the error is not the service's JSON", async (t) => {
      for (const text of ['<html>Bad Gateway</html>', '', '"text"', 'null']) {
        const { client } = await open(t, (reply) => void reply.writeHead(502).end(text), { transport });
        await assert.rejects(client.putThing({ body: { name: 'N' } }), (error) => {
          assert.ok(error instanceof ApiError);
          assert.deepEqual([error.status_code, error.message, error.code], [502, 'The service answered 502.', undefined]);
          return true;
        });
      }
    });

    test('follows no redirect, so that the key is not sent elsewhere', async (t) => {
      const { client, received } = await open(t, (reply) => void reply.writeHead(302, { location: '/elsewhere' }).end(), {
        transport,
      });
      await assert.rejects(client.numbers(), (error) => error instanceof ApiError && error.status_code === 302);
      assert.equal(received.length, 1);
    });

    test('returns text if the route answers text, and rejects invalid JSON', async (t) => {
      const { client } = await open(t, (reply) => void reply.end('a 1'), { transport });
      assert.equal(await client.numbers(), 'a 1');
      await assert.rejects(client.listParts(), (error) => error instanceof ApiError && error.status_code === 200);
    });

    test("an unreachable service is a NetworkError with the address and the system's code", async (t) => {
      const { client, close, address, dependencies } = await open(t, json(200, {}), { transport });
      await close();
      await assert.rejects(client.putThing({ body: { name: 'N' } }), (error) => {
        assert.ok(error instanceof NetworkError);
        assert.deepEqual([error.origin, error.code], [address, 'ECONNREFUSED']);
        return true;
      });
      assert.deepEqual(dependencies.waits, [30, 0.5, 30, 1, 30], 'nothing was sent, so even a POST without a key is retried');
    });

    test('an answer that does not arrive in time is a TimeoutError, and the request is aborted', async (t) => {
      const { client, dependencies, received } = await open(t, (_, __) => dependencies.endWaits(), { transport, timeoutSeconds: 40 });
      await assert.rejects(client.putThing({ body: { name: 'N' } }), TimeoutError);
      assert.equal(received.length, 1, 'a request that may have been carried out is not sent again');
      await assert.rejects(client.putThing({ body: { name: 'N', wait_seconds: 60 } }), TimeoutError);
      assert.deepEqual(dependencies.waits, [40, 100], 'the timeout includes the requested wait');
    });

    test("an error's body that never ends doesn't hide the error, and is not read beyond a bound", async (t) => {
      const thenTimeout: Transport = async (request) => {
        const answer = await transport(request);
        setImmediate(() => hanging.dependencies.endWaits());
        return answer;
      };
      const hanging = await open(t, (reply) => void reply.writeHead(401).write('{"detail":'), {
        transport: thenTimeout,
        timeoutSeconds: 40,
      });
      const status = (error: unknown) => error instanceof ApiError && error.status_code === 401;
      await assert.rejects(hanging.client.putThing({ body: { name: 'N' } }), status);
      await assert.rejects(hanging.connection.stream({ path: '/events' }).next(), status);
      // The peer writes for as long as somebody reads; nothing but the bound ends it.
      const { client, connection } = await open(t, endless(401), { transport, timeoutSeconds: 40 });
      await assert.rejects(client.putThing({ body: { name: 'N' } }), status);
      await assert.rejects(connection.stream({ path: '/events' }).next(), status);
    });

    test('a body that never ends is refused beyond a bound, and an event of a stream likewise', async (t) => {
      const { client, connection } = await open(t, endless(200), { transport, timeoutSeconds: 40 });
      const tooLarge = (error: unknown) => error instanceof ApiError && / is larger than \d+ MiB\./.test(error.message);
      await assert.rejects(client.numbers(), tooLarge);
      await assert.rejects(connection.stream({ path: '/events' }).next(), tooLarge);
    });

    test("the caller's signal ends a call with its reason, also during the wait for a retry", async (t) => {
      const ending = new AbortController();
      const reason = new Error('enough');
      const answering: Answering = (reply, _, turn) => {
        if (turn > 1) ending.abort(reason);
        else reply.writeHead(503, { 'retry-after': '1' }).end();
      };
      const { client, received } = await open(t, answering, { transport });
      await assert.rejects(client.numbers({ signal: ending.signal }), reason);
      assert.equal(received.length, 2);
      await assert.rejects(client.numbers({ signal: ending.signal }), reason);
      assert.equal(received.length, 2);
    });
  });
}

describe('A client retries', () => {
  test('a GET, and an operation with an idempotency key, with the same key each time [H312]', async (t) => {
    const answering = inLane(json(503, {}), (reply) => void reply.destroy(), json(201, { id: 'x' }));
    const { client, received, dependencies } = await open(t, answering);
    assert.deepEqual(await client.makeThing({ body: { name: 'N' } }), { id: 'x' });
    assert.deepEqual(
      received.map(({ headers }) => headers['idempotency-key']),
      ['key-1', 'key-1', 'key-1'],
    );
    assert.deepEqual(
      dependencies.waits.filter((seconds) => seconds < 30),
      [0.5, 1],
    );
    await client.makeThing({ idempotencyKey: 'mine' });
    assert.equal(received.at(-1)!.headers['idempotency-key'], 'mine');
    assert.equal(received.at(-1)!.body, '{}');
  });

  test('nothing else that may have been carried out [H312]', async (t) => {
    const faults: [Answering, new (...parts: never[]) => Error][] = [
      [json(503, {}), ApiError],
      [(reply) => void reply.destroy(), NetworkError],
    ];
    for (const [answering, fault] of faults) {
      const { client, received } = await open(t, answering);
      await assert.rejects(client.putThing({ body: { name: 'N' } }), fault);
      assert.equal(received.length, 1);
    }
  });

  test('rate-limited requests, after Retry-After, and reports the wait [H312]', async (t) => {
    const { client, received, dependencies, steps } = await open(t, inLane(json(429, {}, { 'retry-after': '7' }), json(204, undefined)));
    await client.putThing({ body: { name: 'N' } });
    assert.equal(received.length, 2);
    assert.deepEqual(dependencies.waits, [30, 7, 30]);
    assert.deepEqual(
      steps.map(({ kind }) => kind),
      ['request', 'answer', 'wait', 'request', 'answer'],
    );
  });

  test('at most as often as configured, and not at all if the wait is too long', async (t) => {
    const often = await open(t, json(503, {}), { retries: 4 });
    await assert.rejects(often.client.numbers(), (error) => error instanceof ApiError && error.status_code === 503);
    assert.equal(often.received.length, 5);
    const late = await open(t, json(429, {}, { 'retry-after': '61' }));
    await assert.rejects(late.client.numbers(), (error) => error instanceof ApiError && error.retryAfterSeconds === 61);
    assert.equal(late.received.length, 1);
  });
});

describe('Pages', () => {
  const things = ['a', 'b', 'c', 'd', 'e'].map((id) => ({ id }));
  /** Pages of two, by cursor or offset. */
  const paged =
    (kind: 'cursor' | 'offset' | 'array'): Answering =>
    (reply, { url = '' }) => {
      const query = new URL(url, 'http://x').searchParams;
      assert.ok(!(query.has('cursor') && query.has('offset')), url);
      const start = Number(query.get(kind === 'cursor' ? 'cursor' : 'offset') ?? query.get('offset') ?? 0);
      const page = things.slice(start, start + 2);
      const next = start + 2 < things.length ? String(start + 2) : null;
      if (kind === 'array') return json(200, page)(reply, {} as Received, 1);
      return json(200, { things: page, total: 5, ...(kind === 'cursor' ? { next_cursor: next } : {}) })(reply, {} as Received, 1);
    };

  for (const kind of ['cursor', 'offset'] as const) {
    test(`are read to the end by ${kind}`, async (t) => {
      const { client, received } = await open(t, paged(kind));
      const ids = await Array.fromAsync(client.listThings.items({ query: { offset: 1, limit: 2 } }), ({ id }) => id);
      assert.deepEqual(ids, ['b', 'c', 'd', 'e']);
      assert.equal(received.length, 2);
      const sizes = await Array.fromAsync(client.listThings.pages(), (page) => page.things.length);
      assert.deepEqual(sizes, [2, 2, 1]);
    });
  }

  test('of a bare list are read until one is empty, if there is no total', async (t) => {
    const { client, received } = await open(t, paged('array'));
    assert.deepEqual(await Array.fromAsync(client.listParts.items(), ({ id }) => id), ['a', 'b', 'c', 'd', 'e']);
    assert.equal(received.length, 4);
  });

  test('are requested one at a time, and no longer when the caller stops reading', async (t) => {
    const { client, received } = await open(t, paged('cursor'));
    for await (const { id } of client.listThings.items()) if (id === 'b') break;
    assert.equal(received.length, 1);
  });
});

test('An id that would change the path is refused before anything is sent', async (t) => {
  const { client, received } = await open(t, json(200, {}));
  for (const id of ['', '.', '..']) await assert.rejects(client.getThing({ params: { id } }), TypeError);
  assert.equal(received.length, 0);
});

describe('A stream', () => {
  const head = { 'content-type': 'text/event-stream' };
  /** Answers with events and closes, or stays open. */
  const events =
    (text: string, { end = true } = {}): Answering =>
    (reply) => {
      reply.writeHead(200, head).write(text);
      if (end) reply.end();
    };

  for (const [name, transport] of Object.entries({ fetchTransport, nodeTransport })) {
    test(`resumes after the last event when the connection breaks, after the server's retry time (${name})`, async (t) => {
      const answering = inLane(
        events('retry: 2000\n\nid: 1\nevent: a\ndata: ä\n\n'),
        (reply) => void reply.destroy(),
        events('id: 2\ndata: y\n\n'),
      );
      const { connection, received, dependencies } = await open(t, answering, { transport });
      const seen = [];
      for await (const { id, type, data } of connection.stream({ path: '/events', query: { subscribe: ['x', 'y'] } })) {
        seen.push([id, type, data]);
        if (seen.length === 2) break;
      }
      assert.deepEqual(seen, [
        ['1', 'a', 'ä'],
        ['2', 'message', 'y'],
      ]);
      assert.deepEqual(
        received.map(({ url, headers }) => [url, headers['last-event-id']]),
        [
          ['/events?subscribe=x&subscribe=y', undefined],
          ['/events?subscribe=x&subscribe=y', '1'],
          ['/events?subscribe=x&subscribe=y', '1'],
        ],
      );
      assert.ok(dependencies.waits.includes(2), String(dependencies.waits));
    });

    test(`that is refused ends with the service's error (${name})`, async (t) => {
      const { connection } = await open(t, json(401, { detail: 'No key.', code: 'UNAUTHORIZED' }), { transport });
      await assert.rejects(
        connection.stream({ path: '/events' }).next(),
        (error) => error instanceof ApiError && error.message === 'No key.',
      );
    });

    test(`that is silent for too long is reconnected (${name})`, async (t) => {
      const answering: Answering = (reply, request, turn) => {
        events(`id: ${turn}\ndata: ${turn}\n\n`, { end: false })(reply, request, turn);
      };
      const { connection, dependencies } = await open(t, answering, { transport });
      const stream = connection.stream({ path: '/events' });
      assert.equal((await stream.next()).value?.data, '1');
      const next = stream.next();
      await new Promise(setImmediate);
      dependencies.endWaits();
      assert.equal((await next).value?.data, '2');
      await stream.return();
    });

    test(`ends with the reason of the caller's signal (${name})`, async (t) => {
      const { connection } = await open(t, events('data: 1\n\n', { end: false }), { transport });
      const ending = new AbortController();
      const stream = connection.stream({ path: '/events', signal: ending.signal });
      await stream.next();
      const next = stream.next();
      const reason = new Error('enough');
      ending.abort(reason);
      await assert.rejects(next, reason);
    });
  }

  test('that could not be opened yet tries on, less often each time and when it may, however long the service is away [H312]', async (t) => {
    const later = (seconds: string) => json(429, {}, { 'retry-after': seconds });
    const away = [(reply: ServerResponse) => void reply.destroy(), json(503, {})];
    const dependencies = new TestClientDependencies(0);
    const answering = inLane(...away, later('80'), json(502, {}), ...away, later('3600'), json(502, {}), events('data: 1\n\n'));
    const onStep = ({ kind }: ClientStep) => kind === 'wait' && queueMicrotask(() => dependencies.endWaits());
    const { connection, received } = await open(t, answering, { dependencies, timeoutSeconds: 40, onStep });
    assert.equal((await connection.stream({ path: '/events' }).next()).value?.data, '1');
    assert.equal(received.length, 9);
    const timeouts = [40, 75];
    assert.deepEqual(
      dependencies.waits.filter((seconds) => !timeouts.includes(seconds)),
      [0.5, 1, 100, 4, 8, 16, 750, 30],
    );
  });

  test('without `retryUnreachable` is refused where nobody listens, and tries on once it was open', async (t) => {
    const ending = new AbortController();
    let waits = 0;
    const onStep = ({ kind }: ClientStep) => {
      waits += kind === 'wait' ? 1 : 0;
      if (waits === 4) ending.abort(new Error('enough'));
    };
    const { connection, close } = await open(t, events('data: 1\n\n'), { retryUnreachable: false, onStep });
    const stream = connection.stream({ path: '/events', signal: ending.signal });
    assert.equal((await stream.next()).value?.data, '1');
    await close();
    await assert.rejects(stream.next(), /enough/);
    await assert.rejects(connection.stream({ path: '/events' }).next(), NetworkError);
    assert.equal(waits, 4);
  });
});
