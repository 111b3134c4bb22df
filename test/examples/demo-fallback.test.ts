import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../src/kit/free-port.ts';
import { startFallback } from '../support/fallback.ts';
import { runProgram } from '../support/program.ts';
import { startService } from '../support/service.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Demonstration {
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

/** Runs `npm run demo:fallback` to its end. */
async function runDemo(environment: Record<string, string> = {}): Promise<Demonstration> {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const [command, file] = scripts['demo:fallback'].split(' ');
  assert.equal(command, 'node');
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...environment };
  const { exitCode, stdout, stderr } = await runProgram([process.execPath, file], { cwd: root, env });
  return { exitCode, output: stdout, errors: stderr };
}

/** Output that does not depend on the service. */
function assertTold({ exitCode, output, errors }: Demonstration): void {
  assert.equal(errors, '');
  assert.equal(exitCode, 0);
  assert.match(output, /^rate_limit +retry 2, claude +retry 2, mistral +retry 2, the prompt fails$/m);
  assert.match(output, /^auth_error +\(claude\) +\(mistral\) +\(the prompt fails\)$/m);
  assert.match(output, /^verdict pass: 20 of 20 served/m);
  assert.equal(output.match(/^prompt \d: gpt \w+ \(injected\), claude answered$/gm)?.length, 3);
  assert.match(output, /^prompts that reached them: gpt 0, claude 3, mistral 0$/m);
  assert.match(output, /^Export to portkey: demo-chain\.portkey\.json, with what it cannot say:\n\n {2}\S/m);
  assert.match(output, /^Export to litellm: demo-chain\.litellm\.yaml, with what it cannot say:\n\n {2}\S/m);
}

describe('npm run demo:fallback', () => {
  test('starts its own service and shows routing, a simulation, a drill whose backup answers, and exports', async () => {
    assertTold(await runDemo());
  });

  test('uses the service at SERVICE_URL and leaves no chain there', async (t) => {
    const environment = { SERVICE_LIVE_ALLOW: '127.0.0.1', SERVICE_API_KEYS: 'a-key' };
    const service = await startFallback(t, { flags: { allowLive: 'true' }, environment });
    const url = await service.fallback.start();
    assertTold(await runDemo({ SERVICE_URL: url, SERVICE_API_KEY: 'a-key' }));
    const chains = await service.call('GET', '/chains', { headers: { 'x-api-key': 'a-key' } });
    assert.deepEqual(chains.body, []);
  });

  test('starts its own service when the handoff service answers at SERVICE_URL, where service-cli looks for it', async (t) => {
    const handoff = await startService(t);
    const { output, exitCode, errors } = await runDemo({ SERVICE_URL: `${await handoff.handoff.start()}/api/v1`, SERVICE_API_KEY: 'k' });
    assert.equal(exitCode, 0, errors);
    assert.match(output, /^SERVICE_URL is the address of Baton handoff packet service; the demo starts its own/m);
  });

  test("explains in a sentence why it can't continue", async (t) => {
    const closed = await startFallback(t);
    const refused = await runDemo({ SERVICE_URL: await closed.fallback.start() });
    assert.equal(refused.exitCode, 1);
    assert.match(refused.errors, /^mode drill calls real providers; .* --allow-live\.\n$/);
    assert.deepEqual((await closed.call('GET', '/chains')).body, []);

    const nowhere = await runDemo({ SERVICE_URL: `http://127.0.0.1:${await freePort()}` });
    assert.equal(nowhere.exitCode, 1);
    assert.match(nowhere.errors, /^.*ECONNREFUSED.*\n$/);
  });
});
