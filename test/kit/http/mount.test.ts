import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import Type from 'typebox';

import { createApp } from '../../../src/kit/http/app.ts';
import { createMount } from '../../../src/kit/http/mount.ts';
import { defineRoute } from '../../../src/kit/route.ts';

test('an answer leaves through its schema: what a closed one does not name stays inside, at any depth', async (t) => {
  const app = createApp({
    logger: pino({ level: 'silent' }),
    onAnswered: () => undefined,
    onLimited: () => undefined,
    isUnavailable: () => false,
  });
  t.after(() => app.close());
  const mount = createMount({ app, prefixes: () => [''], admit: () => undefined, admitStray: () => undefined, bodyLimit: () => 1024 });
  const closed = { additionalProperties: false };
  const Thing = Type.Object({ id: Type.String(), free: Type.Object({}) }, closed);
  const route = defineRoute({
    id: 'listThings',
    method: 'GET',
    path: '/things',
    tag: 'things',
    access: 'public',
    summary: 'List things',
    responses: { 200: { description: 'They.', schema: Type.Object({ things: Type.Array(Thing) }, closed) } },
  });
  const row = { id: '1', hash: 'secret', free: { any: 'thing' } };
  mount(route, () => ({ things: [row], hash: 'secret' }));
  const answer = await app.inject({ method: 'GET', url: '/things' });
  assert.equal(answer.statusCode, 200);
  assert.deepEqual(answer.json(), { things: [{ id: '1', free: { any: 'thing' } }] });
});

test('the large bodies in hand have a bound together, and each tenant its share: beyond is 503 until there is room again', async (t) => {
  const app = createApp({
    logger: pino({ level: 'silent' }),
    onAnswered: () => undefined,
    onLimited: () => undefined,
    isUnavailable: () => false,
  });
  t.after(() => app.close());
  const mount = createMount({
    app,
    prefixes: () => [''],
    admit(_route, request) {
      request.notes.tenantId = String(request.headers.tenant);
    },
    admitStray: () => undefined,
    bodyLimit: () => 1_000_000,
    bodyRoom: 1_000_000,
  });
  const route = defineRoute({
    id: 'putThing',
    method: 'POST',
    path: '/things',
    tag: 'things',
    access: 'public',
    summary: 'Keep a thing',
    body: Type.Object({ text: Type.String() }),
    responses: { 200: { description: 'Kept.', schema: Type.Object({}) } },
  });
  let waiting: (() => void)[] = [];
  let failing = false;
  mount(route, async () => {
    await new Promise<void>((resolve) => void waiting.push(resolve));
    if (failing) throw new Error('failed');
    return {};
  });
  const put = async (length: number, tenant = 'one') =>
    (await app.inject({ method: 'POST', url: '/things', headers: { tenant }, payload: { text: 'x'.repeat(length) } })).statusCode;
  const until = async (count: number) => {
    while (waiting.length < count) await new Promise(setImmediate);
  };
  const release = () => {
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  for (failing of [false, true, false]) {
    const first = put(150_000);
    await until(1);
    assert.equal(await put(150_000), 503);
    // A small one takes no room, and what is refused gives back what it took.
    const others = [put(60_000), put(90_000), ...['two', 'three', 'four'].map((tenant) => put(240_000, tenant))];
    await until(6);
    assert.equal(await put(240_000, 'five'), 503);
    release();
    assert.deepEqual(await Promise.all([first, ...others]), Array(6).fill(failing ? 500 : 200));
  }
});
