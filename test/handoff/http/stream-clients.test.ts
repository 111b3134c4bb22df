import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { EventSource } from 'eventsource';
import { chromium } from 'playwright-core';

import { listenFor } from '../../support/listen.ts';
import { startProgram } from '../../support/program.ts';
import { findProgram, findPythonWith } from '../../support/programs.ts';
import { adminKey, createPacket, startService } from '../../support/service.ts';
import { AsyncQueue } from '../../support/streams.ts';

const python = findPythonWith('websockets');

test("Debian's python3-websockets subscribes, receives events, answers pings and closes", { skip: python === undefined }, async (t) => {
  const service = await startService(t);
  const address = await service.handoff.start();
  const script = fileURLToPath(new URL('../../support/websocket_client.py', import.meta.url));
  const command = [python!, script, `${address.replace('http', 'ws')}/ws?api_key=${adminKey}`];
  const { child } = startProgram(command, { t, input: { open: true } });
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into messages of every shape.
  const messages = new AsyncQueue<any>();
  createInterface(child.stdout!).on('line', (line) => messages.put(line.startsWith('{') ? JSON.parse(line) : line));
  assert.equal((await messages.next()).type, 'connected');
  child.stdin!.write('{"action": "subscribe", "channel": "status:created", "id": 1}\n');
  assert.deepEqual(await messages.next(), { type: 'subscribed', channel: 'status:created', channels: ['status:created'], id: 1 });
  const { id } = await createPacket(service);
  const event = await messages.next();
  assert.deepEqual([event.type, event.packet_id, event.data.status], ['packet.created', id, 'created']);
  // Without an answer to the first ping the connection would be closed at the second.
  for (let beat = 0; beat < 3; beat += 1) {
    service.clock.turn(30);
    await service.handoff.runOnce.heartbeat();
    assert.equal((await messages.next()).type, 'ping');
    child.stdin!.write(`{"action": "ping", "id": ${beat}}\n`);
    assert.deepEqual(((await messages.next()) as { id: number }).id, beat);
  }
  child.stdin!.end();
  assert.equal(await messages.next(), 'closed 1000');
});

const executablePath = findProgram('chromium');

describe('A browser', { skip: executablePath === undefined }, () => {
  /** An empty page on a separate origin. */
  async function startPage(t: TestContext): Promise<string> {
    const server = createServer((_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<title>page</title>'));
    return (await listenFor(t, server)).url;
  }

  test('on a page of an allowed origin receives events by EventSource and WebSocket, and EventSource resumes by itself; so does the eventsource package [H151]', async (t) => {
    const origin = await startPage(t);
    const service = await startService(t, { settings: { SERVICE_CORS_ORIGINS: origin } });
    const address = await service.handoff.start();
    const browser = await chromium.launch({ executablePath: executablePath!, args: ['--disable-gpu', '--disable-background-networking'] });
    t.after(() => browser.close());
    const page = await browser.newPage();
    const [sse, ws] = [new AsyncQueue<string>(), new AsyncQueue<string>()];
    await page.exposeFunction('tellSse', (text: string) => sse.put(text));
    await page.exposeFunction('tellWs', (text: string) => ws.put(text));
    await page.goto(origin);
    const streams = `
      const source = new EventSource('${address}/events?api_key=${adminKey}');
      source.addEventListener('connected', () => tellSse('connected'));
      source.addEventListener('packet.created', ({ data }) => tellSse(JSON.parse(data).packet_id));
      const socket = new WebSocket('${address.replace('http', 'ws')}/ws?api_key=${adminKey}');
      socket.addEventListener('message', ({ data }) => tellWs(JSON.parse(data).packet_id ?? JSON.parse(data).type));
      socket.addEventListener('close', ({ code }) => tellWs('closed ' + code));
      socket.addEventListener('open', () => socket.send('{"action":"subscribe","channel":"status:created"}'));`;
    await page.evaluate(streams);
    const own = new AsyncQueue<string>();
    const source = new EventSource(`${address}/events?api_key=${adminKey}`);
    t.after(() => source.close());
    source.addEventListener('connected', () => own.put('connected'));
    source.addEventListener('packet.created', ({ data }) => own.put(JSON.parse(data).packet_id));
    assert.deepEqual([await sse.next(), await own.next()], ['connected', 'connected']);
    assert.deepEqual(await ws.take(2), ['connected', 'subscribed']);
    const ids: string[] = [];
    const create = async () => void ids.push((await createPacket(service)).id);
    await create();
    await create();
    for (const heard of [sse, ws, own]) assert.deepEqual(await heard.take(2), ids);
    // Their connections break; after the reconnect each missed event arrives once.
    service.handoff.app.server.closeAllConnections();
    await create();
    await create();
    for (const heard of [sse, own]) assert.deepEqual(await heard.take(3), ['connected', ...ids.slice(2)]);
    await create();
    for (const heard of [sse, own]) assert.equal(await heard.next(), ids[4]);
  });

  test('on a page of an origin that is not allowed receives nothing from either', async (t) => {
    const origin = await startPage(t);
    const service = await startService(t, { settings: { SERVICE_CORS_ORIGINS: 'https://app.example' } });
    const address = await service.handoff.start();
    const browser = await chromium.launch({ executablePath: executablePath!, args: ['--disable-gpu', '--disable-background-networking'] });
    t.after(() => browser.close());
    const page = await browser.newPage();
    await page.goto(origin);
    const ends = await page.evaluate(`Promise.all([
      new Promise((resolve) => {
        const source = new EventSource('${address}/events?api_key=${adminKey}');
        source.addEventListener('connected', () => resolve('connected'));
        source.addEventListener('error', () => resolve(source.readyState === 2 ? 'refused' : 'broken'));
      }),
      new Promise((resolve) => {
        const socket = new WebSocket('${address.replace('http', 'ws')}/ws?api_key=${adminKey}');
        socket.addEventListener('open', () => resolve('connected'));
        socket.addEventListener('close', () => resolve('refused'));
      }),
    ])`);
    assert.deepEqual(ends, ['refused', 'refused']);
  });
});
