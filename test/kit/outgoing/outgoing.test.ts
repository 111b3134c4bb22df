import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { parseAllowList } from '../../../src/kit/outgoing/addresses.ts';
import { OutgoingError, statusFailure } from '../../../src/kit/outgoing/failures.ts';
import { createGuard } from '../../../src/kit/outgoing/guard.ts';
import { Outgoing } from '../../../src/kit/outgoing/outgoing.ts';
import type { Resolve } from '../../../src/kit/outgoing/resolver.ts';
import { listenFor } from '../../support/listen.ts';
import { closed } from '../../support/socket.ts';
import { until } from '../../support/until.ts';

/** A timeout that no test reaches. */
const unhurried = { timeoutMs: 60_000, maxBytes: 64 * 1024 };

interface SenderOptions {
  allow?: readonly string[];
  resolve?: Resolve;
  connectionsPerOrigin?: number;
}

function startSender(t: TestContext, { allow = ['127.0.0.1'], resolve, connectionsPerOrigin = 32 }: SenderOptions = {}): Outgoing {
  const guard = createGuard({ allow: parseAllowList(allow), setting: 'ALLOW', ...(resolve === undefined ? {} : { resolve }) });
  const outgoing = new Outgoing({ guard, connectionsPerOrigin, ca: pem('authority') });
  t.after(() => outgoing.close());
  return outgoing;
}

const pem = (name: string) => readFileSync(new URL(`../../support/tls/${name}.pem`, import.meta.url), 'utf8');

/** Starts a server that ends with the test; returns its sockets and address. */
async function listen<S extends Server>(t: TestContext, server: S) {
  const { port, url, sockets } = await listenFor(t, server);
  return { server, sockets, port, url: `${url}/hook` };
}

const receiver = (t: TestContext, handle: RequestListener) => listen(t, createServer(handle));
/** A receiver that writes HTTP responses itself. */
const rawReceiver = (t: TestContext, handle: (socket: Socket) => void) => listen(t, createTcpServer(handle));

async function bodyOf(request: AsyncIterable<Buffer>): Promise<string> {
  return Buffer.concat(await Array.fromAsync(request)).toString();
}

const failsWith = (failure: string) => (error: unknown) => {
  assert.ok(error instanceof OutgoingError, String(error));
  assert.equal(error.failure, failure);
  return true;
};

describe('A request', () => {
  test('sends bytes and headers unchanged, and returns the status', async (t) => {
    const seen: unknown[] = [];
    const { url } = await receiver(t, async (request, response) => {
      seen.push([request.method, request.url, request.headers['x-test'], await bodyOf(request)]);
      response.writeHead(202, { 'x-answer': 'yes' }).end('fine');
    });
    const { status, headers } = await startSender(t).send({
      ...unhurried,
      url: `${url}?a=1&b=%20`,
      headers: { 'X-Test': '1' },
      body: 'ä😀',
    });
    assert.equal(status, 202);
    assert.equal(headers['x-answer'], 'yes');
    assert.deepEqual(seen, [['POST', '/hook?a=1&b=%20', '1', 'ä😀']]);
  });

  test('reuses a connection', async (t) => {
    const { url, sockets } = await receiver(t, (_request, response) => void response.end('fine'));
    const sender = startSender(t);
    for (let round = 0; round < 20; round += 1) assert.equal(await (await sender.open({ ...unhurried, url })).text(), 'fine');
    assert.equal(sockets.length, 1);
    assert.equal(sender.connections(), 1);
  });

  test('respects the limit of connections to an origin; other requests wait in a queue', async (t) => {
    const waiting: (() => void)[] = [];
    const { url, sockets } = await receiver(t, (_request, response) => void waiting.push(() => response.end()));
    const sender = startSender(t, { connectionsPerOrigin: 2 });
    const answers = Array.from({ length: 5 }, () => sender.open({ ...unhurried, url }).then((answer) => answer.text()));
    for (let answered = 0; answered < 5; answered += 1) {
      await until(() => waiting.length > 0);
      waiting.shift()!();
    }
    await Promise.all(answers);
    assert.equal(sockets.length, 2);
  });

  test('leaves the queue at its deadline', async (t) => {
    const { url, sockets } = await receiver(t, () => undefined);
    const sender = startSender(t, { connectionsPerOrigin: 1 });
    const first = sender.open({ ...unhurried, url });
    await assert.rejects(sender.open({ ...unhurried, url, timeoutMs: 20 }), failsWith('timeout'));
    sender.close();
    await assert.rejects(first, failsWith('cancelled'));
    assert.ok(sockets.length <= 1);
  });

  test('does not follow redirects', async (t) => {
    let followed = 0;
    const other = await receiver(t, (_request, response) => {
      followed += 1;
      response.end();
    });
    for (const status of [301, 302, 303, 307, 308]) {
      const { url } = await receiver(t, (_request, response) => void response.writeHead(status, { location: other.url }).end());
      const answer = await startSender(t).send({ ...unhurried, url });
      assert.equal(answer.status, status);
      assert.equal(statusFailure(status), 'redirect_refused');
    }
    assert.equal(followed, 0);
  });

  /** A receiver that answers the first request of each connection, and closes it after reading a second one completely. */
  const closingAtTheSecond = async (t: TestContext) => {
    const bodies: string[] = [];
    const { url, sockets } = await rawReceiver(t, (socket) => {
      let count = 0;
      socket.on('data', (chunk) => {
        count += 1;
        bodies.push(chunk.toString().split('\r\n\r\n')[1]!);
        if (count > 1) return void socket.destroy();
        socket.write('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      });
    });
    return { url, sockets, bodies };
  };

  test('that is idempotent is sent again on a new connection when a reused one breaks', async (t) => {
    const { url, sockets, bodies } = await closingAtTheSecond(t);
    const sender = startSender(t);
    for (const body of ['one', 'two', 'three']) {
      assert.equal((await (await sender.open({ ...unhurried, url, body, idempotent: true })).text()).length, 0);
    }
    assert.deepEqual(bodies, ['one', 'two', 'two', 'three', 'three']);
    assert.equal(sockets.length, 3);
    assert.equal(sender.connections(), 1);
  });

  test('by POST reaches the receiver at most once when a reused connection breaks', async (t) => {
    const { url, sockets, bodies } = await closingAtTheSecond(t);
    const sender = startSender(t);
    await (await sender.open({ ...unhurried, url, body: 'one' })).text();
    await assert.rejects(sender.open({ ...unhurried, url, body: 'two' }), failsWith('connection_reset'));
    assert.deepEqual(bodies, ['one', 'two']);
    assert.deepEqual([sockets.length, sender.connections()], [1, 0]);
    await (await sender.open({ ...unhurried, url, body: 'three' })).text();
    assert.deepEqual(bodies, ['one', 'two', 'three']);
  });

  test('by POST uses a new connection when the receiver has closed the idle one', async (t) => {
    const bodies: string[] = [];
    const { url, sockets } = await rawReceiver(t, (socket) => {
      socket.once('data', (chunk) => {
        bodies.push(chunk.toString().split('\r\n\r\n')[1]!);
        socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
      });
    });
    const sender = startSender(t);
    for (const body of ['one', 'two', 'three']) {
      await (await sender.open({ ...unhurried, url, body })).text();
      await closed(sockets.at(-1)!);
    }
    assert.deepEqual(bodies, ['one', 'two', 'three']);
    assert.equal(sockets.length, 3);
  });

  test('is sent only once when a new connection is reset', async (t) => {
    const { url, sockets } = await rawReceiver(t, (socket) => socket.on('data', () => socket.resetAndDestroy()));
    await assert.rejects(startSender(t).send({ ...unhurried, url, body: 'one' }), failsWith('connection_reset'));
    assert.equal(sockets.length, 1);
  });

  test('can be cancelled', async (t) => {
    const cancel = new AbortController();
    const { url } = await receiver(t, () => cancel.abort());
    await assert.rejects(startSender(t).open({ ...unhurried, url, signal: cancel.signal }), failsWith('cancelled'));
  });
});

describe('A failure has a class', () => {
  test('connection_refused', async (t) => {
    const { url, server } = await receiver(t, () => undefined);
    server.close();
    await assert.rejects(startSender(t).send({ ...unhurried, url }), failsWith('connection_refused'));
  });

  test('connection_reset: before the response, within its head, and if it is not HTTP', async (t) => {
    const ways: ((socket: Socket) => void)[] = [
      (socket) => socket.resetAndDestroy(),
      (socket) => socket.end(),
      (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-'),
      (socket) => socket.end('220 mail.test ESMTP\r\n'),
      (socket) => socket.end(`HTTP/1.1 200 OK\r\nX-Large: ${'a'.repeat(100_000)}\r\n\r\n`),
      (socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: other\r\n\r\n'),
    ];
    for (const way of ways) {
      const { url } = await rawReceiver(t, (socket) => socket.once('data', () => way(socket)));
      await assert.rejects(startSender(t).send({ ...unhurried, url }), failsWith('connection_reset'), way.toString());
    }
  });

  test('timeout: no response, an endless head, and endless 1xx responses', async (t) => {
    const ways: ((socket: Socket) => unknown)[] = [
      () => undefined,
      (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-'),
      (socket) => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(10)),
    ];
    t.mock.timers.enable({ apis: ['setTimeout'] });
    for (const way of ways) {
      const arrived = Promise.withResolvers<void>();
      const { url, sockets } = await rawReceiver(t, (socket) =>
        socket.once('data', () => {
          way(socket);
          arrived.resolve();
        }),
      );
      const sender = startSender(t);
      const sent = assert.rejects(sender.send({ ...unhurried, url, timeoutMs: 50 }), failsWith('timeout'), way.toString());
      await arrived.promise;
      t.mock.timers.tick(50);
      await sent;
      assert.equal(sender.connections(), 0);
      await closed(sockets[0]!);
    }
  });

  test('dns_error: no such name, and a look-up that takes too long', async (t) => {
    const unknown = startSender(t, { resolve: () => Promise.reject(Object.assign(new Error(), { code: 'ENOTFOUND' })) });
    await assert.rejects(unknown.send({ ...unhurried, url: 'https://nowhere.test/' }), failsWith('dns_error'));
    const guard = createGuard({ allow: parseAllowList([]), setting: 'ALLOW', resolve: () => new Promise(() => undefined), lookupMs: 20 });
    const slow = new Outgoing({ guard });
    await assert.rejects(slow.send({ ...unhurried, url: 'https://slow.test/' }), failsWith('dns_error'));
    slow.close();
  });

  test('tls_error: self-signed, expired, for another host, and no TLS at all', async (t) => {
    const resolve: Resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    for (const name of ['self-signed', 'expired', 'elsewhere']) {
      const { port } = await listen(
        t,
        createTlsServer({ key: pem(name), cert: pem(name) }, (_request, response) => void response.end()),
      );
      const sender = startSender(t, { resolve });
      await assert.rejects(sender.send({ ...unhurried, url: `https://receiver.test:${port}/` }), failsWith('tls_error'), name);
    }
    const { port } = await receiver(t, () => undefined);
    await assert.rejects(startSender(t, { resolve }).send({ ...unhurried, url: `https://receiver.test:${port}/` }), failsWith('tls_error'));
  });

  test('none over TLS with a valid certificate', async (t) => {
    const { port } = await listen(
      t,
      createTlsServer({ key: pem('good'), cert: pem('good') }, (_request, response) => void response.end()),
    );
    const sender = startSender(t, { resolve: async () => [{ address: '127.0.0.1', family: 4 }] });
    assert.equal((await sender.send({ ...unhurried, url: `https://receiver.test:${port}/` })).status, 200);
  });
});

describe('An exchange is bounded by the bytes on its connection', () => {
  /** Writes as fast as it is read until the socket is closed; resolves with the number of bytes. */
  async function flood(socket: Socket, piece: Buffer): Promise<number> {
    let written = 0;
    while (!socket.destroyed) {
      written += piece.length;
      if (!socket.write(piece)) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed(socket)]);
    }
    return written;
  }

  /** What a flooded receiver had written when it was cut off, without what both kernels buffer for a connection. */
  const buffered = 8 * 1024 * 1024;

  const interim = Buffer.from('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'.repeat(1_000));
  const extension = Buffer.from(`1;x=${'a'.repeat(60_000)}`);

  for (const [name, head, piece, outcome] of [
    ['endless interim responses', '', interim, 'connection_reset'],
    ['an interim response that never ends', 'HTTP/1.1 103 Early Hints\r\n', Buffer.from('x: y\r\n'.repeat(10_000)), 'connection_reset'],
    ['an endless chunk extension', 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;x=', extension, 'too_large'],
    [
      'endless chunks of one byte with extensions',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n',
      Buffer.from('1;x=yyyyyyyyyyyyyyyyyyyyyyyyy\r\na\r\n'.repeat(1_000)),
      'too_large',
    ],
  ] as const) {
    test(`${name} end it`, async (t) => {
      const written = Promise.withResolvers<number>();
      const { url } = await rawReceiver(t, (socket) =>
        socket.once('data', () => {
          socket.write(head);
          flood(socket, piece).then(written.resolve, written.reject);
        }),
      );
      const sender = startSender(t);
      const exchange = sender.open({ ...unhurried, url }).then((answer) => answer.text());
      await assert.rejects(exchange, failsWith(outcome));
      assert.ok((await written.promise) < buffered, `${await written.promise} bytes`);
      assert.equal(sender.connections(), 0);
    });
  }

  test('ten interim responses are taken, eleven are not', async (t) => {
    let count = 10;
    const { url } = await rawReceiver(t, (socket) => {
      socket.on('data', () => socket.write(`${'HTTP/1.1 102 Processing\r\n\r\n'.repeat(count)}HTTP/1.1 204 No Content\r\n\r\n`));
    });
    const sender = startSender(t);
    assert.equal((await sender.send({ ...unhurried, url })).status, 204);
    count = 11;
    await assert.rejects(sender.send({ ...unhurried, url }), failsWith('connection_reset'));
  });

  test('a connection that is used again starts to count anew, over TLS too', async (t) => {
    const { port, sockets } = await listen(
      t,
      createTlsServer({ key: pem('good'), cert: pem('good') }, (_request, response) => void response.end('a'.repeat(60_000))),
    );
    const sender = startSender(t, { resolve: async () => [{ address: '127.0.0.1', family: 4 }] });
    for (let round = 0; round < 20; round += 1)
      assert.equal((await (await sender.open({ ...unhurried, url: `https://receiver.test:${port}/` })).text()).length, 60_000);
    assert.equal(sockets.length, 1);
  });
});

describe('The address guard at connect', () => {
  const bait = (t: TestContext) => listen(t, createTcpServer());

  test('refuses every notation of a private address, and sends nothing', async (t) => {
    const { port, sockets } = await bait(t);
    const sender = startSender(t, { allow: [] });
    for (const host of ['127.0.0.1', '127.1', '2130706433', '0x7f.1', '[::ffff:127.0.0.1]', 'localhost', '0.0.0.0', '127。0。0。1']) {
      for (const scheme of ['http', 'https']) {
        await assert.rejects(sender.send({ ...unhurried, url: `${scheme}://${host}:${port}/` }), failsWith('address_refused'), host);
      }
    }
    assert.equal(sockets.length, 0);
    assert.equal(sender.connections(), 0);
  });

  test('refuses a name that has moved to a private address since it was checked', async (t) => {
    const { port, sockets } = await bait(t);
    let address = '8.8.8.8';
    const resolve: Resolve = async () => [{ address, family: 4 }];
    const guard = createGuard({ allow: parseAllowList([]), setting: 'ALLOW', resolve });
    assert.equal(await guard.problem(`https://rebound.test:${port}/`), undefined);
    address = '127.0.0.1';
    const sender = new Outgoing({ guard });
    await assert.rejects(sender.send({ ...unhurried, url: `https://rebound.test:${port}/` }), failsWith('address_refused'));
    assert.equal(sockets.length, 0);
    sender.close();
  });

  test('connects to the checked address, not to the result of a second look-up', async (t) => {
    const { port, sockets } = await receiver(t, (_request, response) => void response.end());
    let lookups = 0;
    const resolve: Resolve = async () => {
      lookups += 1;
      return [{ address: lookups === 1 ? '127.0.0.1' : '127.0.0.2', family: 4 }];
    };
    const sender = startSender(t, { allow: ['127.0.0.1'], resolve });
    assert.equal((await sender.send({ ...unhurried, url: `http://flipping.test:${port}/` })).status, 200);
    assert.deepEqual([lookups, sockets.length], [1, 1]);
  });

  test('refuses a name with one private address among public ones, of either family and in any place', async (t) => {
    const publics = [
      { address: '8.8.8.8', family: 4 },
      { address: '2606:4700:4700::1111', family: 6 },
    ];
    for (const address of [
      '127.0.0.1',
      '10.0.0.1',
      '169.254.169.254',
      '::1',
      'fd00::1',
      'fe80::1',
      '::ffff:127.0.0.1',
      '64:ff9b::7f00:1',
    ]) {
      const forbidden = { address, family: address.includes(':') ? 6 : 4 };
      for (const answers of [
        [forbidden, ...publics],
        [...publics, forbidden],
      ]) {
        const resolve: Resolve = async () => answers;
        await assert.rejects(
          startSender(t, { allow: [], resolve }).send({ ...unhurried, url: 'https://mixed.test/' }),
          failsWith('address_refused'),
          address,
        );
      }
    }
  });
});

describe('An answer', () => {
  test('is decided by its status; up to 64 KiB are read and the connection is reused [H129]', async (t) => {
    const { url, sockets } = await receiver(t, (_request, response) => void response.end('a'.repeat(60_000)));
    const sender = startSender(t, { connectionsPerOrigin: 1 });
    for (let round = 0; round < 3; round += 1) assert.equal((await sender.send({ ...unhurried, url })).status, 200);
    assert.equal(sockets.length, 1);
  });

  test('that is endless is cut at 64 KiB [H129]', async (t) => {
    const { url, sockets } = await receiver(t, (_request, response) => {
      response.writeHead(200);
      const more = () => {
        while (!response.destroyed && response.write('a'.repeat(10_000)));
      };
      response.on('drain', more);
      more();
    });
    const sender = startSender(t);
    assert.equal((await sender.send({ ...unhurried, url })).status, 200);
    await closed(sockets[0]!);
    assert.equal(sender.connections(), 0);
  });

  test('that arrives too slowly is cut at the deadline [H129]', async (t) => {
    const { url, sockets } = await receiver(t, (_request, response) => {
      response.writeHead(200);
      response.write('a');
    });
    // The deadline must be later than the headers of the answer, which the test can't see arrive.
    assert.equal((await startSender(t).send({ ...unhurried, url, timeoutMs: 1000 })).status, 200);
    await closed(sockets[0]!);
  });

  test('is not decompressed', async (t) => {
    const bomb = gzipSync(Buffer.alloc(10_000_000));
    const { url } = await receiver(t, (_request, response) => void response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb));
    const sender = startSender(t);
    const answer = await sender.open({ ...unhurried, url });
    assert.equal((await answer.text()).length, bomb.toString().length);
  });

  test('after informational ones counts, and so does a 204', async (t) => {
    const { url } = await rawReceiver(t, (socket) => {
      socket.once('data', () => socket.write('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n'));
    });
    assert.equal((await startSender(t).send({ ...unhurried, url })).status, 204);
  });

  test('streams: chunks arrive as they are sent', async (t) => {
    let sendMore: () => void = () => undefined;
    const { url } = await receiver(t, (_request, response) => {
      response.write('data: one\n\n');
      sendMore = () => void response.end('data: two\n\n');
    });
    const answer = await startSender(t).open({ ...unhurried, url });
    const chunks: string[] = [];
    for await (const chunk of answer.body) {
      chunks.push(chunk.toString());
      sendMore();
    }
    assert.deepEqual(chunks, ['data: one\n\n', 'data: two\n\n']);
  });

  test('streams: a body over the limit is too_large, one that stalls is timeout, a broken one is connection_reset', async (t) => {
    const long = await receiver(t, (_request, response) => void response.end('a'.repeat(1001)));
    const sender = startSender(t);
    await assert.rejects((await sender.open({ ...unhurried, url: long.url, maxBytes: 1000 })).text(), failsWith('too_large'));
    const stopped = await receiver(t, (_request, response) => void response.write('a'));
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const stalled = await sender.open({ ...unhurried, url: stopped.url, timeoutMs: 50 });
    const read = assert.rejects(stalled.text(), failsWith('timeout'));
    t.mock.timers.tick(50);
    await read;
    const broken = await rawReceiver(t, (socket) =>
      socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc')),
    );
    await assert.rejects((await sender.open({ ...unhurried, url: broken.url })).text(), failsWith('connection_reset'));
    assert.equal(sender.connections(), 0);
  });

  test('streams: stopping early closes the connection', async (t) => {
    const { url, sockets } = await receiver(t, (_request, response) => void response.write('one'));
    const sender = startSender(t);
    const answer = await sender.open({ ...unhurried, url });
    for await (const chunk of answer.body) {
      assert.equal(chunk.toString(), 'one');
      break;
    }
    await closed(sockets[0]!);
    assert.equal(sender.connections(), 0);
  });

  test('streams: an unread body is cut at the deadline', async (t) => {
    const { url, sockets } = await receiver(t, (_request, response) => void response.write('one'));
    const sender = startSender(t);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await sender.open({ ...unhurried, url, timeoutMs: 50 });
    t.mock.timers.tick(50);
    await closed(sockets[0]!);
    assert.equal(sender.connections(), 0);
  });
});
