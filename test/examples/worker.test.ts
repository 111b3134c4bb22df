import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { listenFor } from '../support/listen.ts';
import { type Program, startProgram } from '../support/program.ts';
import { adminKey, createPacket, startService, type TestService } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';
import { AsyncQueue } from '../support/streams.ts';
import { until } from '../support/until.ts';

const program = fileURLToPath(new URL('../../examples/worker/worker.ts', import.meta.url));

/** Starts the example in a separate process; resolves when it waits for work, after those that are already waiting. */
async function startWorker(t: TestContext, service: TestService, address: string, environment: Record<string, string>): Promise<Program> {
  const before = service.handoff.waiting();
  const env = {
    PATH: process.env.PATH,
    NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
    SERVICE_URL: address,
    SERVICE_API_KEY: adminKey,
    ...environment,
  };
  const worker = startProgram([process.execPath, program], { t, env });
  await until(() => service.handoff.waiting() !== before);
  return worker;
}

/** A server for the page that the workers fetch; the test answers each request. */
async function startPage(t: TestContext): Promise<{ url: string; asked: AsyncQueue<ServerResponse> }> {
  const asked = new AsyncQueue<ServerResponse>();
  const server = createServer((_, reply) => asked.put(reply));
  return { url: `${(await listenFor(t, server)).url}/`, asked };
}

test('A packet fails once when the service refuses its result, and the worker takes the next', async (t) => {
  const service = await startService(t, { settings: { SERVICE_PACKET_BYTES_BUSINESS: '20000' } });
  const address = await service.handoff.start();
  const { url, asked } = await startPage(t);
  const worker = await startWorker(t, service, address, {});
  for (const [status, page] of [
    ['failed', 'x'.repeat(20_000)],
    ['completed', 'short'],
  ] as const) {
    const { id } = await createPacket(service, { context: { summary: 'Fetch it', custom: { url } } });
    (await asked.next()).end(page);
    await worker.printed(new RegExp(`^${status} ${id}`));
    const { actions } = (await service.call('GET', `/packets/${id}`)).body;
    const errors = actions.failed.map(({ error }: { error: string }) => error.slice(0, 33));
    assert.deepEqual(errors, status === 'failed' ? ['ApiError: The body is larger than'] : []);
  }
});

for (const store of storesOfSeveral) {
  test(`A packet goes on to another worker when one is killed or frozen past its lease, on ${store.name}`, async (t) => {
    const service = await startService(t, { store });
    const address = await service.handoff.start();
    const { url, asked } = await startPage(t);
    // Waiting requests are served in order, so the next holder of the packet is known.
    const killed = await startWorker(t, service, address, { WORKER: 'killed' });
    const frozen = await startWorker(t, service, address, { WORKER: 'frozen' });
    const last = await startWorker(t, service, address, { WORKER: 'last', LEASE_SECONDS: '1' });
    const { id } = await createPacket(service, { context: { summary: 'Fetch it', custom: { url } } });
    const packet = async () => (await service.call('GET', `/packets/${id}`)).body;
    const holder = async () => (await packet()).claimed_by.agent_id;

    await asked.next();
    assert.equal(await holder(), 'killed');
    killed.child.kill('SIGKILL');
    await once(killed.child, 'exit');
    service.clock.turn(60);
    await service.handoff.runOnce.sweep();

    const heldBack = await asked.next();
    assert.equal(await holder(), 'frozen');
    frozen.child.kill('SIGSTOP');
    service.clock.turn(60);
    await service.handoff.runOnce.sweep();

    const answered = await asked.next();
    assert.equal(await holder(), 'last');
    // The worker works for longer than its lease, and renews it.
    const { expires_at } = (await packet()).lease;
    service.clock.turn(0.5);
    await until(async () => (await packet()).lease.expires_at !== expires_at);
    answered.end('of the last');
    assert.equal((await last.printed(/^completed /)).input, `completed ${id}`);

    const { text } = await service.call('GET', `/packets/${id}`);
    heldBack.end('of the frozen');
    frozen.child.kill('SIGCONT');
    await frozen.printed(new RegExp(`^lost ${id}: The packet has no lease`));
    assert.equal((await service.call('GET', `/packets/${id}`)).text, text);
    assert.deepEqual((await packet()).context.artifacts, [{ key: 'page', value: 'of the last' }]);
    const { events } = (await service.call('GET', `/packets/${id}/history`)).body;
    assert.deepEqual(
      events.map(({ event_type, actor }: { event_type: string; actor: string }) => `${event_type} ${actor}`),
      [
        `created agent:frontline`,
        'claimed agent:killed',
        'lease_expired system:sweeper',
        'claimed agent:frozen',
        'lease_expired system:sweeper',
        'claimed agent:last',
        'completed agent:last',
      ],
    );
  });
}
