import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { runProgram } from './support/program.ts';

const folder = fileURLToPath(new URL('../packages/python/', import.meta.url));
const python = `${folder}.venv/newest/bin/python`;

test('The Python client works with the service', { skip: !existsSync(python) }, async () => {
  const { exitCode, stdout, stderr } = await runProgram([python, '-m', 'pytest', '-p', 'no:cacheprovider'], { cwd: folder });
  assert.equal(exitCode, 0, stdout + stderr);
});
