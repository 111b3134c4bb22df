import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fallbackRefusal, startFallbackProcess } from '../support/process.ts';

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
