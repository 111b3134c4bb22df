import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { shareFallback } from '../../support/fallback.ts';

test('the template curl is a shell script that names the variables, for any name of the chain [F73]', async () => {
  const service = await shareFallback();
  const providers = [{ name: "it's $(id)", model_id: "openai/m'o`id`del", api_key_env: 'OPENAI_API_KEY' }];
  const chain = { name: '$(id)', providers };
  const { body } = await service.call('POST', '/export-template', { body: { chain, template_name: 'curl' } });
  assert.match(body.output, /-H "Authorization: Bearer \$OPENAI_API_KEY"/);
  // Defines curl as printf in the shell, which prints the arguments of curl line by line.
  const script = `curl() { printf '%s\\n' "$@"; }\n${body.output}`;
  const ran = spawnSync('sh', ['-c', script], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, OPENAI_API_KEY: 'from-the-environment' },
  });
  assert.equal(ran.status, 0, ran.stderr);
  const given = ran.stdout.split('\n');
  assert.ok(given.includes('Authorization: Bearer from-the-environment'));
  const { model } = JSON.parse(given.find((line) => line.startsWith('{'))!) as { model: string };
  assert.equal(model, "m'o`id`del");
});
