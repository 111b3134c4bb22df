import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { runProgram } from '../support/program.ts';

test('the demonstration of approvals executes each approved refund once, also after its process died', async () => {
  const demo = fileURLToPath(new URL('../../examples/demo-approvals/demo.ts', import.meta.url));
  const { exitCode, stdout, stderr } = await runProgram([process.execPath, demo]);
  assert.equal(exitCode, 0, stdout + stderr);
  assert.match(stdout, /asks for 30: refunded 30/);
  assert.match(stdout, /died with exit code 1, before it executed/);
  assert.match(stdout, /started again: refunded 15000/);
  assert.match(stdout, /The ledger has 3 refunds/);
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const [, shown = ''] = /^```text\n(line 3 .*?)^```$/ms.exec(readme) ?? [];
  const printed = stdout.replaceAll(/, execution .*/g, ', execution ...');
  assert.ok(shown !== '' && printed.includes(shown), 'the README shows what it prints');
});
