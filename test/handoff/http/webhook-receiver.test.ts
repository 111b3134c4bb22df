import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { freePort } from '../../../src/kit/free-port.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { startProgram } from '../../support/program.ts';
import { findProgram } from '../../support/programs.ts';
import { createPacket } from '../../support/service.ts';
import { inMemory } from '../../support/store.ts';
import { deliveriesOf, register, secret, shareHooked } from '../../support/webhooks.ts';

const skip = findProgram('webhook') === undefined && 'no webhook on this machine';
test("Debian's webhook runs a command only for a signed delivery", { skip }, async (t) => {
  const folder = temporaryFolder(t);
  const rule = { match: { type: 'payload-hmac-sha256', secret, parameter: { source: 'header', name: 'X-SERVICE-Signature' } } };
  const hooks = [{ id: 'handoff', 'execute-command': '/bin/true', 'trigger-rule': rule }];
  writeFileSync(join(folder, 'hooks.json'), JSON.stringify(hooks));
  const port = await freePort();
  const flags = ['-hooks', join(folder, 'hooks.json'), '-ip', '127.0.0.1', '-port', String(port), '-verbose'];
  await startProgram([findProgram('webhook')!, ...flags], { t }).logged(/serving hooks/);
  const service = await shareHooked(t, inMemory);
  const url = `http://127.0.0.1:${port}/hooks/handoff`;
  const right = await register(service, url);
  const wrong = await register(service, url, { secret: 'another-secret-0123456789' });
  await createPacket(service);
  await service.handoff.runOnce.deliver();
  const statuses = await Promise.all([right, wrong].map(async ({ id }) => (await deliveriesOf(service, id))[0]));
  assert.deepEqual(
    statuses.map(({ status, last_error }) => [status, last_error]),
    [
      ['delivered', null],
      ['failed', 'http_status'],
    ],
  );
});
