import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import { output, startCliBench } from '../../support/cli.ts';
import { looking } from '../../support/consistency.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { createPacket } from '../../support/service.ts';
import { onDisk } from '../../support/stores.ts';

test('service-cli exports the audit log in ranges, verifies the file without a service, and names the first entry that does not hold', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const folder = temporaryFolder(t);
  const [file, key, keyFile] = ['audit.jsonl', 'private.pem', 'public.pem'].map((name) => join(folder, name)) as [string, string, string];
  writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
  writeFileSync(keyFile, publicKey.export({ type: 'spki', format: 'pem' }));
  const bench = await startCliBench(t, { settings: { SERVICE_AUDIT_SIGNING_KEY: key } });
  for (let count = 0; count < 3; count += 1) await createPacket(bench.service);
  const { body: head } = await bench.service.call('GET', '/audit/head');
  writeFileSync(file, await output(bench, 'audit', 'export'));
  const verify = (...flags: string[]) => bench.run(['audit', 'verify', file, ...flags]);
  const whole = await verify('--key', keyFile, '--head', `${head.position}:${head.digest}`);
  assert.equal(whole.exitCode, 0, whole.stderr);
  assert.match(whole.stderr + whole.stdout, /holds: \d+ entries, positions 1 to \d+, were checked, and the signature of the head\./);

  const lines = readFileSync(file, 'utf8').split('\n');
  const edited = JSON.parse(lines[2]!);
  writeFileSync(file, lines.with(2, JSON.stringify({ ...edited, actor: 'human:eve' })).join('\n'));
  const wrong = await verify();
  assert.deepEqual([wrong.exitCode, /position 2 was changed/.test(wrong.stderr)], [1, true], wrong.stderr);
  assert.equal((await verify('--head', 'x:y')).exitCode, 2);
  assert.equal((await bench.run(['audit', 'verify', join(folder, 'none')])).exitCode, 2);
  assert.match(await output(bench, 'audit', 'export', '--as', 'csv'), /timestamp,action,resource/);
});

test('service-cli audit verify --database checks the audit logs in a database, with a head that was kept', async (t) => {
  const { url, drop } = await onDisk.open('handoff');
  t.after(drop);
  const bench = await startCliBench(t, { databaseUrl: url });
  const { id } = await createPacket(bench.service);
  const { body: head } = await bench.service.call('GET', '/audit/head');
  const file = join(temporaryFolder(t), 'head.json');
  writeFileSync(file, JSON.stringify(head));
  const verify = (...flags: string[]) =>
    bench.run(['audit', 'verify', '--database', ...flags], { environment: { SERVICE_DATABASE_URL: url } });
  const whole = await verify('--head', file);
  assert.deepEqual([whole.exitCode, whole.stderr], [0, `The audit logs hold: entries checked: ${head.position}, tenants: 1.\n`]);
  assert.match((await verify()).stderr, /Only a head that was kept elsewhere shows/);
  await looking(url, ({ query }) => query(`update events set actor = 'human:eve' where packet_id = '${id}'`));
  const wrong = await verify();
  assert.deepEqual([wrong.exitCode, /Tenant [\w-]+: The entry at position \d+ was changed/.test(wrong.stderr)], [1, true], wrong.stderr);
  assert.equal((await verify('some.jsonl')).exitCode, 2);
  assert.equal((await bench.run(['audit', 'verify'])).exitCode, 2);
  const none = { SERVICE_DATABASE_URL: `${url}-none` };
  assert.equal((await bench.run(['audit', 'verify', '--database'], { environment: none })).exitCode, 2);
});

test('service-cli exports and lists what filters select', async (t) => {
  const bench = await startCliBench(t);
  await createPacket(bench.service, { metadata: { ...createExample.metadata, subjects: ['customer:4711'] } });
  await createPacket(bench.service);
  const exported = await output(bench, 'audit', 'export', '--subject', 'customer:4711');
  assert.deepEqual(
    exported
      .trimEnd()
      .split('\n')
      .map((line) => Object.keys(JSON.parse(line))[0]),
    ['header', 'position', 'head'],
  );
  const { stdout } = await bench.run(['audit', '--subject', 'customer:4711', '--format', 'json']);
  assert.equal(JSON.parse(stdout).entries.length, 1);
});
