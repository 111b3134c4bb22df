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
