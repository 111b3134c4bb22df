import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startCliBench } from '../../support/cli.ts';
import { cliProgram } from '../../support/cli-program.ts';
import { startProgram } from '../../support/program.ts';
import { adminKey, createPacket } from '../../support/service.ts';

test('packets watch prints each event of a real service exactly once, also when its connection breaks', async (t) => {
  const { service, address, home } = await startCliBench(t);
  const env = { PATH: process.env.PATH ?? '', HOME: home, SERVICE_URL: address, SERVICE_API_KEY: adminKey };
  const watch = ['packets', 'watch', '--status', 'created,claimed', '--verbose', '--format', 'json'];
  const program = startProgram([process.execPath, cliProgram, ...watch], { t, env });
  await program.logged(/^< 200/);

  const { id } = await createPacket(service);
  await program.printed(/packet\.created/);
  service.handoff.app.server.closeAllConnections();
  // Events during the disconnection, one of them not subscribed to.
  await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'back' } });
  await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } });
  await program.printed(/packet\.claimed/);
  const { id: other } = await createPacket(service);
  await program.printed(new RegExp(other));
  const printed = program.lines.map((line) => JSON.parse(line)).map(({ type, packet_id }) => `${type} ${packet_id}`);
  assert.deepEqual(printed, [`packet.created ${id}`, `packet.claimed ${id}`, `packet.created ${other}`]);
  const notes = program.stderr();
  assert.match(notes, /Trying again in 3 s\./);
  assert.ok(!notes.includes(adminKey));
});
