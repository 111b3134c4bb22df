import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createHandoffClient, NoAnswer, type Packet, type WorkHandler } from '../../src/client.ts';
import { fetchTransport, type Transport } from '../../src/kit/transport.ts';
import { ClientClock } from '../support/client-dependencies.ts';
import { adminKey, createPacket, startService } from '../support/service.ts';
import { until } from '../support/until.ts';

const failing = (thrown: unknown): WorkHandler => {
  return () => {
    throw thrown;
  };
};

/** Handlers, and how the error of the packet begins. */
const cases: Record<string, [WorkHandler, RegExp]> = {
  error: [failing(new RangeError('No such order')), /^RangeError: No such order$/],
  nothing: [failing(undefined), /^undefined$/],
  strange: [failing(Object.create(null)), /^The handler failed\.$/],
  letters: [failing(new Error('a\0b\ud83d')), /^Error: a b\ufffd$/],
  text: [(() => 'done') as never, /^TypeError: The handler returned string/],
  list: [(() => []) as never, /^TypeError: The handler returned an array/],
  number: [
    (() => ({ context: { custom: { rate: Number.NaN } } })) as never,
    /^TypeError: The handler returned what is no JSON: rate is NaN/,
  ],
  emoji: [(() => ({ context: { custom: { text: '\ud83d' } } })) as never, /^TypeError: The handler returned what is no JSON: text is cut/],
  big: [(() => ({ context: { custom: { id: 1n } } })) as never, /^TypeError: /],
  going: [() => ({ status: 'in_progress' }), /^TypeError: The handler returned the status in_progress/],
  field: [(() => ({ contxt: {} })) as never, /^ApiError: contxt is not a field/],
  large: [() => ({ context: { custom: { text: 'x'.repeat(2_000_000) } } }), /^ApiError: The body is larger than/],
};

test('A worker of the client completes packets, and fails each once with whatever its handler threw or returned', async (t) => {
  const service = await startService(t);
  const client = createHandoffClient({ baseUrl: await service.handoff.start(), apiKey: adminKey });
  const made = new Map<string, string>();
  for (const name of [...Object.keys(cases), 'plain', 'result'])
    made.set(name, (await createPacket(service, { context: { summary: name } })).id);
  const [{ metadata }] = (await service.call('GET', '/packets?limit=1')).body.packets;
  const seen: string[] = [];
  const stopping = new AbortController();
  const errors: unknown[] = [];
  const working = client.work(
    metadata.target_agent.id,
    (context) => {
      const { summary } = context.packet.context;
      seen.push(summary);
      if (summary === 'result') return { context: { custom: { answer: 42 } } };
      return cases[summary]?.[0](context);
    },
    { concurrency: 2, signal: stopping.signal, onError: (error) => errors.push(error) },
  );
  const find = async (name: string): Promise<Packet> => (await service.call('GET', `/packets/${made.get(name)}`)).body;
  await until(async () => (await service.call('GET', '/packets?status=created,claimed')).body.total === 0);
  stopping.abort();
  await working;
  for (const [name, [, sentence]] of Object.entries(cases)) {
    const { status, actions } = await find(name);
    assert.deepEqual([status, actions.failed.length], ['failed', 1], name);
    assert.match(actions.failed[0]!.error, sentence, name);
  }
  const { status, context } = await find('result');
  assert.deepEqual([status, context.custom.answer, (await find('plain')).status], ['completed', 42, 'completed']);
  assert.deepEqual(seen.sort(), [...made.keys()].sort());
  assert.equal(errors.length, Object.keys(cases).length);
});

test('A worker renews a lease, gives its packet back when it stops, and rejects when the service refuses its key', async (t) => {
  const service = await startService(t);
  const baseUrl = await service.handoff.start();
  const { id, metadata } = await createPacket(service);
  const agent = metadata.target_agent.id;
  const stopping = new AbortController();
  let lost: AbortSignal | undefined;
  const client = createHandoffClient({ baseUrl, apiKey: adminKey });
  const working = client.work(
    agent,
    (context) => {
      lost = context.lost;
      return new Promise(() => undefined);
    },
    { leaseSeconds: 1, graceSeconds: 0, signal: stopping.signal },
  );
  const packet = async (): Promise<Packet> => (await service.call('GET', `/packets/${id}`)).body;
  await until(async () => (await packet()).status === 'claimed');
  await until(() => service.logs.some((line) => line.includes('/lease"') && line.includes('"status":200')));
  assert.equal(lost!.aborted, false);
  stopping.abort();
  await working;
  assert.deepEqual([(await packet()).status, lost!.aborted], ['created', true]);
  await assert.rejects(
    createHandoffClient({ baseUrl, apiKey: 'svc_wrong' }).work(agent, () => undefined),
    { status_code: 401 },
  );
});

/** A service that gives one packet, answers the first renewals after ten seconds, and then nothing more. */
function fallingSilent(time: ClientClock, renewals: number): Transport {
  const packet = { id: 'p1', status: 'claimed', revision: 2, metadata: {}, lease: { token: 't' } };
  let [given, renewed] = [false, 0];
  return async ({ url, signal }) => {
    const answer = {
      status: 200,
      headers: {},
      chunks: async function* () {
        yield JSON.stringify(packet);
      },
    };
    if (url.endsWith('/claim-next') && !given) {
      given = true;
      return answer;
    }
    if (url.endsWith('/lease') && renewed < renewals) {
      renewed += 1;
      await time.sleep(10_000, signal);
      return answer;
    }
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
}

for (const [renewals, seconds] of [
  [0, 60],
  // The first renewal is sent after 20 seconds, the second 20 seconds after its answer.
  [1, 80],
  [2, 110],
] as const)
  test(`A worker whose service falls silent after ${renewals} renewals ends its work when the lease does, after ${seconds} seconds [H445]`, async () => {
    const time = new ClientClock();
    const client = createHandoffClient({
      baseUrl: 'http://localhost',
      apiKey: adminKey,
      dependencies: time,
      transport: fallingSilent(time, renewals),
    });
    const stopping = new AbortController();
    const errors: unknown[] = [];
    let lost: AbortSignal | undefined;
    const working = client.work(
      'resolver',
      (context) => {
        lost = context.lost;
        return new Promise((resolve) => lost!.addEventListener('abort', () => resolve(undefined)));
      },
      { signal: stopping.signal, onError: (error) => errors.push(error) },
    );
    await time.advance(seconds - 1);
    assert.equal(lost!.aborted, false);
    await time.advance(1);
    assert.equal(lost!.aborted, true);
    assert.match(String(errors.at(-1)), /The lease is over/);
    stopping.abort();
    await working;
  });

test('A question that is over is withdrawn although its packet changes meanwhile, before its handler goes on', async (t) => {
  const service = await startService(t);
  const packet = await createPacket(service);
  let changes = 0;
  let token = '';
  const transport: Transport = async (request) => {
    const isWithdrawal = request.method === 'DELETE' && request.url.endsWith('/question');
    if (isWithdrawal && changes < 2) {
      changes += 1;
      const body = { metadata: { tags: [`change-${changes}`] } };
      const changed = await service.call('PATCH', `/packets/${packet.id}`, { body, headers: { 'x-lease-token': token } });
      assert.equal(changed.status, 200, changed.text);
    }
    const answer = await fetchTransport(request);
    if (request.method === 'POST' && request.url.endsWith('/questions')) {
      token = request.headers['x-lease-token']!;
      service.clock.turn(61);
    }
    return answer;
  };
  const client = createHandoffClient({ baseUrl: await service.handoff.start(), apiKey: adminKey, transport });
  const stopping = new AbortController();
  const seen: unknown[] = [];
  await client.work(
    packet.metadata.target_agent.id,
    async ({ ask }) => {
      await assert.rejects(ask('Refund?', { on_timeout: 'keep', timeoutSeconds: 60 }), NoAnswer);
      seen.push((await service.call('GET', `/packets/${packet.id}`)).body.status, changes);
      stopping.abort();
    },
    { signal: stopping.signal, leaseSeconds: 600 },
  );
  assert.deepEqual(seen, ['claimed', 2]);
});
