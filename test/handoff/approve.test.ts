import assert from 'node:assert/strict';
import { test } from 'node:test';

import {
  type ActionDecision,
  ActionFailed,
  ActionRejected,
  type ApprovalOptions,
  CallChanged,
  createHandoffClient,
  type HandoffClient,
  NoAnswer,
  type Packet,
  QuestionChanged,
} from '../../src/client.ts';
import { fetchTransport, type Transport } from '../../src/kit/transport.ts';
import { adminKey, createPacket, startService, type TestService } from '../support/service.ts';
import { until } from '../support/until.ts';

/** The clients of an agent and of a person, each with a key of its own. */
async function parties(service: TestService) {
  const baseUrl = await service.handoff.start();
  const as = async (rights: object) => {
    const { body, text } = await service.call('POST', '/keys', { body: { name: 'k', ...rights } });
    assert.ok(body.key, text);
    return createHandoffClient({ baseUrl, apiKey: body.key });
  };
  const agent = await as({ scopes: ['read', 'work'], agents: ['refunds'] });
  return { baseUrl, agent, dana: await as({ scopes: ['read', 'respond'], responder: 'dana' }) };
}

/** Decides about a call once it is asked about; resolves to what was asked. */
async function decide(person: HandoffClient, call: string, decision: object): Promise<NonNullable<Packet['hitl']>> {
  const { id, hitl } = await until(async () => {
    const { packets } = await person.listAwaiting({ query: { view: 'full' } });
    return (packets as Packet[]).find((packet) => packet.hitl?.action?.call_id === call);
  });
  await person.respondPacket({ params: { id }, body: { responded_by: 'dana', ...decision } as never });
  return hitl!;
}

const agentOptions: ApprovalOptions = { agent: 'refunds', decisions: ['approve', 'edit', 'respond'] };
const refundOf = (agent: HandoffClient) => {
  const ran: unknown[] = [];
  const refund = agent.requiresApproval(
    function refund({ amount }: { amount: number }, _context: { toolCallId: string }) {
      ran.push(amount);
      if (amount < 0) throw new RangeError('Negative');
      return { refunded: amount };
    },
    { ...agentOptions, reason: 'Over 50' },
  );
  return { ran, call: (toolCallId: string, amount = 500) => refund({ amount }, { toolCallId }) };
};

test('The client asks about an action, and gets the same decision when it asks again [H722]', async (t) => {
  const { agent, dana } = await parties(await startService(t));
  const given = {
    approve: {},
    edit: { arguments: { amount: 4 } },
    reject: { message: 'No' },
    respond: { message: 'Ask again in May' },
  };
  for (const [decision, more] of Object.entries(given) as [ActionDecision['decision'], Record<string, unknown>][]) {
    const approve = () => agent.approve('refund', { amount: 5 }, { ...agentOptions, call_id: decision });
    const [found] = await Promise.all([approve(), decide(dana, decision, { decision, ...more })]);
    assert.deepEqual(
      [found.decision, found.message, found.arguments, found.approved],
      [decision, more.message ?? null, more.arguments ?? { amount: 5 }, decision === 'approve' || decision === 'edit'],
    );
    assert.deepEqual((await approve()).packet.id, found.packet.id);
  }
  await assert.rejects(agent.approve('refund', { amount: 6 }, { ...agentOptions, call_id: 'approve' }), CallChanged);
  const edited = await agent.approve('refund', { amount: 4 }, { ...agentOptions, call_id: 'edit' });
  assert.equal(edited.decision, 'edit', 'a framework that carries the edit asks with what was approved');
});

test('A function that requires an approval runs once, with what was approved [H723]', async (t) => {
  const { agent, dana } = await parties(await startService(t));
  const { ran, call } = refundOf(agent);
  const [done] = await Promise.all([call('once'), decide(dana, 'once', { decision: 'edit', arguments: { amount: 40 } })]);
  assert.deepEqual([done, ran], [{ refunded: 40 }, [40]]);
  assert.deepEqual([await call('once'), ran], [{ refunded: 40 }, [40]], 'the result is that of the first call');

  await Promise.all([assert.rejects(call('fails', -1), RangeError), decide(dana, 'fails', { decision: 'approve' })]);
  await assert.rejects(
    call('fails', -1),
    (error) => error instanceof ActionFailed && /refund failed: RangeError: Negative/.test(error.message),
  );
  await Promise.all([
    assert.rejects(call('no'), (error) => error instanceof ActionRejected && error.message === 'Too much'),
    decide(dana, 'no', { decision: 'reject', message: 'Too much' }),
  ]);
  const [told] = await Promise.all([call('told'), decide(dana, 'told', { decision: 'respond', message: 'Paid already' })]);
  assert.deepEqual([told, ran], ['Paid already', [40, -1]]);
  const nameless = agent.requiresApproval((_: { amount: number }) => 1, { ...agentOptions, tool: 'refund' });
  await assert.rejects(nameless({ amount: 1 }), /needs a call_id/);
  const large = agent.requiresApproval((_: { n: number }) => 'x'.repeat(70_000), { ...agentOptions, tool: 'large', call_id: 'large' });
  const [{ length }] = await Promise.all([large({ n: 1 }), decide(dana, 'large', { decision: 'approve' })]);
  assert.equal(length, 70_000, 'a result that is too large is not reported, the end is');
  assert.equal(await large({ n: 1 }), null);
});

test('What is over is asked anew in its packet, and in a new one where that has ended [H721]', async (t) => {
  const service = await startService(t);
  const { agent, dana } = await parties(service);
  const { ran, call } = refundOf(agent);
  const options = { ...agentOptions, call_id: 'late' };
  await assert.rejects(agent.approve('refund', { amount: 500 }, { ...options, timeoutSeconds: 0.01 }), NoAnswer);
  service.clock.turn(60);
  const [first] = await Promise.all([
    agent.approve('refund', { amount: 500 }, options),
    until(async () => decide(dana, 'late', { decision: 'approve' })),
  ]);
  const questions = async () => (await agent.listQuestions({ params: { id: first.packet.id } })).questions.map(({ state }) => state);
  assert.deepEqual(await questions(), ['timed_out', 'answered']);
  // The approval expires; the packet has not ended yet.
  service.clock.turn(86_400);
  await Promise.all([call('late'), until(async () => decide(dana, 'late', { decision: 'approve' }))]);
  assert.deepEqual([await questions(), ran], [['timed_out', 'answered', 'answered'], [500]]);

  await Promise.all([
    agent.approve('refund', { amount: 1 }, { ...options, call_id: 'gone' }),
    decide(dana, 'gone', { decision: 'approve' }),
  ]);
  service.clock.turn(86_400);
  await service.handoff.runOnce.sweep();
  const [second] = await Promise.all([call('gone', 1), decide(dana, 'gone~2', { decision: 'approve' })]);
  assert.deepEqual([second, ran], [{ refunded: 1 }, [500, 1]]);
});

test('An execution that may have happened is asked about again, also where a rule would approve [H720]', async (t) => {
  const service = await startService(t);
  const { agent, dana } = await parties(service);
  const { ran, call } = refundOf(agent);
  assert.equal((await service.call('PUT', '/policies/small', { body: { rules: [{ then: { approve: 'small' } }] } })).status, 201);
  const { packet, arguments_digest } = await agent.approve('refund', { amount: 500 }, { ...agentOptions, call_id: 'begun' });
  // A process that begins and dies.
  const { execution } = await agent.startExecution({ params: { id: packet.id }, body: { arguments_digest } });
  const [done, hitl] = await Promise.all([call('begun'), decide(dana, 'begun', { decision: 'approve' })]);
  assert.deepEqual([done, ran], [{ refunded: 500 }, [500]]);
  assert.equal(hitl.reason, `An execution began at ${execution.started_at} and may have happened.`);
});

test('A handler of a worker asks people by key, and asks about actions that it numbers within its packet', async (t) => {
  const service = await startService(t);
  const { baseUrl, dana } = await parties(service);
  const { id, metadata } = await createPacket(service);
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const errors: unknown[] = [];
  const client = createHandoffClient({ baseUrl, apiKey: adminKey });
  const working = client.work(
    metadata.target_agent.id,
    async ({ ask, requiresApproval }) => {
      const send = requiresApproval(({ text }: { text: string }) => text.toUpperCase(), { tool: 'send', exclude_source: false });
      const [first, second] = await Promise.all([ask('Refund?'), ask('Close?', { options: ['yes', 'no'] })]);
      await ask('Pay 100?', { key: 'pay' });
      const again = await ask('Pay 100?', { key: 'pay' });
      const changed = await ask('Pay 200?', { key: 'pay' }).catch((error: unknown) => error);
      assert.ok(changed instanceof QuestionChanged, String(changed));
      await assert.rejects(ask('Nobody?', { timeoutSeconds: 0.01 }), NoAnswer);
      const sent = [await send({ text: 'a' }), await send({ text: 'a' })];
      return { context: { custom: { answers: [first, second, again, changed.answer].map((answer) => answer?.response), sent } } };
    },
    { signal: stopping.signal, onError: (error) => errors.push(error) },
  );
  const answers = { 'Refund?': 'yes', 'Close?': 'no', 'Pay 100?': 'paid' };
  for (const [question, response] of Object.entries(answers)) {
    await until(async () => {
      const { hitl } = (await service.call('GET', `/packets/${id}`)).body as Packet;
      return hitl?.question === question && hitl.response === null;
    });
    const { status, text } = await service.call('POST', `/packets/${id}/respond`, { body: { response, responded_by: 'dana' } });
    assert.equal(status, 200, text);
  }
  for (const count of [1, 2]) await decide(dana, `${id}:${count}`, { decision: 'approve' });
  const done = await until(async () => {
    const { status, context } = (await service.call('GET', `/packets/${id}`)).body as Packet;
    return (status === 'completed' || status === 'failed') && { status, custom: context.custom };
  });
  assert.deepEqual(errors, []);
  assert.deepEqual(done, { status: 'completed', custom: { answers: ['yes', 'no', 'paid', 'paid'], sent: ['A', 'A'] } });
  stopping.abort();
  await working;
});

test('An answer that is given while a worker withdraws its question counts', async (t) => {
  const service = await startService(t);
  const { baseUrl } = await parties(service);
  const { id, metadata } = await createPacket(service);
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const transport: Transport = async (request) => {
    const answer = { response: 'just now', responded_by: 'dana' };
    if (request.method === 'DELETE') await service.call('POST', `/packets/${id}/respond`, { body: answer });
    return fetchTransport(request);
  };
  const client = createHandoffClient({ baseUrl, apiKey: adminKey, transport });
  let answered: string | undefined;
  await client.work(
    metadata.target_agent.id,
    async ({ ask }) => {
      answered = (await ask('Refund?', { timeoutSeconds: 0 })).response;
      stopping.abort();
    },
    { signal: stopping.signal },
  );
  assert.equal(answered, 'just now');
});
