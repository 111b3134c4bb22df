import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { freePort } from '../../src/kit/free-port.ts';
import { type Program, runProgram, startProgram } from '../support/program.ts';
import { findProgram } from '../support/programs.ts';
import { adminKey, createPacket, startService } from '../support/service.ts';
import { until } from '../support/until.ts';
import { register, secret, startHooked } from '../support/webhooks.ts';

const file = fileURLToPath(new URL('../../examples/python/agent.py', import.meta.url));
const python = findProgram('python3');

/** Starts a command of the example. Its pauses end with a line of its input. */
function startAgent(t: TestContext, command: string, environment: Record<string, string>): Program {
  const script = `import runpy, sys, time; time.sleep = lambda seconds: sys.stdin.readline(); sys.argv = ['agent.py', '${command}']; runpy.run_path('${file}', run_name='__main__')`;
  const env = { PATH: process.env.PATH, SERVICE_API_KEY: adminKey, ...environment };
  return startProgram([python!, '-c', script], { t, input: { open: true }, env });
}

describe('The example in Python', { skip: python === undefined }, () => {
  test('has at most 120 lines, and needs only the standard library', async () => {
    assert.ok(readFileSync(file, 'utf8').trimEnd().split('\n').length <= 120);
    // -I leaves out the packages of the user, -S those of the installation.
    const { exitCode, stderr } = await runProgram([python!, '-I', '-S', file], { env: { PATH: process.env.PATH } });
    assert.deepEqual(
      [exitCode, stderr.split('\n')[0]],
      [1, "An agent of the handoff service, on Python's standard library (3.9 or newer)."],
    );
  });

  test('claims the next packet, renews its lease, asks a person, and completes the packet with the answer', async (t) => {
    const service = await startService(t);
    const agent = startAgent(t, 'work', { SERVICE_URL: await service.handoff.start(), LEASE_SECONDS: '1' });
    await until(() => service.handoff.waiting() === 1);
    const { id } = await createPacket(service);
    const packet = async () => (await service.call('GET', `/packets/${id}`)).body;
    await until(async () => (await packet()).status === 'awaiting_human');
    const { hitl, claimed_by, lease } = await packet();
    assert.deepEqual([hitl.options, claimed_by.agent_id, lease.expires_at], [['Yes', 'No'], 'resolver', null]);
    await until(() => service.logs.some((line) => line.includes('/lease"') && line.includes('"status":200')));
    const answer = { response: 'Yes', responded_by: 'dana' };
    assert.equal((await service.call('POST', `/packets/${id}/respond`, { body: answer })).status, 200);
    await agent.printed(new RegExp(`^completed ${id}: Yes$`));
    const { status, context } = await packet();
    assert.deepEqual([status, context.custom.answer], ['completed', 'Yes']);
  });

  test('says so when its lease was lost, and goes on', async (t) => {
    const service = await startService(t);
    const agent = startAgent(t, 'work', { SERVICE_URL: await service.handoff.start() });
    const { id } = await createPacket(service);
    await until(async () => (await service.call('GET', `/packets/${id}`)).body.status === 'awaiting_human');
    assert.equal((await service.call('DELETE', `/packets/${id}`)).status, 204);
    await agent.printed(new RegExp(`^lost ${id}: The packet has no lease`));
    await until(() => service.handoff.waiting() === 1);
  });

  test('resumes a broken stream after the last event', async (t) => {
    const service = await startService(t);
    const agent = startAgent(t, 'listen', { SERVICE_URL: await service.handoff.start() });
    const listeners = async () => (await service.call('GET', '//metrics')).text.includes('service_open_connections{protocol="sse"} 1');
    await until(listeners);
    const { id } = await createPacket(service);
    await agent.printed(/ packet\.created created$/);
    service.handoff.app.server.closeAllConnections();
    assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'b' } })).status, 200);
    agent.child.stdin!.write('\n');
    await agent.printed(/ packet\.claimed claimed$/);
    assert.deepEqual(
      agent.lines.map((line) => line.split(' ')[1]),
      ['packet.created', 'packet.claimed'],
    );
  });

  test('takes a webhook with a genuine signature, and refuses others', async (t) => {
    const service = await startHooked(t);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/`;
    const agent = startAgent(t, 'receive', { WEBHOOK_SECRET: secret, PORT: String(port) });
    const forged = (headers: Record<string, string>) =>
      fetch(url, { method: 'POST', body: '{"type":"forged"}', headers }).then(
        ({ status }) => status,
        () => undefined,
      );
    await until(async () => (await forged({})) !== undefined);
    assert.equal(await forged({}), 401);
    assert.equal(await forged({ 'x-service-signature': `sha256=${'0'.repeat(64)}` }), 401);
    await register(service, url);
    await createPacket(service);
    await service.handoff.runOnce.deliver();
    await agent.printed(/^\S+ packet\.created$/);
    assert.equal(agent.lines.length, 1);
  });
});
