import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { runProgram } from '../support/program.ts';
import { adminKey, startService } from '../support/service.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The output of a program of `examples/` that uses a service. */
async function run(file: string, address: string): Promise<string> {
  const env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    SERVICE_URL: address,
    SERVICE_API_KEY: adminKey,
  };
  const { stdout, stderr } = await runProgram([process.execPath, `${root}/examples/${file}`], { env });
  assert.equal(stderr, '');
  return stdout;
}

test('The example of the client creates, claims, is refused, completes and pages', async (t) => {
  const service = await startService(t);
  const written = await run('client.ts', await service.handoff.start());
  const id = written.match(/[0-9a-f-]{36}/)?.[0];
  assert.equal(
    written,
    `created ${id}\nrefused: CONFLICT, The packet is claimed; resolver holds it.\ncompleted, revision 3\n1 completed of frontline\n`,
  );
});
