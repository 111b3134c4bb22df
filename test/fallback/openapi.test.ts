import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

import { startFallback } from '../support/fallback.ts';

interface Operation {
  operationId: string;
  security?: unknown[];
}

const exported = JSON.parse(readFileSync(new URL('../../openapi/fallback.json', import.meta.url), 'utf8')) as {
  openapi: string;
  paths: Record<string, Record<string, Operation>>;
};
const operations = Object.entries(exported.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

/** A path with an unknown id for each parameter. */
const concrete = (path: string) => path.replace(/\{\w+\}/g, '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b');

describe("The fallback service's API description", () => {
  test('is OpenAPI 3.1, and /openapi.json equals the committed file', async (t) => {
    const service = await startFallback(t);
    const answer = await service.call('GET', '/openapi.json');
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, exported);
    assert.match(exported.openapi, /^3\.1\./);
  });

  test('states for every operation whether it needs a key', async (t) => {
    const service = await startFallback(t, { environment: { SERVICE_API_KEYS: 'a-key' } });
    for (const { method, path, operation } of operations) {
      const isPublic = operation.security?.length === 0;
      const { status } = await service.call(method, concrete(path));
      assert.equal(status, isPublic ? 200 : 401, `${method} ${path}`);
    }
  });

  test('is shown by both explorers, whose files the service provides', async (t) => {
    const service = await startFallback(t);
    for (const path of ['/docs', '/redoc']) {
      const { status, text, headers } = await service.call('GET', path);
      assert.equal(status, 200);
      assert.match(String(headers['content-security-policy']), /default-src 'none'/);
      const files = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = '']) => file).filter((file) => !file.startsWith('data:'));
      assert.ok(files.length > 0);
      for (const file of files) assert.equal((await service.call('GET', file)).status, 200, file);
    }
  });
});
