import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { openInstances } from '../support/instances.ts';
import { historyOf } from '../support/life.ts';
import { runs } from '../support/runs.ts';
import { startService, type TestAnswer, type TestClock, type TestService } from '../support/service.ts';
import { stores } from '../support/stores.ts';

/** The instances of a case: two on one PostgreSQL, or one on SQLite. */
const places: readonly [string, (t: TestContext) => Promise<{ instances: readonly TestService[]; clock: TestClock }>][] = [
  [
    'two instances on PostgreSQL',
    async (t) => {
      const { start, clock } = await openInstances(t);
      return { instances: [await start(), await start()], clock };
    },
  ],
  [
    'one instance on SQLite',
    async (t) => {
      const service = await startService(t, { store: stores[0]! });
      return { instances: [service], clock: service.clock };
    },
  ],
];

const people = Array.from({ length: 50 }, (_, index) => `p${index}`);
const action = { tool: 'refund', arguments: { amount: 500 } };

/** An agent's key, a key for each person, and a policy that asks two of them. */
async function prepare(instances: readonly TestService[], names: readonly string[], step: object = {}) {
  const [service] = instances as [TestService];
  const make = async (rights: object) => (await service.call('POST', '/keys', { body: { name: 'k', ...rights } })).body.key as string;
  const agent = await make({ scopes: ['read', 'work'], agents: ['refunds'] });
  const keys = new Map<string, string>();
  for (const name of names) keys.set(name, await make({ scopes: ['read', 'respond'], responder: name }));
  const rules = [{ then: { ask: [{ from: names, count: 2, ...step }] } }];
  assert.equal((await service.call('PUT', '/policies/two', { body: { rules } })).status, 201);
  let turn = 0;
  /** The instances in turn. */
  const next = () => instances[turn++ % instances.length]!;
  const ask = async (call_id: string, more: object = {}) => {
    const { status, body, text } = await next().call('POST', '/approvals', {
      body: { agent: { id: 'refunds' }, action: { ...action, call_id }, ...more },
      key: agent,
    });
    assert.equal(status, 201, text);
    return body;
  };
  const say = (id: string, name: string, body: object) =>
    next().call('POST', `/packets/${id}/respond`, { body: { responded_by: name, ...body }, key: keys.get(name)! });
  const start = (id: string, arguments_digest: string) =>
    next().call('POST', `/packets/${id}/execution`, { body: { arguments_digest }, key: agent });
  return { service, agent, next, ask, say, start };
}

const outcomes = async (service: TestService, id: string) =>
  (await historyOf(service, id)).filter(({ event_type }: { event_type: string }) => event_type === 'hitl_responded').length;
const won = (answers: readonly TestAnswer[]) => answers.filter(({ status }) => status === 200).length;

for (const [place, open] of places) {
  describe(`Approvals that race, on ${place}`, () => {
    test('of fifty approvers at once two are recorded, with one outcome, and of fifty starts one is told to', async (t) => {
      const { instances } = await open(t);
      const { service, ask, say, start } = await prepare(instances, people);
      const { id, hitl } = await ask('fifty');
      const answers = await Promise.all(people.map((name) => say(id, name, { decision: 'approve' })));
      assert.equal(won(answers), 2, answers.map(({ status }) => status).join());
      const decided = (await service.call('GET', `/packets/${id}`)).body;
      assert.deepEqual([decided.hitl.approvals.length, decided.hitl.decision.by.length, await outcomes(service, id)], [2, 2, 1]);
      const starts = await Promise.all(people.map(() => start(id, hitl.action.arguments_digest)));
      assert.equal(starts.filter(({ status }) => status === 201).length, 1);
    });

    test('approve against reject, and edit against approve, have one outcome each, which the history has', async (t) => {
      const { instances } = await open(t);
      const { service, ask, say } = await prepare(instances, ['a', 'b', 'c']);
      for (let round = 0; round < 6; round += 1) {
        const { id } = await ask(`reject ${round}`);
        assert.equal((await say(id, 'a', { decision: 'approve' })).status, 200);
        const answers = await Promise.all([say(id, 'b', { decision: 'approve' }), say(id, 'c', { decision: 'reject' })]);
        assert.equal(won(answers), 1);
        assert.equal(await outcomes(service, id), 1);

        const { id: other, hitl } = await ask(`edit ${round}`);
        assert.equal((await say(other, 'a', { decision: 'approve', digest: hitl.digest })).status, 200);
        const edit = { decision: 'edit', arguments: { amount: 5 }, digest: hitl.digest };
        const [edited, approved] = await Promise.all([
          say(other, 'b', edit),
          say(other, 'c', { decision: 'approve', digest: hitl.digest }),
        ]);
        assert.equal(won([edited!, approved!]), 1, 'who loses is told that what was shown has changed, or that it is decided');
        const { hitl: after } = (await service.call('GET', `/packets/${other}`)).body;
        if (edited!.status === 200) assert.deepEqual([approved!.body.code, after.edited.arguments], ['STALE', { amount: 5 }]);
        else assert.deepEqual(after.decision.arguments, action.arguments);
      }
    });

    test('an answer against the time, and against a change of the policy, has one outcome', async (t) => {
      const { instances, clock } = await open(t);
      const { service, ask, say, next } = await prepare(instances, ['a', 'b'], { timeout_seconds: 60, on_timeout: 'reject' });
      for (let round = 0; round < 4; round += 1) {
        const { id } = await ask(`time ${round}`);
        assert.equal((await say(id, 'a', { decision: 'approve' })).status, 200);
        clock.turn(60);
        const [late] = await Promise.all([
          say(id, 'b', { decision: 'approve' }),
          ...instances.map(({ handoff }) => handoff.runOnce.sweep()),
        ]);
        assert.ok([409, 410].includes(late!.status), late!.text);
        for (const { handoff } of instances) await handoff.runOnce.sweep();
        const { hitl } = (await service.call('GET', `/packets/${id}`)).body;
        assert.deepEqual([hitl.response, hitl.decision.by, await outcomes(service, id)], ['reject', [], 1]);

        const { id: kept } = await ask(`policy ${round}`);
        assert.equal((await say(kept, 'a', { decision: 'approve' })).status, 200);
        const changed = { rules: [{ then: { reject: `round ${round}` } }] };
        const [answer] = await Promise.all([
          say(kept, 'b', { decision: 'approve' }),
          next().call('PUT', '/policies/two', { body: changed }),
        ]);
        assert.equal(answer!.body.status, 'claimed', 'an open question keeps the version with which it was asked');
        const rules = [{ then: { ask: [{ from: ['a', 'b'], count: 2, timeout_seconds: 60, on_timeout: 'reject' }] } }];
        assert.equal((await next().call('PUT', '/policies/two', { body: { rules } })).status, 200);
      }
    });

    test('a process that dies between approval, start and end never causes a second start', async (t) => {
      const { instances } = await open(t);
      const { agent, ask, say, start, next } = await prepare(instances, ['a', 'b']);
      for (let round = 0; round < runs(20); round += 1) {
        const { id, hitl } = await ask(`kill ${round}`);
        await say(id, 'a', { decision: 'approve' });
        await say(id, 'b', { decision: 'approve' });
        // The process dies before the start, before its answer arrives, or before the end; another one begins with what is stored.
        const before = round % 3 === 0 ? [] : [start(id, hitl.action.arguments_digest)];
        const answers = await Promise.all([...before, start(id, hitl.action.arguments_digest)]);
        if (round % 3 === 2) await next().call('PATCH', `/packets/${id}/execution`, { body: { status: 'succeeded' }, key: agent });
        const again = await next().call('POST', '/approvals', {
          body: { agent: { id: 'refunds' }, action: { ...action, call_id: `kill ${round}` } },
          key: agent,
        });
        assert.equal(again.body.id, id);
        answers.push(await start(id, again.body.hitl.decision.arguments_digest));
        assert.equal(answers.filter(({ status }) => status === 201).length, 1, `round ${round}`);
      }
    });
  });
}
