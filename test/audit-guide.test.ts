import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { temporaryFolder } from './support/folder.ts';
import { runProgram } from './support/program.ts';
import { findProgram } from './support/programs.ts';
import { createPacket, startService } from './support/service.ts';

const python = findProgram('python3');

test('the Python of docs/audit.md checks an export, and finds a changed entry', { skip: python === undefined }, async (t) => {
  const guide = readFileSync(new URL('../docs/audit.md', import.meta.url), 'utf8');
  const [, program] = /```python\n(.*?)```/s.exec(guide)!;
  assert.ok(program!.trimEnd().split('\n').length <= 45);
  const folder = temporaryFolder(t);
  const [script, file] = [join(folder, 'check.py'), join(folder, 'audit.jsonl')];
  writeFileSync(script, program!);
  const service = await startService(t);
  const { id } = await createPacket(service);
  const agent_id = 'wörker \u2028 "\u007f" \\ \u0001 😀';
  await service.call('POST', `/packets/${id}/claim`, { body: { agent_id, lease_seconds: 60 } });
  const { text } = await service.call('GET', '/audit/export');
  const check = async (lines: string) => {
    writeFileSync(file, lines);
    return runProgram([python!, script, file], { env: {} });
  };
  const whole = await check(text);
  assert.equal(whole.exitCode, 0, whole.stderr);
  assert.match(whole.stdout, /holds up to position \d+/);
  const wrong = await check(text.replace('"lease_seconds":60', '"lease_seconds":61'));
  assert.deepEqual([wrong.exitCode, /were changed/.test(wrong.stderr)], [1, true], wrong.stderr);
});
