import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, type TestContext, test } from 'node:test';
import Type from 'typebox';

import { createClient, ResponseError } from '../../src/kit/client.ts';
import { defineRoute } from '../../src/kit/route.ts';

const routes = {
  getThing: defineRoute({
    id: 'getThing',
    method: 'GET',
    path: '/things/{id}',
    tag: 'things',
    access: 'key',
    summary: 'Get a thing',
    params: Type.Object({ id: Type.String() }),
    query: Type.Object({ q: Type.String(), limit: Type.Integer() }),
    responses: { 200: { description: 'It.', schema: Type.Object({ id: Type.String() }) } },
  }),
  putThing: defineRoute({
    id: 'putThing',
    method: 'POST',
    path: '/things',
    tag: 'things',
    access: 'key',
    summary: 'Keep a thing',
    body: Type.Object({ name: Type.String() }),
    responses: { 204: { description: 'Done.' } },
  }),
};

/** A client, and a server that notes what comes and answers what it is told to. */
async function open(t: TestContext, status: number, text: string) {
  const came: { method?: string | undefined; url?: string | undefined; key: unknown; type: unknown; body: string }[] = [];
  const server = createServer(async (request, reply) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    came.push({ method: request.method, url: request.url, key: request.headers['x-api-key'], type: request.headers['content-type'], body });
    reply.writeHead(status, { 'retry-after': '7' }).end(text);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.after(() => server.close());
  const { port } = server.address() as { port: number };
  const client = createClient(routes, { baseUrl: `http://127.0.0.1:${port}/api`, headers: { 'x-api-key': 'k' } });
  return { client, came };
}

describe('A client', () => {
  test('sends a path and a query as they are meant, whatever they hold, and leaves out what is undefined', async (t) => {
    const { client, came } = await open(t, 200, '{"id":"x"}');
    const query = { q: 'a&b=ü', limit: undefined } as never;
    assert.deepEqual(await client.getThing({ params: { id: '../a/b?c' }, query }), { id: 'x' });
    assert.deepEqual(came, [{ method: 'GET', url: '/api/things/..%2Fa%2Fb%3Fc?q=a%26b%3D%C3%BC', key: 'k', type: undefined, body: '' }]);
  });

  test('sends a body as JSON, with headers of the call beside its own, and takes an answer without one', async (t) => {
    const { client, came } = await open(t, 204, '');
    assert.equal(await client.putThing({ body: { name: 'N' }, headers: { 'x-api-key': 'other' } }), undefined);
    assert.deepEqual(came, [{ method: 'POST', url: '/api/things', key: 'other', type: 'application/json', body: '{"name":"N"}' }]);
  });

  test('rejects with what the service said when it refuses', async (t) => {
    const { client } = await open(t, 429, '{"detail":"Too many.","code":"RATE_LIMITED"}');
    await assert.rejects(client.putThing({ body: { name: 'N' } }), (error) => {
      assert.ok(error instanceof ResponseError);
      assert.deepEqual([error.status, error.message, error.body.code], [429, 'Too many.', 'RATE_LIMITED']);
      assert.equal(error.headers.get('retry-after'), '7');
      return true;
    });
  });

  test('rejects with the status alone where what refuses does not speak our JSON', async (t) => {
    for (const text of ['<html>Bad Gateway</html>', '', '"text"', 'null']) {
      const { client } = await open(t, 502, text);
      await assert.rejects(client.putThing({ body: { name: 'N' } }), (error) => {
        assert.ok(error instanceof ResponseError);
        assert.deepEqual([error.status, error.message, error.body], [502, 'The service answered 502.', {}]);
        return true;
      });
    }
  });
});
