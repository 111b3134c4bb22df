import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import type { TestProgress, TestResult } from '../../../src/fallback/model/test.ts';
import { createChainService } from '../../../src/fallback/service/chains.ts';
import { createTestService, type TestService } from '../../../src/fallback/service/tests.ts';
import { openStore, type Store } from '../../../src/fallback/store/store.ts';
import { nextTurn } from '../../../src/kit/awaitable.ts';
import { createIds } from '../../../src/kit/id.ts';
import { Turns } from '../../../src/kit/turns.ts';
import { answering, type Behaviour, failing, hanging, startProvider } from '../../support/providers.ts';
import { TestClock } from '../../support/service.ts';
import type { TestStore } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';
import { testServiceParts } from '../../support/test-service.ts';
import { until } from '../../support/until.ts';
import { requestOf } from '../rules/chains.ts';

const clock = new TestClock().read;
const newId = createIds();

/** A store that is closed and dropped after the test. */
async function openedStore(t: TestContext, kind: TestStore): Promise<Store> {
  const opened = await kind.open();
  const store = await openStore({ databaseUrl: opened.url, clock });
  t.after(async () => {
    await store.close();
    await opened.drop();
  });
  return store;
}

/** Starts a test of two prompts: the first is served, and the provider hangs on the second. */
async function startHanging(t: TestContext, store: Store, tests: TestService) {
  const provider = await startProvider(t, answering(), hanging);
  const chain = await createChainService({ store, clock, newId, turns: new Turns() }).create(requestOf(1, [], { api_base: provider.base }));
  const started = await tests.start(chain.id, { mode: 'live', prompt_count: 2 });
  await until(() => JSON.parse(started.record.text()).progress.done !== 0);
  return started;
}

for (const kind of stores) {
  describe(`Results on ${kind.name}`, () => {
    test('that are running at a start are cancelled, with the finished prompts; chains are intact', async (t) => {
      const store = await openedStore(t, kind);
      const chain = await createChainService({ store, clock, newId, turns: new Turns() }).create(requestOf(2));
      const tests = createTestService(testServiceParts(store));
      const whole = JSON.parse(await (await tests.start(chain.id, { prompt_count: 3, seed: 1 })).ended) as TestResult;

      // The state that a process leaves when it is killed after the second prompt.
      const id = newId(clock());
      const { results: _, ...rest } = whole;
      const head = {
        ...rest,
        id,
        status: 'running',
        completed_at: null,
        verdict: null,
        checks: [],
        progress: { done: 2, total: 3 },
      };
      await store.results.begin({ id, chainId: chain.id, text: JSON.stringify(head), leaseUntil: new Date(clock().getTime() - 1) });
      const done = whole.results.slice(0, 2);
      const prompts = done.map((result, position) => ({ position, text: JSON.stringify(result) }));
      await store.results.addPrompts(id, prompts, JSON.stringify(head));
      assert.equal(JSON.parse((await tests.find(id))!).status, 'running');

      assert.equal(await createTestService(testServiceParts(store)).recover(), 1);
      const found = JSON.parse((await tests.find(id))!) as TestResult;
      assert.equal(found.status, 'cancelled');
      assert.match(found.error!, /stopped/);
      assert.deepEqual(found.results, done);
      assert.deepEqual(JSON.parse((await tests.find(whole.id))!), whole);
      assert.notEqual(await store.chains.find(chain.id), undefined);
      assert.equal(await createTestService(testServiceParts(store)).recover(), 0);
    });

    test('of a run that fails say so; the cause is logged', async (t) => {
      const store = await openedStore(t, kind);
      const chain = await createChainService({ store, clock, newId, turns: new Turns() }).create(requestOf(1));
      const errors: unknown[] = [];
      const fault = new Error('no prompt can be kept');
      const broken = { ...store, results: { ...store.results, addPrompts: () => Promise.reject(fault) } };
      const tests = createTestService(testServiceParts(broken, { onError: (error) => void errors.push(error) }));
      const result = JSON.parse(await (await tests.start(chain.id, { prompt_count: 200 })).ended) as TestResult;
      assert.equal(result.status, 'failed');
      assert.equal(result.verdict, null);
      assert.match(result.error!, /the log of the service has the cause/);
      assert.ok(!JSON.stringify(result).includes('no prompt can be kept'));
      assert.deepEqual(errors, [fault]);
      assert.equal(JSON.parse((await tests.find(result.id))!).status, 'failed');
    });

    test('of a test on another instance are read and followed from the store, and DELETE reaches that instance [F50]', async (t) => {
      const store = { ...(await openedStore(t, kind)), isExclusive: false };
      // Time stands still, so that the owner keeps its first prompt only when its loop runs.
      const [owner, other] = [0, 1].map(() => createTestService(testServiceParts(store, {}, () => 0))) as [TestService, TestService];
      const { id, ended } = await startHanging(t, store, owner);
      assert.equal(await other.recover(), 0);
      const text = (await other.find(id))!;
      assert.equal(JSON.parse(text).status, 'running');
      const told: TestProgress[] = [];
      const { now } = other.follow(id, text, (progress) => void told.push(progress));
      assert.deepEqual([now.status, now.progress], ['running', { done: 0, total: 2 }]);
      await owner.runOnce();
      await other.runOnce();
      await until(() => told.length !== 0);
      assert.deepEqual([told[0]!.status, told[0]!.progress], ['running', { done: 1, total: 2 }]);
      assert.equal(JSON.parse((await other.find(id))!).results.length, 1);

      let isOver = false;
      const cancelling = other.cancel(id).finally(() => {
        isOver = true;
      });
      await until(async () => {
        await owner.runOnce();
        await other.runOnce();
        return isOver;
      });
      const answer = await cancelling;
      const result = JSON.parse(answer) as TestResult;
      assert.deepEqual([result.status, result.error, result.results.length], ['cancelled', 'A caller cancelled the test.', 1]);
      assert.equal(await ended, answer);
      await until(() => told.at(-1)!.status !== 'running');
      assert.equal(told.at(-1)!.status, 'cancelled');
      await assert.rejects(other.cancel(id), { code: 'CONFLICT' });
    });

    test('of a dead instance are cancelled when its lease expires, and its later writes change nothing [F51]', async (t) => {
      const store = { ...(await openedStore(t, kind)), isExclusive: false };
      const turning = new TestClock();
      const [owner, other] = [0, 1].map(() => createTestService(testServiceParts(store, { clock: turning.read }))) as [
        TestService,
        TestService,
      ];
      const { id, ended } = await startHanging(t, store, owner);
      const statusAfter = async (seconds: number) => {
        turning.turn(seconds);
        await other.runOnce();
        return JSON.parse((await other.find(id))!).status;
      };
      assert.equal(await statusAfter(29), 'running');
      await owner.runOnce();
      assert.equal(await statusAfter(29), 'running');
      assert.equal(await statusAfter(2), 'cancelled');
      const text = (await other.find(id))!;
      const { error, results } = JSON.parse(text) as TestResult;
      assert.deepEqual([error, results.length], ['The service stopped while the test was running.', 1]);
      // The instance was only delayed, and its write is refused.
      await owner.runOnce();
      assert.equal(await ended, text);
      assert.equal(await owner.find(id), text);
    });

    test('are limited by number for each chain, and by age [F54]', async (t) => {
      const store = await openedStore(t, kind);
      const turning = new TestClock();
      const retention = { perChain: 2, seconds: 60 };
      const tests = createTestService(testServiceParts(store, { clock: turning.read, retention }));
      const chain = await createChainService({ store, clock: turning.read, newId, turns: new Turns() }).create(requestOf(1));
      const ids: string[] = [];
      for (let index = 0; index < 3; index += 1) {
        turning.turn(1);
        const started = await tests.start(chain.id, { prompt_count: 1 });
        await started.ended;
        ids.push(started.id);
      }
      const kept = async () => (await Promise.all(ids.map((id) => tests.find(id)))).map((text) => text !== undefined);
      assert.deepEqual(await kept(), [false, true, true]);
      turning.turn(59.5);
      await tests.runOnce();
      assert.deepEqual(await kept(), [false, false, true]);
    });

    test('are limited by age as well after the clock was set back', async (t) => {
      const store = await openedStore(t, kind);
      const turning = new TestClock();
      const tests = createTestService(testServiceParts(store, { clock: turning.read, retention: { perChain: 0, seconds: 60 } }));
      const chain = await createChainService({ store, clock: turning.read, newId, turns: new Turns() }).create(requestOf(1));
      await tests.runOnce();
      turning.turn(-86_400);
      // The first round after the jump does what is due, and from then on there is one an hour.
      await tests.runOnce();
      const started = await tests.start(chain.id, { prompt_count: 1 });
      await started.ended;
      turning.turn(3599);
      await tests.runOnce();
      assert.notEqual(await tests.find(started.id), undefined);
      turning.turn(1);
      await tests.runOnce();
      assert.equal(await tests.find(started.id), undefined);
    });
  });
}

describe('A stop of the service', () => {
  /** A test of one prompt whose provider, or gateway, has its call. */
  async function startCall(
    t: TestContext,
    does: Behaviour,
    rules: Parameters<typeof requestOf>[1] = [],
    mode: 'live' | 'rehearsal' = 'live',
  ) {
    const store = await openedStore(t, stores[0]!);
    const tests = createTestService(testServiceParts(store));
    const provider = await startProvider(t, does);
    const chain = await createChainService({ store, clock, newId, turns: new Turns() }).create(
      requestOf(1, rules, { api_base: provider.base }),
    );
    const gateway = mode === 'live' ? {} : { gateway: { url: provider.base } };
    const { ended } = await tests.start(chain.id, { mode, prompt_count: 1, ...gateway }, '', 'http://127.0.0.1');
    await until(() => provider.seen.length !== 0);
    return { tests, provider, ended: ended.then((text) => JSON.parse(text) as TestResult) };
  }

  test('lets a call in progress finish, and its test completes [F51]', async (t) => {
    const called = Promise.withResolvers<() => void>();
    const { tests, ended } = await startCall(t, (response, request) => called.resolve(() => answering()(response, request)));
    const answer = await called.promise;
    const stopped = tests.stop();
    await nextTurn();
    answer();
    await stopped;
    const { status, verdict, success_count } = await ended;
    assert.deepEqual([status, verdict, success_count], ['completed', 'pass', 1]);
  });

  test('makes no further call after one that fails, and discards its prompt [F51]', async (t) => {
    const called = Promise.withResolvers<() => void>();
    const rules = [{ condition: 'any' as const, action: 'retry' as const, wait_ms: 0 }];
    const { tests, provider, ended } = await startCall(
      t,
      (response, request) => called.resolve(() => failing(500, 'overloaded')(response, request)),
      rules,
    );
    const answer = await called.promise;
    const stopped = tests.stop();
    answer();
    await stopped;
    const { status, error, results } = await ended;
    assert.deepEqual(
      [status, error, results, provider.seen.length],
      ['cancelled', 'The service stopped while the test was running.', [], 1],
    );
  });

  test('cuts a call that is not answered within five seconds [F51]', async (t) => {
    const { tests, ended } = await startCall(t, hanging);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    let isOver = false;
    const stopped = tests.stop().then(() => {
      isOver = true;
    });
    t.mock.timers.tick(4_999);
    await nextTurn();
    assert.equal(isOver, false);
    t.mock.timers.tick(1);
    await stopped;
    assert.equal((await ended).status, 'cancelled');
  });

  // The call itself would end after 30 seconds.
  test('cuts the call of a gateway in a rehearsal at once [F51]', { timeout: 15_000 }, async (t) => {
    const { tests, ended } = await startCall(t, hanging, [], 'rehearsal');
    t.mock.timers.enable({ apis: ['setTimeout'] });
    await tests.stop();
    assert.equal((await ended).status, 'cancelled');
  });
});
