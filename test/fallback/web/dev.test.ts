import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';

import { chainRequest, startFallback } from '../../support/fallback.ts';

test('npm run dev:web serves the pages from their sources, with reload, and forwards other requests to a service', async (t) => {
  const service = await startFallback(t);
  process.env.SERVICE_URL = await service.fallback.start();
  t.after(() => delete process.env.SERVICE_URL);
  const server = await createServer({
    configFile: fileURLToPath(new URL('../../../src/fallback/web/vite.config.ts', import.meta.url)),
    server: { port: 0, host: '127.0.0.1', watch: null },
    optimizeDeps: { noDiscovery: true },
    logLevel: 'silent',
  });
  t.after(() => server.close());
  await server.listen();
  const { port } = server.httpServer!.address() as { port: number };
  const address = `http://127.0.0.1:${port}`;

  const page = await fetch(`${address}/dashboard/`);
  assert.equal(page.status, 200);
  const text = await page.text();
  assert.match(text, /src="\/dashboard\/main\.tsx/);
  assert.match(text, /\/dashboard\/@vite\/client/);
  assert.equal((await fetch(`${address}/dashboard/main.tsx`)).status, 200);
  assert.equal((await fetch(`${address}/dashboard/chains/one`)).status, 200);

  // As the pages send it.
  const headers = { 'content-type': 'application/json', origin: address, 'sec-fetch-site': 'same-origin' };
  const created = await fetch(`${address}/chains`, { method: 'POST', headers, body: JSON.stringify(chainRequest()) });
  assert.equal(created.status, 201, await created.text());
  assert.equal((await service.call('GET', '/chains')).body.length, 1);
});
