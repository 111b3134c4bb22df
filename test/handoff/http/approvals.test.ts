import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, test } from 'node:test';

import { a2a } from '../../support/a2a.ts';
import { historyOf, packetIn, question } from '../../support/life.ts';
import { callTool, mcpRequest, messagesOf } from '../../support/mcp.ts';
import { type CallOptions, createPacket, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

const action = { tool: 'refund', arguments: { order: 'ORD-1', amount: 500 }, call_id: 'call-1' };
const requestFor = (more: object = {}, over: object = {}) => ({ agent: { id: 'refunds' }, action: { ...action, ...more }, ...over });

/** The keys of the tests: an agent's, bound to its id, and one for each person. */
async function keysOf(service: TestService, people: readonly string[]) {
  const make = async (rights: object) => {
    const { body, text } = await service.call('POST', '/keys', { body: { name: 'k', ...rights } });
    assert.ok(body.key, text);
    return body.key as string;
  };
  const agent = await make({ scopes: ['read', 'work'], agents: ['refunds'] });
  const of: Record<string, string> = {};
  for (const person of people) of[person] = await make({ scopes: ['read', 'respond'], responder: person });
  return { agent, of };
}

const ask = (service: TestService, body: object, options: CallOptions = {}) => service.call('POST', '/approvals', { body, ...options });
const decide = (service: TestService, id: string, body: object, options: CallOptions = {}) =>
  service.call('POST', `/packets/${id}/respond`, { body, ...options });
const start = (service: TestService, id: string, arguments_digest: string, options: CallOptions = {}) =>
  service.call('POST', `/packets/${id}/execution`, { body: { arguments_digest }, ...options });
const put = async (service: TestService, path: string, body: object) => {
  const { status, text } = await service.call('PUT', path, { body });
  assert.ok(status < 300, text);
};

/** The id of a new packet that asks. */
async function asked(service: TestService, key: string, more: object = {}, over: object = {}) {
  const answer = await ask(service, requestFor(more, over), { key });
  assert.equal(answer.status, 201, answer.text);
  return answer.body;
}

for (const store of stores) {
  describe(`Approvals, on ${store.name}`, () => {
    test('an agent asks about a call, a person approves it, and it is executed once [H435]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['dana']);
      const packet = await asked(service, agent);
      assert.equal(packet.status, 'awaiting_human');
      assert.deepEqual([packet.claimed_by.agent_id, packet.hitl.question, packet.hitl.exclude_source], ['refunds', 'Run refund?', true]);
      assert.equal(packet.hitl.action.arguments_digest, hash('sha256', '{"amount":500,"order":"ORD-1"}'));
      assert.deepEqual([packet.hitl.approvals, packet.hitl.step], [[], null]);
      assert.equal((await start(service, packet.id, packet.hitl.action.arguments_digest, { key: agent })).body.code, 'NOT_APPROVED');

      assert.equal((await decide(service, packet.id, { decision: 'maybe', responded_by: 'dana' }, { key: of.dana! })).status, 400);
      const answered = await decide(
        service,
        packet.id,
        // By whom is known by the key.
        { decision: 'approve', digest: packet.hitl.digest },
        { key: of.dana! },
      );
      assert.equal(answered.status, 200, answered.text);
      const { hitl, status } = answered.body;
      assert.deepEqual([status, hitl.response, hitl.responded_by], ['claimed', 'approve', 'dana']);
      const { by, decided_at, valid_until, ...decision } = hitl.decision;
      assert.deepEqual(decision, {
        ...{
          decision: 'approve',
          arguments: action.arguments,
          arguments_digest: packet.hitl.action.arguments_digest,
          message: null,
          policy: null,
          standing_id: null,
        },
      });
      assert.equal(Date.parse(valid_until) - Date.parse(decided_at), 86_400_000);
      const { key_id, ...who } = by[0];
      assert.match(key_id, /^[0-9a-f-]{36}$/);
      assert.deepEqual(who, { name: 'dana', verified: true, method: 'key', for: null, decision: 'approve', at: decided_at });
      const { details } = (await historyOf(service, packet.id)).find(({ event_type }) => event_type === 'hitl_responded')!;
      for (const [name, value] of Object.entries(hitl.decision)) assert.deepEqual(details[name], value, name);

      assert.equal((await start(service, packet.id, '0'.repeat(64), { key: agent })).body.code, 'DIGEST_MISMATCH');
      const first = await start(service, packet.id, decision.arguments_digest, { key: agent, headers: { 'Idempotency-Key': 'x' } });
      assert.equal(first.status, 201, first.text);
      assert.equal(first.body.execution.status, 'started');
      const again = await start(service, packet.id, decision.arguments_digest, { key: agent, headers: { 'Idempotency-Key': 'x' } });
      assert.deepEqual([again.status, again.body], [201, first.body], 'a lost answer is repeated');
      const other = await start(service, packet.id, decision.arguments_digest, { key: agent });
      assert.deepEqual([other.status, other.body.code, other.body.execution], [409, 'ALREADY_EXECUTED', first.body.execution]);

      const report = { status: 'succeeded', result: { refund: 'R-1' } };
      const path = `/packets/${packet.id}/execution`;
      assert.equal((await service.call('PATCH', path, { body: report, key: of.dana! })).status, 403);
      const ended = await service.call('PATCH', path, { body: report, key: agent });
      assert.deepEqual([ended.status, ended.body.status, ended.body.result], [200, 'succeeded', { refund: 'R-1' }]);
      assert.equal((await service.call('PATCH', path, { body: report, key: agent })).status, 409);
      assert.deepEqual((await service.call('GET', path, { key: agent })).body, ended.body);
      assert.equal((await service.call('GET', `/packets/${packet.id}`)).body.status, 'completed');
      const events = await historyOf(service, packet.id);
      assert.deepEqual(
        events.map(({ event_type }: { event_type: string }) => event_type),
        [
          ...['created', 'claimed', 'awaiting_human', 'approval_given', 'hitl_responded'],
          ...['execution_started', 'execution_succeeded', 'completed'],
        ],
      );
    });

    test('a new question starts a new approval and a new execution; the end of an earlier one is reported by its question [H430]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['dana']);
      const { key: other } = (await service.call('POST', '/keys', { body: { name: 'other', scopes: ['read', 'work'] } })).body;
      const { id, hitl } = await asked(service, agent);
      const path = `/packets/${id}/execution`;
      const approve = () => decide(service, id, { decision: 'approve', responded_by: 'dana' }, { key: of.dana! });
      const digest = hitl.action.arguments_digest;
      const statusOf = async () => (await service.call('GET', `/packets/${id}`)).body.status;
      const end = (question: string, status: string, key?: string) =>
        service.call('PATCH', `${path}?question_id=${question}`, { body: { status }, ...(key && { key }) });
      assert.equal((await approve()).status, 200);
      const { execution: first } = (await start(service, id, digest, { key: agent })).body;
      assert.deepEqual(
        [first.question_id, first.started_by.agent_id, typeof first.started_by.key_id, first.ended_at, first.result],
        [hitl.question_id, 'refunds', 'string', null, null],
      );
      service.clock.turn(86_401);
      await service.handoff.runOnce.sweep();
      assert.equal(await statusOf(), 'claimed', 'what was begun does not expire');
      const asking = { action: { ...action, call_id: undefined } };
      const again = await service.call('POST', `/packets/${id}/questions`, { body: asking, key: agent });
      assert.deepEqual([again.status, again.body.hitl.approvals, again.body.hitl.response], [201, [], null], again.text);
      assert.equal((await service.call('GET', path, { key: agent })).status, 404, 'the new one is not begun');
      assert.equal((await start(service, id, digest, { key: agent })).body.code, 'NOT_APPROVED');
      assert.equal((await approve()).status, 200);
      const { execution: second } = (await start(service, id, digest, { key: agent })).body;
      assert.notEqual(second.id, first.id);
      // By the key that started it, its family, or an admin's.
      assert.equal((await end(first.question_id, 'succeeded', other)).status, 403);
      const { body: keys } = await service.call('GET', '/keys');
      const own = keys.find(({ agents }: { agents: string[] | null }) => agents?.includes('refunds'));
      const { key: next } = (await service.call('POST', `/keys/${own.id}/rotate`, { body: { overlap_seconds: 60 } })).body;
      const ended = await end(first.question_id, 'succeeded', next);
      assert.deepEqual([ended.status, ended.body.id, ended.body.status], [200, first.id, 'succeeded'], ended.text);
      assert.equal(await statusOf(), 'claimed', 'the latest goes on');
      assert.equal((await end('nothing', 'succeeded', agent)).status, 404);
      assert.equal((await end(second.question_id, 'failed')).body.status, 'failed', 'by an admin key');
      assert.equal(await statusOf(), 'completed');
      const got = await service.call('GET', `${path}?question_id=${first.question_id}`, { key: next });
      assert.deepEqual([got.status, got.body.id], [200, first.id]);
    });

    test('an execution is not found by another packet, also beside a request of its own packet', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['dana']);
      const [one, other] = await Promise.all(['1', '2'].map((call_id) => asked(service, agent, { call_id })));
      for (const { id, hitl } of [one, other]) {
        assert.equal((await decide(service, id, { decision: 'approve', responded_by: 'dana' }, { key: of.dana! })).status, 200);
        assert.equal((await start(service, id, hitl.action.arguments_digest, { key: agent })).status, 201);
      }
      const path = `/packets/${one.id}/execution?question_id=${other.hitl.question_id}`;
      // Both in one turn of the event loop, so that they share a transaction.
      const [again, end] = await Promise.all([
        start(service, other.id, other.hitl.action.arguments_digest, { key: agent }),
        service.call('PATCH', path, { body: { status: 'failed' }, key: agent }),
      ]);
      assert.deepEqual([again.body.code, end.status], ['ALREADY_EXECUTED', 404]);
      assert.equal((await service.call('GET', `/packets/${other.id}/execution`)).body.status, 'started');
    });

    test('a packet has all that it was asked with, and ends when it is answered or rejected, with nothing to execute', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['dana']);
      const parent = await createPacket(service, {});
      const over = {
        ...{ agent: { id: 'refunds', name: 'Refunds', framework: 'crewai' }, reason: 'Charged twice', summary: 'A refund is due' },
        ...{ context: { custom: { case: 7 } }, tags: ['eu'], priority: 'high', responder: 'dana', timeout_seconds: 60 },
        ...{ on_timeout: 'expire', parent_packet_id: parent.id },
      };
      const { metadata, context, hitl, parent_packet_id, claimed_by, id } = await asked(service, agent, {}, over);
      assert.deepEqual(
        {
          agent: { id: metadata.source_agent.id, name: claimed_by.agent_name, framework: claimed_by.framework },
          ...{ reason: hitl.reason, summary: context.summary, context: { custom: context.custom }, tags: metadata.tags },
          ...{ priority: metadata.priority, responder: hitl.responder, timeout_seconds: hitl.timeout_seconds },
          ...{ on_timeout: hitl.on_timeout, parent_packet_id },
        },
        over,
      );
      const say = (packet: string, body: object) => decide(service, packet, { responded_by: 'dana', ...body }, { key: of.dana! });
      for (const [body, field] of [
        [{ decision: 'respond', message: 'x' }, 'decision'],
        [{ response: 'maybe' }, 'response'],
        [{ decision: 'approve', arguments: {} }, 'arguments'],
        [{ decision: 'edit' }, 'arguments'],
        [{ decision: 'approve', message: 'x' }, 'message'],
      ] as const) {
        const answer = await say(id, body);
        assert.deepEqual([answer.status, answer.body.field], [400, field], JSON.stringify(body));
      }
      const { id: other } = await asked(service, agent, { call_id: 'other', decisions: ['respond'] });
      assert.equal((await say(other, { decision: 'respond' })).body.field, 'message');
      assert.equal((await say(other, { decision: 'approve' })).body.field, 'decision');
      for (const [packet, word] of [
        [id, 'reject'],
        [other, 'respond'],
      ] as const) {
        const { status, body } = await say(packet, { decision: word, message: 'No' });
        assert.deepEqual([status, body.status, body.hitl.decision.decision, body.hitl.decision.message], [200, 'completed', word, 'No']);
        const none = await start(service, packet, body.hitl.decision.arguments_digest, { key: agent });
        assert.deepEqual([none.status, none.body.code], [409, 'NOT_APPROVED']);
      }
    });

    test('an execution in a leased packet needs the token of the lease', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['dana']);
      const source = { id: 'refunds', name: 'R', framework: 'x' };
      const { id } = await createPacket(service, { metadata: { source_agent: source, target_agent: source } }, agent);
      const claim = { agent_id: 'refunds', agent_name: 'R', lease_seconds: 600 };
      const { token } = (await service.call('POST', `/packets/${id}/claim`, { body: claim, key: agent })).body.lease;
      const leased = { key: agent, headers: { 'X-Lease-Token': token } };
      const { hitl } = (await service.call('POST', `/packets/${id}/questions`, { body: { action }, ...leased })).body;
      assert.equal((await decide(service, id, { decision: 'approve', responded_by: 'dana' }, { key: of.dana! })).status, 200);
      const end = (options: CallOptions) => service.call('PATCH', `/packets/${id}/execution`, { body: { status: 'failed' }, ...options });
      assert.equal((await start(service, id, hitl.action.arguments_digest, { key: agent })).body.code, 'LEASE_LOST');
      assert.equal((await start(service, id, hitl.action.arguments_digest, leased)).status, 201);
      assert.equal((await end({ key: agent })).body.code, 'LEASE_LOST');
      assert.deepEqual([(await end(leased)).status, (await service.call('GET', `/packets/${id}`)).body.status], [200, 'claimed']);
    });

    test('of fifty concurrent starts one gets 201', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['dana']);
      const { id, hitl } = await asked(service, agent);
      assert.equal((await decide(service, id, { response: 'approve', responded_by: 'dana' }, { key: of.dana! })).status, 200);
      const answers = await Promise.all(Array.from({ length: 50 }, () => start(service, id, hitl.action.arguments_digest, { key: agent })));
      assert.equal(answers.filter(({ status }) => status === 201).length, 1);
      assert.equal(answers.filter(({ body }) => body.code === 'ALREADY_EXECUTED').length, 49);
    });

    test('the same call of an agent is the same packet, whatever became of it; another call under its id is refused', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['dana']);
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask(service, requestFor(), { key: agent })));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 200, 200, 200, 200, 201]);
      const [{ body }] = answers as [(typeof answers)[0]];
      assert.equal(new Set(answers.map((answer) => answer.body.id)).size, 1);
      assert.equal(
        (await decide(service, body.id, { decision: 'reject', message: 'Too much', responded_by: 'dana' }, { key: of.dana! })).status,
        200,
      );
      const again = await ask(service, requestFor(), { key: agent });
      assert.deepEqual([again.status, again.body.status, again.body.hitl.decision.message], [200, 'completed', 'Too much']);
      const changed = await ask(service, requestFor({ arguments: { order: 'ORD-1', amount: 501 } }), { key: agent });
      assert.deepEqual([changed.status, changed.body.code, changed.body.packet_id], [409, 'CALL_CHANGED', body.id]);
      assert.notEqual((await asked(service, agent, { call_id: 'call-2' })).id, body.id);
    });

    test('the key that asks, and keys of its family, never approve [H562]', async () => {
      const service = await shareService(store);
      const { agent } = await keysOf(service, []);
      const { id } = await asked(service, agent);
      assert.equal((await decide(service, id, { decision: 'approve', responded_by: 'x' }, { key: agent })).status, 403);
      const rights = { scopes: ['read', 'work', 'respond', 'manage'], agents: ['refunds'], responder: 'self' };
      const { key, id: keyId } = (await service.call('POST', '/keys', { body: { name: 'both', ...rights } })).body;
      const when = { properties: { tool: { const: 'named' } } };
      await put(service, '/policies/own', { rules: [{ when, then: { ask: [{ from: ['self'] }] } }] });
      const { body: child } = await service.call('POST', '/keys', { body: { name: 'child', ...rights }, key });
      const { body: next } = await service.call('POST', `/keys/${keyId}/rotate`, { body: { overlap_seconds: 60 } });
      assert.ok(child.key && next.key);
      // A step never counts the asker, whatever the request says: neither one that names people, nor one that asks anybody.
      for (const call_id of ['named', 'anybody']) {
        const own = await asked(service, key, { call_id, tool: call_id }, { exclude_source: false });
        for (const one of [key, child.key, next.key])
          for (const said of [{ decision: 'approve' }, { decision: 'edit', arguments: {} }, { decision: 'reject' }]) {
            const answer = await decide(service, own.id, { ...said, responded_by: 'self' }, { key: one });
            assert.deepEqual([answer.status, answer.body.code], [403, 'FORBIDDEN'], `${call_id}: ${answer.text}`);
          }
      }
      await service.call('DELETE', '/policies/own');
      const free = await asked(service, key, { call_id: 'free' }, { exclude_source: false });
      assert.equal(
        (await decide(service, free.id, { decision: 'approve', responded_by: 'self' }, { key })).status,
        200,
        'no policy forbids it',
      );
    });

    test('a delegate answers in the place of who is away, and each person counts once over all steps', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann', 'bob', 'cyd']);
      const at = (seconds: number) => new Date(service.clock.read().getTime() + seconds * 1000).toISOString();
      await put(service, '/delegations/ann', { to: 'cyd', from: at(60), until: at(120) });
      await put(service, '/policies/two', { rules: [{ then: { ask: [{ from: ['ann'] }, { from: ['ann', 'cyd', 'bob'] }] } }] });
      const { id } = await asked(service, agent);
      const approve = async (name: string) => {
        const { status, body } = await decide(service, id, { decision: 'approve', responded_by: name }, { key: of[name]! });
        return status === 200 ? (body.hitl.step?.index ?? body.status) : body.code;
      };
      assert.equal(await approve('cyd'), 'NOT_AN_APPROVER', 'not yet');
      service.clock.turn(60);
      assert.equal(await approve('cyd'), 2);
      const given = (await historyOf(service, id)).at(-1)!;
      assert.deepEqual([given.event_type, given.actor, given.details.for], ['approval_given', 'human:cyd', 'ann']);
      assert.equal(await approve('cyd'), 'ALREADY_APPROVED');
      assert.equal(await approve('ann'), 'ALREADY_APPROVED', 'together once');
      assert.equal(await approve('bob'), 'claimed');
      const { by } = (await service.call('GET', `/packets/${id}`)).body.hitl.decision;
      assert.deepEqual(
        by.map((one: Record<string, unknown>) => [one.name, one.for]),
        [
          ['cyd', 'ann'],
          ['bob', null],
        ],
      );
      service.clock.turn(60);
      const { id: late } = await asked(service, agent, { call_id: 'late' });
      assert.equal((await decide(service, late, { decision: 'approve', responded_by: 'cyd' }, { key: of.cyd! })).status, 403, 'it is over');
    });

    test('a step goes on to the next by its time, and the time of the question ends it whatever its step [H556]', async () => {
      const service = await shareService(store);
      const { agent } = await keysOf(service, []);
      const first = { from: ['ann'], timeout_seconds: 60, on_timeout: 'next' };
      await put(service, '/policies/late', {
        rules: [{ then: { ask: [first, { from: ['cfo'], timeout_seconds: 600, on_timeout: 'reject' }] } }],
      });
      const { body: channel } = await service.call('POST', '/channels', {
        body: { kind: 'slack', target: 'https://hooks.slack.com/services/x', responder: 'cfo' },
      });
      const { id, hitl } = await asked(service, agent, {}, { timeout_seconds: 120, on_timeout: 'expire' });
      service.clock.turn(60);
      await service.handoff.runOnce.sweep();
      const { step } = (await service.call('GET', `/packets/${id}`)).body.hitl;
      assert.deepEqual([step.index, step.from, step.changes_at], [2, ['cfo'], hitl.expires_at], 'the question ends before the step');
      assert.equal((await service.call('GET', `/channels/${channel.id}/deliveries`)).body.length, 1, 'who is asked now is told');
      service.clock.turn(60);
      await service.handoff.runOnce.sweep();
      const { status, hitl: ended } = (await service.call('GET', `/packets/${id}`)).body;
      assert.deepEqual([status, ended.decision ?? null], ['expired', null]);
    });

    test('a rule decides about an action on every way to ask, and about no other question', async () => {
      const service = await shareService(store);
      const { agent } = await keysOf(service, []);
      await put(service, '/policies/all', { rules: [{ then: { reject: 'never' } }] });
      await put(service, '/policies/tried', { order: -1, mode: 'shadow', rules: [{ then: { ask: [{ from: ['ann'] }] } }] });
      const source = { id: 'refunds', name: 'R', framework: 'x' };
      const made = () => createPacket(service, { metadata: { source_agent: source, target_agent: source } }, agent);
      const [byPatch, byQuestion, plain] = [await made(), await made(), await made()];
      const post = (id: string, body: object) => service.call('POST', `/packets/${id}/questions`, { body, key: agent });
      const patched = await service.call('PATCH', `/packets/${byPatch.id}`, {
        body: { status: 'awaiting_human', hitl: { action } },
        key: agent,
      });
      for (const { body } of [patched, await post(byQuestion.id, { action })]) {
        assert.deepEqual([body.hitl.response, body.hitl.decision.message, body.hitl.decision.policy.name], ['reject', 'never', 'all']);
        assert.deepEqual(body.hitl.shadow, [{ policy: 'tried', version: 1, rule: 1, then: { ask: [{ from: ['ann'] }] } }]);
        assert.equal((await historyOf(service, body.id)).at(-1)!.actor, 'policy:all@1');
      }
      assert.equal((await post(plain.id, { question: 'Which?' })).body.status, 'awaiting_human');
    });

    test('an edit is judged with all else as it was asked, and counts only where the new first step asks the editor [H429, H432]', async () => {
      const service = await shareService(store);
      const { of } = await keysOf(service, ['sam', 'fay', 'ann']);
      const below = (maximum: number) => ({
        properties: { arguments: { properties: { amount: { type: 'number', maximum } }, required: ['amount'] } },
      });
      const critical = { properties: { priority: { const: 'critical' } } };
      await put(service, '/policies/refunds', {
        match: { tags: ['eu'] },
        rules: [
          { when: below(50), then: { approve: 'small' } },
          { when: critical, then: { ask: [{ from: ['ann'] }] } },
          { when: below(1000), then: { ask: [{ from: ['sam'] }] } },
          { then: { ask: [{ from: ['fay'] }] } },
        ],
      });
      const { body: nameless } = await service.call('POST', '/keys', { body: { name: 'nameless', scopes: ['respond'] } });
      const { body: channel } = await service.call('POST', '/channels', {
        body: { kind: 'slack', target: 'https://hooks.slack.com/services/x', responder: 'fay' },
      });
      const told = async () => (await service.call('GET', `/channels/${channel.id}/deliveries`)).body.length;
      // The key is bound to no agent, so that the rule that approves asks anybody.
      const { key } = (await service.call('POST', '/keys', { body: { name: 'unbound', scopes: ['read', 'work', 'respond'] } })).body;
      const request = requestFor({ arguments: { amount: 30 } }, { tags: ['eu'], exclude_source: false });
      const { body: packet } = await ask(service, request, { key });
      assert.deepEqual([packet.status, packet.hitl.step], ['awaiting_human', null]);
      const edit = (amount: number, name: string, by = of[name]!) =>
        decide(service, packet.id, { decision: 'edit', arguments: { amount }, responded_by: name }, { key: by });
      const typed = await edit(500, 'sam', nameless.key);
      assert.deepEqual([typed.status, typed.body.code, typed.body.from], [403, 'NOT_AN_APPROVER', null], 'a typed name edits nothing');
      assert.equal((await edit(500, 'sam', key)).body.code, 'FORBIDDEN', 'nor does the key that asks');
      // What the asker changes now, and another version of the policy, count for nothing.
      const late = { metadata: { tags: ['other'], priority: 'critical' } };
      assert.equal((await service.call('PATCH', `/packets/${packet.id}`, { body: late, key })).status, 200);
      await put(service, '/policies/refunds', { rules: [{ then: { approve: 'all' } }] });
      assert.equal((await service.call('DELETE', '/policies/refunds')).status, 204);
      const before = await told();
      const large = (await edit(5000, 'sam')).body.hitl;
      assert.deepEqual([large.step.from, large.approvals[0].name, large.approvals[0].void], [['fay'], 'sam', true]);
      assert.equal(await told(), before + 1, 'who is asked now is told');
      assert.equal((await edit(500, 'sam')).body.code, 'NOT_AN_APPROVER', 'this step asks fay');
      const { hitl } = (await edit(500, 'fay')).body;
      assert.deepEqual([hitl.step.from, hitl.response], [['sam'], null]);
      const { status, body } = await edit(400, 'sam');
      assert.deepEqual([status, body.hitl.decision.decision, body.hitl.decision.policy.rule], [200, 'edit', 3]);
      assert.deepEqual(
        body.hitl.decision.by.map(({ name }: { name: string }) => name),
        ['sam'],
      );
    });

    test('that only verified names count is said on every way before anybody answers, also where a policy asks anybody [H429]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['dana']);
      const told = /Only a verified name counts/;
      const { body: nameless } = await service.call('POST', '/keys', { body: { name: 'nameless', scopes: ['respond'] } });
      const pageOf = async (id: string, key = nameless.key) => {
        const { body: link, text } = await service.call('POST', `/packets/${id}/answer-links`, { body: {}, key });
        assert.ok(link.url, text);
        return (await service.call('GET', `/${new URL(link.url).pathname}`, { key: null })).text;
      };
      /** What each way for agents says of the question: the API, the briefing, MCP and A2A. */
      const read = async (id: string) => [
        (await service.call('GET', `/packets/${id}`)).body.hitl.verified_only,
        told.test((await service.call('GET', `/packets/${id}/brief`)).text),
        (await callTool(service, 'get_packet', { packet_id: id })).structuredContent.hitl.verified_only,
        (await a2a(service, 'GetTask', { id })).body.result.status.message?.parts[1]?.data.verified_only,
      ];
      /** The same, and what a page says whose name is typed. */
      const ways = async (id: string) => [...(await read(id)), told.test(await pageOf(id))];
      const free = await asked(service, agent, { call_id: 'free' });
      assert.deepEqual(await ways(free.id), [undefined, false, undefined, undefined, false], 'without a policy');
      await put(service, '/policies/refunds', { rules: [{ when: { properties: { x: true }, required: ['x'] }, then: { approve: 'x' } }] });
      const { id, hitl } = await asked(service, agent);
      assert.equal(hitl.step, null, 'anybody is asked');
      assert.deepEqual(await ways(id), [true, true, true, true, true]);
      assert.doesNotMatch(await pageOf(id, of.dana), told, 'a link for a person');
      const { body: done } = await decide(service, id, { decision: 'approve' }, { key: of.dana! });
      assert.deepEqual([done.hitl.response, done.hitl.verified_only], ['approve', undefined], 'not when it is answered');
      const cancelled = await asked(service, agent, { call_id: 'cancelled' });
      assert.deepEqual(await read(cancelled.id), [true, true, true, true]);
      assert.equal((await service.call('DELETE', `/packets/${cancelled.id}`)).status, 204);
      assert.deepEqual(await read(cancelled.id), [undefined, false, undefined, undefined], 'not when the packet has ended');
      assert.equal((await service.call('DELETE', '/policies/refunds')).status, 204);
      const later = await asked(service, agent, { call_id: 'later' });
      assert.deepEqual(await ways(later.id), [undefined, false, undefined, undefined, false], 'no policy again');
      const own = await packetIn(service, 'awaiting_human', { hitl: { ...question, require_verified: true } });
      assert.deepEqual(await ways(own.id), [undefined, true, undefined, undefined, true], 'a question that needs it says so itself');
      assert.equal((await service.call('DELETE', `/packets/${own.id}`)).status, 204);
      assert.deepEqual(await read(own.id), [undefined, false, undefined, undefined]);
    });

    test('a policy approves, rejects, or asks its steps, and its name is in the history [H559, H561, H564]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann', 'bob', 'cfo', 'eve']);
      await put(service, '/groups/finance', { members: ['ann', 'bob'] });
      const below = (maximum: number) => ({ properties: { arguments: { properties: { amount: { maximum } } } } });
      await put(service, '/policies/refunds', {
        rules: [
          { when: below(50), then: { approve: 'small' } },
          { when: below(9999), then: { ask: [{ from: ['group:finance'], count: 2 }, { from: ['cfo'] }] } },
          { then: { reject: 'too large' } },
        ],
      });
      const small = await asked(service, agent, { arguments: { amount: 30 }, call_id: 's' });
      assert.equal(small.status, 'claimed');
      assert.deepEqual([small.hitl.decision.by, small.hitl.decision.policy], [[], { name: 'refunds', version: 1, rule: 1 }]);
      assert.equal((await historyOf(service, small.id)).at(-1)!.actor, 'policy:refunds@1');
      assert.equal((await start(service, small.id, small.hitl.decision.arguments_digest, { key: agent })).status, 201);
      const seen = (await service.call('GET', `/packets/${small.id}/questions/${small.hitl.question_id}`)).body;
      assert.deepEqual([seen.state, seen.shown.action.tool], ['answered', 'refund'], 'what a rule decided about is kept');
      await put(service, '/policies/crew', {
        ...{ order: -1, match: { tools: ['pay'] } },
        rules: [{ when: { properties: { framework: { const: 'crewai' } } }, then: { approve: 'crew' } }, { then: { reject: 'other' } }],
      });
      await put(service, '/agents/refunds/contract', { schema: { properties: { context: { required: ['custom'] } } } });
      for (const [framework, response] of [
        ['crewai', 'approve'],
        [undefined, 'reject'],
      ] as const) {
        const { hitl: paid } = await asked(
          service,
          agent,
          { tool: 'pay', call_id: `pay ${framework}` },
          { agent: { id: 'refunds', ...(framework && { framework }) } },
        );
        assert.equal(paid.response, response);
      }
      const unbound = await ask(service, requestFor({ arguments: { amount: 30 }, call_id: 'u' }), {});
      assert.equal(unbound.body.status, 'awaiting_human', 'the key is bound to no agent');
      const large = await asked(service, agent, { arguments: { amount: 10_000 }, call_id: 'l' });
      assert.deepEqual([large.status, large.hitl.response, large.hitl.decision.message], ['completed', 'reject', 'too large']);

      const { id, hitl } = await asked(service, agent);
      assert.deepEqual(hitl.step, { index: 1, of: 2, count: 2, given: 0, from: ['group:finance'], changes_at: null });
      const approve = (name: string) => decide(service, id, { decision: 'approve', responded_by: name }, { key: of[name]! });
      for (const decision of ['approve', 'reject']) {
        const stranger = await decide(service, id, { decision, responded_by: 'eve' }, { key: of.eve! });
        assert.deepEqual([stranger.status, stranger.body.code, stranger.body.from], [403, 'NOT_AN_APPROVER', ['group:finance']]);
      }
      const { body: nameless } = await service.call('POST', '/keys', { body: { name: 'nameless', scopes: ['respond'] } });
      const typed = await decide(service, id, { decision: 'approve', responded_by: 'ann' }, { key: nameless.key });
      assert.deepEqual([typed.status, typed.body.code], [403, 'NOT_AN_APPROVER'], 'a typed name never counts');
      const links = `/packets/${id}/answer-links`;
      assert.equal((await service.call('POST', links, { body: {}, key: of.cfo! })).status, 201);
      const first = await approve('ann');
      assert.equal((await service.call('GET', links)).body[0].status, 'open', 'the links of others stay');
      assert.deepEqual([first.status, first.body.status, first.body.hitl.step.given], [200, 'awaiting_human', 1]);
      assert.equal((await approve('ann')).body.code, 'ALREADY_APPROVED');
      assert.equal((await approve('cfo')).status, 403, 'the second step has not begun');
      assert.equal((await approve('bob')).body.hitl.step.index, 2);
      const done = await approve('cfo');
      assert.equal(done.body.status, 'claimed');
      assert.deepEqual(
        done.body.hitl.decision.by.map(({ name }: { name: string }) => name),
        ['ann', 'bob', 'cfo'],
      );
      assert.deepEqual(done.body.hitl.decision.policy, { name: 'refunds', version: 1, rule: 2 });
    });

    test('an approval that a person lets stand counts as that approval, wherever a step asks the person, until it ends [H690, H691]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann', 'bob']);
      const listed = async () => (await service.call('GET', '/standing-approvals')).body.standing_approvals;
      const approve = (id: string, name: string, remember?: object) =>
        decide(service, id, { decision: 'approve', responded_by: name, ...(remember && { remember }) }, { key: of[name]! });
      const day = { scope: 'tool', seconds: 86_400 };
      // Without a policy anybody is asked, and an approval may stand for 30 days.
      const first = await asked(service, agent, { call_id: 'a' });
      assert.deepEqual([(await approve(first.id, 'ann', { ...day, seconds: 2_592_001 })).status], [400]);
      const refused = await decide(service, first.id, { decision: 'reject', responded_by: 'ann', remember: day }, { key: of.ann! });
      assert.deepEqual([refused.status, refused.body.field], [400, 'remember']);
      assert.equal((await approve(first.id, 'ann', { scope: 'call', seconds: 86_400 })).status, 200);
      const [{ id: standing, ...shown }] = await listed();
      assert.deepEqual(
        { ...shown, arguments_digest: null },
        {
          ...{ person: 'ann', agent_id: 'refunds', tool: 'refund', scope: 'call', arguments_digest: null, packet_id: first.id, uses: 0 },
          ...{ created_at: service.clock.read().toISOString() },
          expires_at: new Date(service.clock.read().getTime() + 86_400_000).toISOString(),
        },
      );
      assert.equal(shown.arguments_digest, first.hitl.action.arguments_digest);
      const same = await asked(service, agent, { call_id: 'b' });
      assert.deepEqual([same.status, same.hitl.response, same.hitl.decision.standing_id], ['claimed', 'approve', standing]);
      const [by] = same.hitl.decision.by;
      assert.deepEqual([by.name, by.verified, by.method, same.hitl.answered_by.name], ['ann', true, 'key', 'ann']);
      const given = (await historyOf(service, same.id)).find(({ event_type }) => event_type === 'approval_given')!;
      assert.deepEqual([given.actor, given.details.standing_id], ['human:ann', standing]);
      assert.equal((await listed())[0].uses, 1);
      assert.equal((await start(service, same.id, same.hitl.decision.arguments_digest, { key: agent })).status, 201);
      // Neither for other arguments or another tool, nor for a key that is not bound to the agent.
      const open = async (more: object, options: CallOptions = { key: agent }) =>
        (await ask(service, requestFor(more), options)).body.status as string;
      assert.equal(await open({ call_id: 'c', arguments: { amount: 1 } }), 'awaiting_human');
      assert.equal(await open({ call_id: 'd', tool: 'pay' }), 'awaiting_human');
      assert.equal(await open({ call_id: 'e' }, {}), 'awaiting_human');

      // A policy says what may stand, and a standing approval is one of a count.
      const steps = [{ from: ['ann', 'bob'], count: 2 }];
      const rules = [
        { when: { properties: { arguments: { properties: { amount: { maximum: 1000 } } } } }, then: { ask: steps } },
        { then: { reject: 'too large' } },
      ];
      await put(service, '/policies/refunds', { rules });
      const two = await asked(service, agent, { call_id: 'f' });
      assert.deepEqual([two.status, two.hitl.step.given, two.hitl.approvals[0].standing_id], ['awaiting_human', 1, standing]);
      assert.equal((await approve(two.id, 'ann')).body.code, 'ALREADY_APPROVED');
      const forbidden = await approve(two.id, 'bob', day);
      assert.deepEqual([forbidden.status, forbidden.body.field], [400, 'remember'], 'the policy allows nothing to stand');
      await put(service, '/policies/refunds', { rules, remember: { scope: 'call', max_seconds: 60 } });
      const three = await asked(service, agent, { call_id: 'g' });
      for (const remember of [day, { scope: 'call', seconds: 61 }])
        assert.equal((await approve(three.id, 'bob', remember)).status, 400, JSON.stringify(remember));
      assert.equal((await approve(three.id, 'bob', { scope: 'call', seconds: 60 })).body.status, 'claimed');
      const four = await asked(service, agent, { call_id: 'h' });
      assert.deepEqual([four.status, four.hitl.decision.by.length], ['claimed', 2]);
      // A rule that rejects wins, and what has expired counts no more.
      await put(service, '/policies/refunds', { rules: [{ then: { reject: 'frozen' } }] });
      assert.equal((await asked(service, agent, { call_id: 'i' })).hitl.response, 'reject');
      await put(service, '/policies/refunds', { rules });
      service.clock.turn(60);
      assert.equal((await asked(service, agent, { call_id: 'j' })).hitl.step.given, 1);

      // It is revoked by its person or with manage, and ends with the right to approve.
      const foreign = await service.call('DELETE', `/standing-approvals/${standing}`, { key: of.bob! });
      assert.equal(foreign.status, 403);
      const left = await asked(service, agent, { call_id: 'k' });
      assert.equal(left.hitl.step.given, 1);
      assert.equal((await service.call('DELETE', `/standing-approvals/${standing}`, { key: of.ann! })).status, 204);
      assert.equal((await service.call('DELETE', `/standing-approvals/${standing}`)).status, 404);
      const standings = await listed();
      const { key: manager } = (await service.call('POST', '/keys', { body: { name: 'm', scopes: ['manage'] } })).body;
      for (const { id } of standings)
        assert.equal((await service.call('DELETE', `/standing-approvals/${id}`, { key: manager })).status, 204);
      assert.deepEqual([standings.length > 0, await listed()], [true, []], 'or with manage');
      assert.equal((await asked(service, agent, { call_id: 'l' })).hitl.step.given, 0);
      const again = await asked(service, agent, { call_id: 'm', tool: 'pay' });
      await service.call('DELETE', '/policies/refunds');
      const free = await asked(service, agent, { call_id: 'n', tool: 'pay' });
      assert.equal(again.status, 'awaiting_human');
      assert.equal((await approve(free.id, 'bob', day)).status, 200);
      assert.equal((await asked(service, agent, { call_id: 'o', tool: 'pay' })).status, 'claimed');
      const { body: keys } = await service.call('GET', '/keys');
      for (const { id, responder } of keys.filter(({ responder }: { responder: string }) => responder === 'bob'))
        assert.equal((await service.call('DELETE', `/keys/${id}`)).status, 204, responder);
      assert.equal((await asked(service, agent, { call_id: 'p', tool: 'pay' })).status, 'awaiting_human', 'bob may approve no more');
    });

    test('request_approval of MCP answers with the JSON of a permission prompt, and takes silence and refusals for no [H694]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann']);
      const request = async (id: string, more: object = {}) => {
        const { content, structuredContent, isError } = await callTool(
          service,
          'request_approval',
          { tool_name: 'refund', input: { amount: 5 }, tool_use_id: id, ...more },
          { key: agent, agent: null },
        );
        assert.deepEqual([isError, content.length, JSON.parse(content[0].text)], [undefined, 1, structuredContent]);
        return structuredContent;
      };
      const approving = async (id: string, body: object, more: object = {}) => {
        const waits = request(id, more);
        let found: { id: string } | undefined;
        await until(async () => {
          const { packets } = (await service.call('GET', '/packets/awaiting')).body;
          // One that has timed out is awaited as well.
          found = packets.find(({ hitl: { expires_at } }: { hitl: { expires_at: string } }) => new Date(expires_at) > service.clock.read());
          return found !== undefined;
        });
        assert.equal((await decide(service, found!.id, { responded_by: 'ann', ...body }, { key: of.ann! })).status, 200);
        return waits;
      };
      assert.deepEqual(await approving('a', { decision: 'approve' }), { behavior: 'allow', updatedInput: { amount: 5 } });
      assert.deepEqual(await request('a'), { behavior: 'allow', updatedInput: { amount: 5 } }, 'the same call again');
      assert.deepEqual(await approving('b', { decision: 'edit', arguments: { amount: 1 } }), {
        behavior: 'allow',
        updatedInput: { amount: 1 },
      });
      assert.deepEqual(await approving('c', { decision: 'reject', message: 'No.' }), { behavior: 'deny', message: 'No.' });
      const changed = await request('a', { input: { amount: 6 } });
      assert.equal(changed.behavior, 'deny', 'a refusal of the service');
      assert.equal((await request('d', { agent_id: 'other' })).behavior, 'deny');
      const { id } = await asked(service, agent, { arguments: { amount: 5 }, call_id: 'e' }, { timeout_seconds: 60 });
      service.clock.turn(60);
      // What is over without a decision that holds is asked anew: in its packet, or in a new one where that has ended.
      assert.deepEqual(await approving('e', { decision: 'approve' }), { behavior: 'allow', updatedInput: { amount: 5 } });
      const statesOf = async (packet: string) =>
        (await service.call('GET', `/packets/${packet}/questions`)).body.questions.map(({ state }: { state: string }) => state);
      assert.deepEqual(await statesOf(id), ['timed_out', 'answered']);
      service.clock.turn(86_400);
      assert.deepEqual(await approving('e', { decision: 'reject', message: 'Not again.' }), { behavior: 'deny', message: 'Not again.' });
      assert.deepEqual(await statesOf(id), ['timed_out', 'answered', 'answered']);
      await service.handoff.runOnce.sweep();
      assert.deepEqual(await approving('a', { decision: 'approve' }), { behavior: 'allow', updatedInput: { amount: 5 } });
      const all: { id: string; parent_packet_id: string; hitl: { action: { call_id: string } } }[] = (
        await service.call('GET', '/packets?view=full')
      ).body.packets;
      const packetOf = (call: string) => all.find(({ hitl }) => hitl.action.call_id === call)!;
      assert.equal(packetOf('a~2').parent_packet_id, packetOf('a').id);
      // A question that is asked now and not answered is denied.
      const silent = request('f', { timeout_seconds: 30 });
      const asking = await until(
        async () => (await service.call('GET', '/packets/awaiting')).body.packets[0] as { id: string } | undefined,
      );
      service.clock.turn(30);
      // A change of the packet ends a wait before its time.
      await service.call('PATCH', `/packets/${asking.id}`, { body: { context: { custom: { looked_at: true } } } });
      assert.match((await silent).message, /Nobody approved the call in time/);
    });

    test('request_approval tells the progress of its wait, if the client wants it, and ends with its client', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann']);
      const send = (id: string, _meta: object, signal?: AbortSignal) => {
        const params = { name: 'request_approval', arguments: { tool_name: 'refund', input: { amount: 5 }, tool_use_id: id } };
        const { headers, body } = mcpRequest('tools/call', params, { agent: null });
        Object.assign((body.params as { _meta: object })._meta, _meta);
        const request = { method: 'POST', headers: { ...headers, 'x-api-key': agent }, body: JSON.stringify(body) };
        return service.listen().then((url) => fetch(`${url}/mcp`, { ...request, ...(signal === undefined ? {} : { signal }) }));
      };
      const awaited = () =>
        until(async () => (await service.call('GET', '/packets/awaiting')).body.packets[0] as { id: string } | undefined);
      const messages = messagesOf(await send('a', { progressToken: 'p' }));
      const { params, method } = (await messages.next()).value;
      assert.deepEqual([method, params.progressToken, params.progress, params.total], ['notifications/progress', 'p', 0, 3600]);
      const { id } = await awaited();
      service.clock.turn(25);
      // A change of the packet ends a wait before its time.
      await service.call('PATCH', `/packets/${id}`, { body: { context: { custom: { looked_at: true } } } });
      assert.equal((await messages.next()).value.params.progress, 25);
      assert.equal((await decide(service, id, { decision: 'approve', responded_by: 'ann' }, { key: of.ann! })).status, 200);
      const { result } = (await messages.next()).value;
      assert.equal(JSON.parse(result.content[0].text).behavior, 'allow');
      assert.equal((await messages.next()).done, true);
      // Without a token there is only the answer. A client that is gone ends its wait, and the question stays.
      const gone = new AbortController();
      const other = await send('b', {}, gone.signal);
      const { id: second } = await awaited();
      gone.abort();
      await other.text().catch(() => undefined);
      await until(() => service.logs.some((line) => line.includes('"end":"gone"')));
      const again = messagesOf(await send('b', {}));
      assert.equal((await decide(service, second, { decision: 'approve', responded_by: 'ann' }, { key: of.ann! })).status, 200);
      assert.equal(JSON.parse((await again.next()).value.result.content[0].text).behavior, 'allow');
    });

    test('a policy in shadow decides nothing, and counts what it would have done [H692]', async () => {
      const service = await shareService(store);
      const { agent } = await keysOf(service, []);
      const of = (amount: number) => ({
        properties: { arguments: { properties: { amount: { type: 'number', maximum: amount } }, required: ['amount'] } },
      });
      const rules = [
        { when: of(10), then: { approve: 'small' } },
        { when: of(100), then: { reject: 'middle' } },
      ];
      await put(service, '/policies/tried', { mode: 'shadow', rules });
      for (const [index, amount] of [5, 5, 50, 500].entries())
        assert.equal((await asked(service, agent, { arguments: { amount }, call_id: `s${index}` })).status, 'awaiting_human');
      // For a key that is bound to no agent, a rule approves nothing.
      assert.equal((await ask(service, requestFor({ arguments: { amount: 5 }, call_id: 'u' }))).status, 201);
      const counts = async () => (await service.call('GET', '/policies/tried')).body.shadow;
      assert.deepEqual(await counts(), { asked: 2, approved: 2, rejected: 1 });
      await put(service, '/policies/tried', { mode: 'shadow', rules: [{ then: { approve: 'all' } }] });
      assert.deepEqual(await counts(), { asked: 0, approved: 0, rejected: 0 }, 'another version');
    });

    test('a replay says what a policy would have decided, beside what people did decide [H693]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann']);
      const decided: Record<string, string> = {};
      for (const [amount, body] of [
        [5, { decision: 'approve' }],
        [20, { decision: 'reject' }],
        [30, { decision: 'edit', arguments: { amount: 3 } }],
        [500, { decision: 'approve' }],
        [5000, { decision: 'reject' }],
      ] as const) {
        const { id } = await asked(service, agent, { arguments: { amount }, call_id: `r${amount}` });
        assert.equal((await decide(service, id, { ...body, responded_by: 'ann' }, { key: of.ann! })).status, 200);
        decided[amount] = id;
        service.clock.turn(60);
      }
      await asked(service, agent, { call_id: 'open' });
      const up = (maximum: number) => ({
        properties: { arguments: { properties: { amount: { type: 'number', maximum } }, required: ['amount'] } },
      });
      const rules = [
        { when: up(50), then: { approve: 'small' } },
        { when: up(1000), then: { ask: [{ from: ['ann'] }] } },
        { then: { reject: 'large' } },
      ];
      const replay = (name: string, body: object = {}) => service.call('POST', `/policies/${name}/replay`, { body });
      const { body: found } = await replay('new', { policy: { match: { tools: ['refund'] }, rules } });
      assert.deepEqual(found, {
        ...{ actions: 5, approved: 3, rejected: 1, asked: 1, agreeing: 2 },
        disagreeing: [
          { packet_id: decided[30], person: 'edit', policy: 'approve', rule: 1 },
          { packet_id: decided[20], person: 'reject', policy: 'approve', rule: 1 },
        ],
      });
      assert.equal((await replay('new')).status, 404, 'nothing is stored');
      assert.equal((await replay('new', { policy: { rules: [{ when: { type: 'nothing' }, then: { approve: 'x' } }] } })).status, 400);
      await put(service, '/policies/refunds', { mode: 'shadow', rules });
      assert.equal((await replay('refunds')).body.actions, 5);
      assert.equal((await replay('refunds', { limit: 2 })).body.actions, 2);
      const until = new Date(service.clock.read().getTime() - 150_000).toISOString();
      assert.deepEqual(
        [(await replay('refunds', { until })).body.actions, (await replay('refunds', { since: until })).body.actions],
        [3, 2],
      );
      assert.equal((await replay('refunds', { policy: { match: { tools: ['pay'] }, rules } })).body.actions, 0);
    });

    test('an edit makes the arguments new: earlier approvals are void, and the policy judges them again [H558]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann', 'bob', 'cyd']);
      await put(service, '/groups/finance', { members: ['ann', 'bob', 'cyd'] });
      const when = { properties: { arguments: { properties: { amount: { maximum: 50 } } } } };
      await put(service, '/policies/refunds', {
        rules: [{ when, then: { approve: 'small' } }, { then: { ask: [{ from: ['group:finance'], count: 2 }] } }],
      });
      const schema = { properties: { amount: { type: 'number' }, order: { type: 'string' } }, required: ['amount'] };
      const { id, hitl } = await asked(service, agent, { schema });
      const say = (name: string, body: object) => decide(service, id, { responded_by: name, ...body }, { key: of[name]! });
      assert.equal((await say('ann', { decision: 'approve' })).status, 200);
      const wrong = await say('bob', { decision: 'edit', arguments: { amount: 'much', order: 7 } });
      assert.equal(wrong.status, 400);
      assert.deepEqual(wrong.body.errors.map(({ field }: { field: string }) => field).sort(), ['arguments.amount', 'arguments.order']);
      const edited = await say('bob', { decision: 'edit', arguments: { amount: 400 }, digest: hitl.digest });
      assert.equal(edited.status, 200, edited.text);
      assert.deepEqual(
        edited.body.hitl.approvals.map(({ name, void: isVoid, decision }: Record<string, unknown>) => [name, decision, isVoid]),
        [
          ['ann', 'approve', true],
          ['bob', 'edit', false],
        ],
      );
      assert.notEqual(edited.body.hitl.digest, hitl.digest);
      assert.equal(
        (await say('cyd', { decision: 'approve', digest: hitl.digest })).body.code,
        'STALE',
        'the next person approves what is shown now',
      );
      const done = await say('ann', { decision: 'approve', digest: edited.body.hitl.digest });
      assert.equal(done.body.status, 'claimed', done.text);
      const { decision, arguments: approved, by } = done.body.hitl.decision;
      assert.deepEqual([decision, approved, by.length], ['edit', { amount: 400 }, 2]);
      assert.equal((await start(service, id, hitl.action.arguments_digest, { key: agent })).body.code, 'DIGEST_MISMATCH', 'as proposed');
      assert.deepEqual(done.body.hitl.action.arguments, action.arguments, 'what was asked stays');

      const second = await asked(service, agent, { call_id: 'second' });
      const small = await decide(service, second.id, { decision: 'edit', arguments: { amount: 5 }, responded_by: 'ann' }, { key: of.ann! });
      assert.deepEqual(
        [small.body.hitl.decision.decision, small.body.hitl.decision.policy.rule, small.body.hitl.decision.by],
        ['edit', 1, []],
      );
    });

    test('escalation, the time of a step and the end of an approval are the sweeper’s [H559, H563]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['cfo', 'ann']);
      await put(service, '/groups/board', { members: ['ann'] });
      await put(service, '/policies/late', {
        rules: [
          {
            then: {
              ask: [{ from: ['cfo'], timeout_seconds: 60, on_timeout: 'reject', escalate: [{ after_seconds: 30, to: ['group:board'] }] }],
            },
          },
        ],
      });
      const at = async (id: string) => (await service.call('GET', `/packets/${id}`)).body;
      const { id, hitl } = await asked(service, agent);
      assert.equal(Date.parse(hitl.step.changes_at) - Date.parse(hitl.requested_at), 30_000);
      service.clock.turn(30);
      await service.handoff.runOnce.sweep();
      assert.deepEqual((await at(id)).hitl.step.from, ['cfo', 'group:board']);
      assert.equal((await historyOf(service, id)).at(-1)!.event_type, 'approval_escalated');
      service.clock.turn(30);
      await service.handoff.runOnce.sweep();
      const ended = await at(id);
      assert.deepEqual([ended.status, ended.hitl.response, ended.hitl.decision.by], ['completed', 'reject', []]);

      const shownOf = async (of: string, question: string) =>
        (await service.call('GET', `/packets/${of}/questions/${question}`)).body.shown;
      assert.equal(await shownOf(id, ended.hitl.question_id), null, 'where the time decided, nobody was shown anything');

      const { id: gone } = await asked(service, agent, { call_id: 'gone' });
      assert.equal((await decide(service, gone, { decision: 'approve', responded_by: 'cfo' }, { key: of.cfo! })).status, 200);
      assert.equal((await service.call('PATCH', `/packets/${gone}`, { body: { status: 'completed' }, key: agent })).status, 200);
      const over = await start(service, gone, hitl.action.arguments_digest, { key: agent });
      assert.deepEqual([over.status, over.body.code], [409, 'CONFLICT']);

      const { id: other } = await asked(service, agent, { call_id: 'valid', valid_seconds: 10 });
      assert.equal((await decide(service, other, { decision: 'approve', responded_by: 'cfo' }, { key: of.cfo! })).body.status, 'claimed');
      service.clock.turn(10);
      const late = await start(service, other, hitl.action.arguments_digest, { key: agent });
      assert.equal(late.body.code, 'APPROVAL_EXPIRED');
      await service.handoff.runOnce.sweep();
      assert.equal((await at(other)).status, 'expired');
    });

    test('channels of the people and groups of a step are told when it begins, and when it escalates', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann']);
      await put(service, '/groups/finance', { members: ['ann', 'Bob'] });
      await put(service, '/policies/told', {
        rules: [{ then: { ask: [{ from: ['group:finance'] }, { from: ['cfo'], escalate: [{ after_seconds: 60, to: ['ceo'] }] }] } }],
      });
      const channels: Record<string, string> = {};
      for (const responder of ['bob', 'group:finance', 'cfo', 'ceo', 'eve']) {
        const { body, text } = await service.call('POST', '/channels', {
          body: { kind: 'slack', target: 'https://hooks.slack.com/services/x', responder },
        });
        assert.ok(body.id, text);
        channels[responder] = body.id;
      }
      const told = async () => {
        const counts: Record<string, number> = {};
        for (const [responder, id] of Object.entries(channels))
          counts[responder] = (await service.call('GET', `/channels/${id}/deliveries`)).body.length;
        return counts;
      };
      const { id } = await asked(service, agent);
      assert.deepEqual(await told(), { bob: 1, 'group:finance': 1, cfo: 0, ceo: 0, eve: 0 });
      assert.equal((await decide(service, id, { decision: 'approve', responded_by: 'ann' }, { key: of.ann! })).body.hitl.step.index, 2);
      assert.deepEqual(await told(), { bob: 1, 'group:finance': 1, cfo: 1, ceo: 0, eve: 0 });
      service.clock.turn(60);
      await service.handoff.runOnce.sweep();
      assert.deepEqual(await told(), { bob: 1, 'group:finance': 1, cfo: 2, ceo: 1, eve: 0 });
    });

    test('a task of A2A that waits for input has the action as data, and takes a decision as data', async () => {
      const service = await shareService(store);
      const { agent } = await keysOf(service, []);
      const { id } = await asked(service, agent);
      const { key } = (await service.call('POST', '/keys', { body: { name: 'd', scopes: ['read', 'work', 'respond'], responder: 'dana' } }))
        .body;
      const { result } = (await a2a(service, 'GetTask', { id }, { key })).body;
      assert.equal(result.status.message.parts[1].data.action.tool, 'refund');
      const decideBy = async (taskId: string, data: object) => {
        const message = { messageId: taskId, role: 'ROLE_USER', taskId, parts: [{ data }] };
        const sent = await a2a(service, 'SendMessage', { message, configuration: { returnImmediately: true } }, { key });
        assert.equal(sent.status, 200, sent.text);
      };
      const { id: other } = await asked(service, agent, { call_id: 'other' });
      await decideBy(other, { decision: 'reject', message: 'Too much' });
      assert.equal((await service.call('GET', `/packets/${other}`)).body.hitl.decision.message, 'Too much');
      await decideBy(id, { decision: 'edit', arguments: { amount: 5 } });
      const { hitl } = (await service.call('GET', `/packets/${id}`)).body;
      assert.deepEqual([hitl.decision.decision, hitl.decision.arguments, hitl.responded_by], ['edit', { amount: 5 }, 'dana']);
    });

    test('a PATCH that asks about an action applies policies too, and a changed action is judged anew [H560]', async () => {
      const service = await shareService(store);
      const { agent, of } = await keysOf(service, ['ann', 'bob']);
      await put(service, '/policies/p', { match: { tools: ['refund'] }, rules: [{ then: { ask: [{ from: ['ann', 'bob'], count: 2 }] } }] });
      const source = { id: 'refunds', name: 'R', framework: 'x' };
      const { id } = await createPacket(service, { metadata: { source_agent: source, target_agent: source } }, agent);
      const patch = (body: object) => service.call('PATCH', `/packets/${id}`, { body, key: agent });
      const first = await patch({ status: 'awaiting_human', hitl: { action } });
      assert.equal(first.status, 200, first.text);
      assert.equal(first.body.hitl.step.count, 2);
      assert.equal((await decide(service, id, { decision: 'approve', responded_by: 'ann' }, { key: of.ann! })).body.hitl.step.given, 1);
      const changed = await patch({ hitl: { action: { ...action, arguments: { amount: 1 } } } });
      assert.equal(changed.status, 200, changed.text);
      assert.notEqual(changed.body.hitl.question_id, first.body.hitl.question_id);
      assert.deepEqual([changed.body.hitl.approvals, changed.body.hitl.step.given], [[], 0], 'approvals were of another action');
      const read = changed.body.hitl;
      assert.equal((await patch({ hitl: read })).status, 200, 'a client may send back what it read');
      assert.equal((await patch({ hitl: { ...read, step: { ...read.step, count: 1 } } })).status, 400);
    });

    test('an action is sound: bounds, its own schema, no options beside it [H557]', async () => {
      const service = await shareService(store);
      const { agent } = await keysOf(service, []);
      const deep = JSON.parse(`${'{"a":'.repeat(33)}1${'}'.repeat(33)}`);
      for (const [more, field] of [
        [{ arguments: { n: 2 ** 53 } }, 'action.arguments'],
        [{ arguments: deep }, 'action.arguments'],
        [{ arguments: { text: 'x'.repeat(66_000) } }, 'action.arguments'],
        [{ arguments_digest: '0'.repeat(64) }, 'action.arguments_digest'],
        [{ schema: { properties: { amount: { type: 'string' } } } }, 'action.arguments.amount'],
        [{ schema: { nope: 1 } }, 'action.schema.nope'],
        [{ tool: 'x'.repeat(257) }, 'action.tool'],
      ] as const) {
        const answer = await ask(service, requestFor(more), { key: agent });
        assert.deepEqual([answer.status, answer.body.field], [400, field], answer.text);
      }
      const full = [{ text: 'x'.repeat(64 * 1024 - 11) }, JSON.parse(`${'{"a":'.repeat(31)}{}${'}'.repeat(31)}`)];
      for (const [index, given] of full.entries())
        await asked(service, agent, { arguments: given, call_id: `full ${index}`, tool: 'x'.repeat(256) });
      const { id } = await createPacket(service, {});
      for (const [field, value] of Object.entries({ options: ['a'], schema: { type: 'object', properties: { a: { type: 'string' } } } })) {
        const beside = await service.call('POST', `/packets/${id}/questions`, { body: { action, [field]: value } });
        assert.deepEqual([beside.status, beside.body.field], [400, field]);
      }
      // Named as the body of each way has it.
      const unsound = { ...action, schema: { properties: { amount: { type: 'string' } } } };
      const inQuestion = await service.call('POST', `/packets/${id}/questions`, { body: { action: unsound } });
      assert.deepEqual([inQuestion.status, inQuestion.body.field], [400, 'action.arguments.amount'], inQuestion.text);
      const byPatch = await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl: { action: unsound } } });
      assert.deepEqual([byPatch.status, byPatch.body.field], [400, 'hitl.action.arguments.amount'], byPatch.text);
    });
  });
}
