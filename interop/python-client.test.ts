import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { createHandoff } from '../src/server.ts';

const run = promisify(execFile);
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const description = path('../openapi/handoff.json');

test('A client that openapi-python-client generates has every operation, and works', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'baton-python-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const config = join(folder, 'config.yaml');
  // No formatters; and lines of JSON, which the generator does not know, as text.
  writeFileSync(config, "post_hooks: []\ncontent_type_overrides: {'application/jsonl; charset=utf-8': text/plain}\n");
  const output = join(folder, 'client');
  const parameters = ['generate', '--path', description, '--config', config, '--output-path', output, '--fail-on-warning'];
  const { stderr } = await run(path('.venv/bin/openapi-python-client'), parameters);
  assert.equal(stderr, '');

  await using service = await createHandoff();
  const { stdout } = await run(path('.venv/bin/python'), [path('handoff_client.py'), output, service.url, service.adminKey!]);
  const { created, ...told } = JSON.parse(stdout);
  const { paths } = JSON.parse(readFileSync(description, 'utf8')) as { paths: Record<string, object> };
  const methods = Object.values(paths).flatMap((operations) =>
    Object.keys(operations).filter((name) => /^(get|post|put|patch|delete)$/.test(name)),
  );
  assert.deepEqual(told, {
    operations: methods.length,
    claimed: [true, 'claimed'],
    refused: [409, 'CONFLICT', 'b'],
    completed: ['completed', 'Done'],
    listed: [1, true],
    unknown: [404, 'NOT_FOUND'],
  });
  // What the generated types make of the packet is the packet that the service sent, except for the way they write times.
  const answer = await fetch(`${service.url}/api/v1/packets/${created.id}`, { headers: { 'x-api-key': service.adminKey! } });
  const sent = (await answer.json()) as { metadata: { created_at: string }; context: object };
  const metadata = { ...created.metadata, created_at: new Date(created.metadata.created_at).toISOString() };
  assert.deepEqual([metadata, created.context], [sent.metadata, sent.context]);
});
