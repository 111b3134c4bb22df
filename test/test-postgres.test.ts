import assert from 'node:assert/strict';
import { test } from 'node:test';

import { runProgram } from './support/program.ts';

const url = new URL('./support/postgres.ts', import.meta.url).href;

test('a program that has started the PostgreSQL of the tests ends with its own exit code', async () => {
  const text = `const { startPostgres } = await import('${url}'); await (await startPostgres()).stop(); process.exitCode = 3;`;
  const { exitCode, stderr } = await runProgram([process.execPath, '--input-type=module', '--eval', text]);
  assert.equal(exitCode, 3, stderr);
});
