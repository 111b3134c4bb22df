import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';
import { mountLocally } from '../../../src/handoff/http/local.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import type { Handler } from '../../../src/kit/http/endpoint.ts';
import { JsonText } from '../../../src/kit/http/response.ts';
import { MemoryBudget } from '../../../src/kit/memory-budget.ts';
import { defineRoute, type Route } from '../../../src/kit/route.ts';
import { Turns } from '../../../src/kit/turns.ts';

const getText = defineRoute({
  id: 'getText',
  method: 'GET',
  path: '/text',
  tag: 'texts',
  access: 'public',
  summary: 'Get a text',
  responses: { 200: { description: 'It.', schema: Type.String() } },
});

/** Makes a route that answers with a text. Returns what calls it for several tenants, which have the text at the same time; each may have 1 MB. */
function startText(text: string) {
  let waiting: (() => void)[] = [];
  let expected = 0;
  /** Resolves when all have called the handler. */
  const together = () =>
    new Promise<void>((resolve) => {
      waiting.push(resolve);
      if (waiting.length < expected) return;
      for (const start of waiting) start();
      waiting = [];
    });
  const { mount, call } = mountLocally<string, object>(() => undefined, {
    authorize: () => undefined,
    turns: new Turns(),
    answers: new MemoryBudget(4_000_000),
    ownerOf: (tenant) => ({ turns: tenant, answers: tenant }),
  });
  mount<Route>(getText, (async () => {
    await together();
    return new JsonText(JSON.stringify(text));
  }) as Handler<Route, string>);
  return (callers: readonly string[]) => {
    expected = callers.length;
    return Promise.all(
      callers.map((caller) =>
        call(getText, {}, { caller, signal: new AbortController().signal }).then(
          (found) => (found === text ? 'read' : 'another'),
          (error: unknown) => (error instanceof ServiceError ? error.status : error),
        ),
      ),
    );
  };
}

test('calls at once that read more than a tenant may hold get 503, and those of another tenant are answered', async () => {
  const call = startText('x'.repeat(400_000));
  assert.deepEqual(await call(['one', 'one', 'one', 'other']), ['read', 'read', 503, 'read']);
  assert.deepEqual(await call(['one', 'one']), ['read', 'read']);
});

test('calls that read little are answered however many there are', async () => {
  const call = startText('x'.repeat(60_000));
  assert.deepEqual(new Set(await call(Array.from({ length: 40 }, () => 'one'))), new Set(['read']));
});
