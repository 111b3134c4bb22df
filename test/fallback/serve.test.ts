import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { threeProviders } from '../support/chains.ts';
import { temporaryFolder } from '../support/folder.ts';
import { fallbackRefusal, startFallbackProcess } from '../support/process.ts';
import { runProgram } from '../support/program.ts';

const program = fileURLToPath(new URL('../../bin/fallback-service.js', import.meta.url));

test('fallback-service serve without --storage says that it keeps its chains in memory', async (t) => {
  const said = /^fallback: warning: Chains and results are kept in memory and end with this process\. Set --storage to keep them\.$/m;
  for (const [storage, expected] of [
    [undefined, true],
    ['memory', false],
  ] as const) {
    const program = await startFallbackProcess({ ...(storage === undefined ? {} : { storage }) });
    t.after(() => program.kill());
    assert.equal(await program.stop(), 0);
    assert.equal(said.test(program.errors.join('\n')), expected);
  }
});

test('a wrong command line of fallback-service exits with 2 and names the word', async () => {
  for (const [word, sentence] of [
    ['surplus', "error: unexpected argument 'surplus'"],
    ['--prot', "error: unknown option '--prot'"],
  ] as const) {
    const { code, errors } = await fallbackRefusal([word]);
    assert.equal(code, 2);
    assert.equal(errors[0], sentence);
  }
});

test('a PostgreSQL that refuses connections at the start of the fallback service is named', async () => {
  const { code, errors } = await fallbackRefusal(['--storage', 'postgres://user:secret@127.0.0.1:1/chains']);
  assert.equal(code, 1);
  assert.deepEqual(errors, [
    "fallback: The service could not start: PostgreSQL at 127.0.0.1:1/chains can't be used: connect ECONNREFUSED 127.0.0.1:1",
  ]);
});

test('fallback-service backup copies the database of a running service into a new file, from which another one starts', async (t) => {
  const folder = temporaryFolder(t);
  const storage = `sqlite://${join(folder, 'chains.db')}`;
  const copy = join(folder, 'copy.db');
  const running = await startFallbackProcess({ storage });
  t.after(() => running.kill());
  const made = await running.call('POST', '/chains', { body: threeProviders });
  assert.equal(made.status, 201, made.text);
  const backUp = () => runProgram([process.execPath, program, 'backup', copy, '--storage', storage]);
  const { exitCode, stdout, stderr } = await backUp();
  assert.equal(exitCode, 0, stderr);
  assert.equal(stdout, `Copied the database to ${copy}: ${statSync(copy).size} bytes.\n`);
  assert.equal(statSync(copy).mode & 0o777, 0o600);
  const restored = await startFallbackProcess({ storage: `sqlite://${copy}` });
  t.after(() => restored.kill());
  assert.equal((await restored.call('GET', `/chains/${made.body.id}`)).text, made.text);
  const again = await backUp();
  assert.deepEqual([again.exitCode, again.stderr], [1, `fallback: ${copy} exists, and is not overwritten.\n`]);
});
