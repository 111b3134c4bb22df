import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { runProgram } from '../support/program.ts';

test('the demonstration of sign-in ends with a verified answer in the history, a person who left and one who signed out', async () => {
  const demo = fileURLToPath(new URL('../../examples/demo-sign-in/demo.ts', import.meta.url));
  const { exitCode, stdout, stderr } = await runProgram([process.execPath, demo]);
  assert.equal(exitCode, 0, stdout + stderr);
  assert.match(stdout, /dana +signs in, and is at \/console; may read, work, respond, manage/);
  assert.match(stdout, /mia +approves: NOT_AN_APPROVER/);
  assert.match(stdout, /the history says: human:dana@example\.com, verified: true, by sign_in/);
  assert.match(stdout, /eli +is suspended, and gets 401/);
  assert.match(stdout, /dana +signs out, .*; then gets 401/);
});
