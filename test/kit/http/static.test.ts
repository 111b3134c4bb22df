import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import type { FastifyInstance } from 'fastify';

import { mountStatic } from '../../../src/kit/http/static.ts';
import { appFor } from '../../support/app.ts';
import { temporaryFolder } from '../../support/folder.ts';

const script = 'console.log("built");\n';

/** A built application in a folder, and a file outside of it. */
function build(folder: string): void {
  mkdirSync(join(folder, 'dist/assets'), { recursive: true });
  writeFileSync(join(folder, 'secret.txt'), 'not for the web');
  writeFileSync(join(folder, 'dist/index.html'), '<!doctype html><title>Built</title>');
  writeFileSync(join(folder, 'dist/icon.svg'), '<svg/>');
  writeFileSync(join(folder, 'dist/assets/app-1a2b.js'), script);
  writeFileSync(join(folder, 'dist/assets/app-1a2b.js.br'), brotliCompressSync(script));
}

function serving(t: TestContext): { app: FastifyInstance; folder: string } {
  const folder = temporaryFolder(t);
  const app = appFor(t);
  mountStatic(app, { prefix: '/pages', folder: join(folder, 'dist'), notBuilt: 'Build it first.' });
  return { app, folder };
}

describe('A static application', () => {
  test('answers how to build it until it is built, and then serves it without a restart', async (t) => {
    const { app, folder } = serving(t);
    const before = await app.inject('/pages');
    assert.deepEqual([before.statusCode, before.json().detail], [503, 'Build it first.']);
    build(folder);
    assert.equal((await app.inject('/pages')).statusCode, 200);
  });

  test('serves its page for the prefix, with or without a slash, and for paths that do not look like files [F89]', async (t) => {
    const { app, folder } = serving(t);
    build(folder);
    for (const path of ['/pages', '/pages/', '/pages/chains/1', '/pages/chains/1?tab=2']) {
      const { statusCode, headers, body } = await app.inject(path);
      assert.equal(statusCode, 200, path);
      assert.match(body, /<title>Built/);
      assert.match(String(headers['content-type']), /^text\/html/);
      assert.equal(headers['cache-control'], 'no-cache');
    }
  });

  test('allows only same-origin scripts, styles and requests, and no framing [F89]', async (t) => {
    const { app, folder } = serving(t);
    build(folder);
    const policy = String((await app.inject('/pages')).headers['content-security-policy']);
    for (const rule of ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"])
      assert.ok(policy.includes(rule), rule);
    assert.ok(!policy.includes('unsafe'));
    assert.equal((await app.inject('/pages')).headers['x-content-type-options'], 'nosniff');
  });

  test('serves files with a digest in their name as immutable, compressed if accepted', async (t) => {
    const { app, folder } = serving(t);
    build(folder);
    const path = '/pages/assets/app-1a2b.js';
    const plain = await app.inject({ url: path, headers: { 'accept-encoding': 'gzip, br;q=0' } });
    assert.deepEqual([plain.body, plain.headers['content-encoding'], plain.headers.vary], [script, undefined, 'Accept-Encoding']);
    assert.match(String(plain.headers['cache-control']), /immutable/);
    assert.match(String(plain.headers['content-type']), /^text\/javascript/);
    const compressed = await app.inject({ url: path, headers: { 'accept-encoding': 'gzip, br' } });
    assert.equal(compressed.headers['content-encoding'], 'br');
    assert.equal(brotliDecompressSync(compressed.rawPayload).toString(), script);
    assert.equal((await app.inject('/pages/icon.svg')).headers['content-type'], 'image/svg+xml');
  });

  test('answers 404 for missing files and for files outside its folder', async (t) => {
    const { app, folder } = serving(t);
    build(folder);
    const paths = [
      '/pages/missing.js',
      '/pages/assets/missing',
      '/pages/assets/app-1a2b.js.br',
      '/pages/../secret.txt',
      '/pages/..%2fsecret.txt',
      '/pages/%2e%2e/secret.txt',
      '/pagesx',
    ];
    for (const path of paths) {
      const { statusCode, body } = await app.inject(path);
      assert.equal(statusCode, 404, path);
      assert.ok(!body.includes('not for the web'), path);
    }
  });
});
