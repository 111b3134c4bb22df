import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { temporaryFolder } from './support/folder.ts';
import { runProgram } from './support/program.ts';

/** What a test does that passes, and the error that nobody catches. */
const bodies = {
  'a rejection after a promise': "await null; Promise.reject(new Error('nobody catches this')); await turn();",
  'an error thrown in a timer after a promise':
    "await null; setTimeout(() => { throw new Error('nobody catches this'); }, 1); await turn();",
  'a rejection after the tests have ended':
    "process.once('beforeExit', () => setTimeout(() => Promise.reject(new Error('nobody catches this')), 1));",
  'an error thrown after the tests have ended':
    "process.once('beforeExit', () => setTimeout(() => { throw new Error('nobody catches this'); }, 1));",
};

describe('An error that nobody catches', () => {
  for (const [name, body] of Object.entries(bodies))
    test(`fails the run of tests, with its stack: ${name}`, async (t) => {
      const file = join(temporaryFolder(t), 'passes.test.mjs');
      const turn = 'const turn = () => new Promise((resolve) => setTimeout(resolve, 2));';
      writeFileSync(file, `import { test } from 'node:test';\n${turn}\ntest('passes', async () => { ${body} });\n`);
      const { NODE_TEST_CONTEXT: _, BATON_TEST_USAGE: __, ...env } = process.env;
      const preload = new URL('../scripts/test-process.ts', import.meta.url).href;
      const { exitCode, stdout } = await runProgram([process.execPath, '--test', '--import', preload, file], { env });
      assert.equal(exitCode, 1, stdout);
      assert.match(stdout, /^✔ passes/m, 'though no test does');
      assert.match(stdout, /Error: nobody catches this\n +at /);
    });
});
