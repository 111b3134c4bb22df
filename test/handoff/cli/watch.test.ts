import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { test } from 'node:test';

import { cliProgram, startCliBench } from '../../support/cli.ts';
import { adminKey, createPacket } from '../../support/service.ts';
import { AsyncQueue } from '../../support/streams.ts';

test('packets watch prints each event of a real service exactly once, also when its connection breaks', async (t) => {
  const { service, address, home } = await startCliBench(t);
  const env = { PATH: process.env.PATH ?? '', HOME: home, SERVICE_URL: address, SERVICE_API_KEY: adminKey };
  const watch = ['packets', 'watch', '--status', 'created,claimed', '--verbose', '--format', 'json'];
  const child = spawn(process.execPath, [cliProgram, ...watch], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  const printed = new AsyncQueue<string>();
  createInterface(child.stdout).on('line', (line) => printed.put(line));
  const notes = new AsyncQueue<string>();
  createInterface(child.stderr).on('line', (line) => notes.put(line));
  while (!(await notes.next()).startsWith('< 200'));

  const next = async () => {
    const { type, packet_id } = JSON.parse(await printed.next());
    return `${type} ${packet_id}`;
  };
  const { id } = await createPacket(service);
  assert.equal(await next(), `packet.created ${id}`);
  service.handoff.app.server.closeAllConnections();
  // Events during the disconnection, one of them not subscribed to.
  await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'back' } });
  await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } });
  assert.equal(await next(), `packet.claimed ${id}`);
  const { id: other } = await createPacket(service);
  assert.equal(await next(), `packet.created ${other}`);
  assert.ok(
    notes.all.some((line) => line.includes('Trying again in 3 s.')),
    notes.all.join('\n'),
  );
  assert.ok(!notes.all.join('\n').includes(adminKey));
});
