import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import Type from 'typebox';

import { listen } from '../../../src/kit/http/app.ts';
import { HttpResponse, JsonText, TextPieces } from '../../../src/kit/http/response.ts';
import { MemoryBudget } from '../../../src/kit/memory-budget.ts';
import { defineRoute } from '../../../src/kit/route.ts';
import { mountOn, quietApp } from '../../support/app.ts';
import { closed } from '../../support/socket.ts';
import { until } from '../../support/until.ts';

/** More than the buffers of a connection hold, which grow with what the client reads. */
const length = 16_000_000;

/** An application that answers `/texts/{length}` with a text of this length, `/same` with one shared text, and `/pieces` with 60 pieces of a MB. */
async function startTexts(t: TestContext, maxAnswerBytes: number) {
  const app = quietApp();
  const connections: { client: Socket; socket: Socket }[] = [];
  t.after(async () => {
    for (const { client } of connections) client.destroy();
    await Promise.all(connections.map(({ socket }) => closed(socket)));
    await app.close();
  });
  const mount = mountOn(app, {
    admit(_route, request) {
      request.info.caller = String(request.headers.tenant);
    },
    answers: new MemoryBudget(maxAnswerBytes),
  });
  const getText = defineRoute({
    id: 'getText',
    method: 'GET',
    path: '/texts/{length}',
    tag: 'texts',
    access: 'public',
    summary: 'Get a text',
    params: Type.Object({ length: Type.String() }),
    responses: { 200: { description: 'It.', schema: Type.String() } },
  });
  mount(getText, ({ params }) => new JsonText(JSON.stringify('x'.repeat(Number(params.length)))));
  const { params: _, ...plain } = getText;
  const same = new JsonText(JSON.stringify('é'.repeat(length / 2)));
  mount({ ...plain, id: 'getSame', path: '/same' }, () => same);
  const pieces = { read: 0, open: 0 };
  async function* readPieces() {
    pieces.open += 1;
    try {
      for (let count = 0; count < 60; count += 1) {
        pieces.read += 1;
        yield count === 0 ? `["${'x'.repeat(1_000_000)}` : count === 59 ? '"]' : 'x'.repeat(1_000_000);
      }
    } finally {
      pieces.open -= 1;
    }
  }
  mount({ ...plain, id: 'getPieces', path: '/pieces' }, () => new HttpResponse<never>({ body: new TextPieces(readPieces()) }));
  const address = await listen(app, '127.0.0.1', 0);

  /** A client that stops reading once the answer has started, and the server's side of its connection. */
  async function standing(path: string, tenant: string): Promise<{ client: Socket; socket: Socket }> {
    const accepted = once(app.server, 'connection');
    const client = connect(Number(new URL(address).port), '127.0.0.1');
    client.on('error', () => undefined);
    client.pause();
    client.write(`GET ${path} HTTP/1.1\r\nHost: x\r\nTenant: ${tenant}\r\n\r\n`);
    const [socket] = (await accepted) as [Socket];
    connections.push({ client, socket });
    await until(() => socket.bytesWritten !== 0);
    return { client, socket };
  }
  const ask = async (path: string, tenant: string, method = 'GET') => {
    const found = await fetch(address + path, { method, headers: { tenant } });
    return { status: found.status, text: await found.text(), headers: found.headers };
  };
  return { standing, ask, pieces };
}

test('unread large answers share a limit, of which a tenant may use a quarter: beyond it 503 [H234]', async (t) => {
  const { standing, ask } = await startTexts(t, 8 * length + 100);
  const first = await standing(`/texts/${length}`, 'one');
  await standing(`/texts/${length}`, 'one');
  const refused = await ask(`/texts/${length}`, 'one');
  assert.equal(refused.status, 503, refused.text.slice(0, 200));
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.match(refused.text, /^\{"detail":"The service is handling as many large unread answers as it can\./);
  // Small answers are not counted, and other tenants have their own share.
  assert.equal((await ask('/texts/1000', 'one')).status, 200);
  const taken = await ask(`/texts/${length}`, 'two');
  assert.equal(taken.status, 200);
  assert.equal(taken.text.length, length + 2);
  for (const tenant of ['two', 'three', 'four']) for (let count = 0; count < 2; count += 1) await standing(`/texts/${length}`, tenant);
  assert.equal((await ask(`/texts/${length}`, 'five')).status, 503);

  const ended = closed(first.socket);
  first.client.destroy();
  await ended;
  assert.equal((await ask(`/texts/${length}`, 'one')).status, 200);
});

test('an answer sent to many clients at once counts once [H234]', async (t) => {
  const { standing, ask } = await startTexts(t, 4 * length + 100);
  for (let reader = 0; reader < 5; reader += 1) await standing('/same', 'one');
  assert.equal((await ask('/same', 'one')).status, 200);
  assert.equal((await ask(`/texts/${length}`, 'one')).status, 503);
});

test('the connection of a large answer is closed after a minute without progress, not while it is read slowly [H234]', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { standing } = await startTexts(t, 4 * length + 100);
  const still = await standing(`/texts/${length}`, 'one');
  const slow = await standing(`/texts/${length}`, 'two');
  t.mock.timers.tick(59_000);
  await new Promise(setImmediate);
  assert.equal(still.socket.destroyed, false);
  // Reads piece by piece, until more is sent.
  const before = slow.socket.bytesWritten;
  await until(() => {
    slow.client.read();
    return slow.socket.bytesWritten !== before;
  });
  t.mock.timers.tick(1_000);
  await closed(still.socket);
  assert.equal(slow.socket.destroyed, false);
  t.mock.timers.tick(60_000);
  await closed(slow.socket);
});

test('an answer in pieces holds a few of them, however large it is, reads on as its client reads, and ends with its connection [F46]', async (t) => {
  const { standing, ask, pieces } = await startTexts(t, 12 * 1024 * 1024);
  const { status, text } = await ask('/pieces', 'one');
  assert.deepEqual([status, text.length], [200, 59 * 1_000_000 + 4]);
  assert.deepEqual(pieces, { read: 60, open: 0 });
  const { client, socket } = await standing('/pieces', 'one');
  let received = 0;
  let held = 0;
  await until(() => {
    received += client.read()?.length ?? 0;
    held = Math.max(held, (pieces.read - 60) * 1_000_000 - received);
    return received > 10_000_000;
  });
  assert.ok(held < 30_000_000, `${held} bytes were read before the client read them`);
  assert.equal((await ask('/pieces', 'one')).status, 503);
  const ended = closed(socket);
  client.destroy();
  await ended;
  await until(() => pieces.open <= 0);
  const before = pieces.read;
  assert.deepEqual([(await ask('/pieces', 'one', 'HEAD')).status, pieces.read], [200, before]);
});
