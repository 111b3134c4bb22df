import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { TestResult } from '../../../src/fallback/model/test.ts';
import { createChainService } from '../../../src/fallback/service/chains.ts';
import { createRunQueue } from '../../../src/fallback/service/runs.ts';
import { createTestService, type TestServiceParts } from '../../../src/fallback/service/tests.ts';
import { openStore } from '../../../src/fallback/store/store.ts';
import { createIds } from '../../../src/kit/id.ts';
import { parseAllowList } from '../../../src/kit/outgoing/addresses.ts';
import { createGuard } from '../../../src/kit/outgoing/guard.ts';
import { createOutgoing } from '../../../src/kit/outgoing/outgoing.ts';
import { TestClock } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';
import { requestOf } from '../rules/chains.ts';

const clock = new TestClock().read;
const newId = createIds();

/** The parts of a test service over a store; no provider can be reached. */
function partsOf(store: TestServiceParts['store'], errors: unknown[] = []): TestServiceParts {
  const outgoing = createOutgoing({ guard: createGuard({ allow: parseAllowList([]), setting: 'SERVICE_LIVE_ALLOW' }) });
  const live = { allowed: false, outgoing, environment: {}, grants: [], clock, now: () => performance.now() };
  return { store, clock, newId, random: () => 0.5, live, onError: (error) => void errors.push(error) };
}

for (const kind of stores) {
  describe(`Results on ${kind.name}`, () => {
    test('that are found running at a start are cancelled, with the prompts that were done; chains are intact', async (t) => {
      const opened = await kind.open();
      const store = await openStore({ databaseUrl: opened.url, clock });
      t.after(async () => {
        await store.close();
        await opened.drop();
      });
      const chain = await createChainService({ store, clock, newId }).create(requestOf(2));
      const tests = createTestService(partsOf(store));
      const whole = JSON.parse(await (await tests.start(chain.id, { prompt_count: 3, seed: 1 })).ended) as TestResult;

      // What a program leaves behind that is killed after the second prompt.
      const id = newId(clock());
      const head = {
        ...whole,
        id,
        status: 'running',
        completed_at: null,
        verdict: null,
        checks: [],
        progress: { done: 2, total: 3 },
        results: [],
      };
      await store.results.begin({ id, chainId: chain.id, text: JSON.stringify(head) });
      const done = whole.results.slice(0, 2);
      const prompts = done.map((result, position) => ({ position, text: JSON.stringify(result) }));
      await store.results.addPrompts(id, prompts, JSON.stringify(head));
      assert.equal(JSON.parse((await tests.find(id))!).status, 'running');

      assert.equal(await createTestService(partsOf(store)).recover(), 1);
      const found = JSON.parse((await tests.find(id))!) as TestResult;
      assert.equal(found.status, 'cancelled');
      assert.match(found.error!, /stopped/);
      assert.deepEqual(found.results, done);
      assert.deepEqual(JSON.parse((await tests.find(whole.id))!), whole);
      assert.notEqual(await store.chains.find(chain.id), undefined);
      assert.equal(await createTestService(partsOf(store)).recover(), 0);
    });

    test('of a run that breaks say so; the cause goes to the log', async (t) => {
      const opened = await kind.open();
      const store = await openStore({ databaseUrl: opened.url, clock });
      t.after(async () => {
        await store.close();
        await opened.drop();
      });
      const chain = await createChainService({ store, clock, newId }).create(requestOf(1));
      const errors: unknown[] = [];
      const fault = new Error('no prompt can be kept');
      const broken = { ...store, results: { ...store.results, addPrompts: () => Promise.reject(fault) } };
      const tests = createTestService(partsOf(broken, errors));
      const result = JSON.parse(await (await tests.start(chain.id, { prompt_count: 200 })).ended) as TestResult;
      assert.equal(result.status, 'failed');
      assert.equal(result.verdict, null);
      assert.match(result.error!, /the log has the cause/);
      assert.ok(!JSON.stringify(result).includes('no prompt can be kept'));
      assert.deepEqual(errors, [fault]);
      assert.equal(JSON.parse((await tests.find(result.id))!).status, 'failed');
    });
  });
}

describe('The line for runs', () => {
  const never = new AbortController().signal;

  test('lets so many in at once, and the others in their turn', async () => {
    const queue = createRunQueue(2, 10);
    const places = Array.from({ length: 4 }, () => queue.enter(never));
    assert.deepEqual([queue.running(), queue.waiting()], [2, 2]);
    places[1]!.leave();
    await places[2]!.turn;
    assert.deepEqual([queue.running(), queue.waiting()], [2, 1]);
    places[1]!.leave();
    assert.equal(queue.running(), 2);
    for (const place of places) place.leave();
    assert.deepEqual([queue.running(), queue.waiting()], [0, 0]);
  });

  test('refuses with 503 whoever would wait behind too many', () => {
    const queue = createRunQueue(1, 1);
    queue.enter(never);
    queue.enter(never);
    assert.throws(() => queue.enter(never), { code: 'SERVICE_UNAVAILABLE' });
  });

  test('lets go of one who is cancelled while waiting, at once', async () => {
    const queue = createRunQueue(1, 1);
    const first = queue.enter(never);
    const controller = new AbortController();
    const second = queue.enter(controller.signal);
    controller.abort('enough');
    await assert.rejects(second.turn, (reason) => reason === 'enough');
    second.leave();
    assert.deepEqual([queue.running(), queue.waiting()], [1, 0]);
    first.leave();
    assert.equal(queue.running(), 0);
  });
});
