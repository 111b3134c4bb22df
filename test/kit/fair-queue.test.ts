import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { FairQueue } from '../../src/kit/fair-queue.ts';

/** Tasks that record their start and end on demand. */
function noted() {
  const begun: string[] = [];
  const ends = new Map<string, () => void>();
  const work = (name: string) => () => {
    begun.push(name);
    return new Promise<string>((resolve) => void ends.set(name, () => resolve(name)));
  };
  const end = async (name: string) => {
    ends.get(name)!();
    await new Promise(setImmediate);
  };
  return { begun, work, end };
}

describe('A fair queue', () => {
  test('starts the tasks of its owners in turn, however many one of them has [H98]', async () => {
    const { begun, work, end } = noted();
    const queue = new FairQueue({ concurrency: 1, perOwner: 1 });
    const results = ['a1', 'a2', 'a3', 'b1', 'a4', 'c1', 'b2'].map((name) => queue.run(name[0], work(name)));
    for (let done = 0; done < results.length; done += 1) await end(begun.at(-1)!);
    assert.deepEqual(begun, ['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4']);
    assert.deepEqual(await Promise.all(results), ['a1', 'a2', 'a3', 'b1', 'a4', 'c1', 'b2']);
  });

  test('limits how many tasks run at once, in total and per owner', async () => {
    const { begun, work, end } = noted();
    const queue = new FairQueue({ concurrency: 3, perOwner: 2 });
    const results = ['a1', 'a2', 'a3', 'b1', 'c1'].map((name) => queue.run(name[0], work(name)));
    assert.deepEqual(begun, ['a1', 'a2', 'b1']);
    await end('b1');
    assert.deepEqual(begun, ['a1', 'a2', 'b1', 'c1']);
    await end('a1');
    assert.deepEqual(begun, ['a1', 'a2', 'b1', 'c1', 'a3']);
    for (const name of ['a2', 'a3', 'c1']) await end(name);
    assert.equal((await Promise.all(results)).length, 5);
  });

  test('never starts a task whose caller has disconnected, and a failed task frees its place', async () => {
    const { begun, work, end } = noted();
    const queue = new FairQueue({ concurrency: 1, perOwner: 1 });
    const disconnected = new AbortController();
    const first = queue.run('a', work('a1'));
    const abandoned = queue.run('a', work('a2'), disconnected.signal);
    const failing = assert.rejects(
      queue.run('a', () => Promise.reject(new Error('It failed.'))),
      /It failed/,
    );
    const last = queue.run('a', work('a3'));
    disconnected.abort();
    await assert.rejects(abandoned, /The connection closed before the answer/);
    await assert.rejects(queue.run('a', work('a4'), disconnected.signal), /The connection closed/);
    await end('a1');
    await failing;
    await new Promise(setImmediate);
    await end('a3');
    assert.deepEqual([await first, await last, begun], ['a1', 'a3', ['a1', 'a3']]);
  });

  test('a task that throws synchronously rejects and frees its place', async () => {
    const queue = new FairQueue({ concurrency: 1, perOwner: 1 });
    const thrown = queue.run('a', () => {
      throw new Error('It threw.');
    });
    await assert.rejects(thrown, /It threw/);
    assert.equal(await queue.run('b', async () => 'next'), 'next');
  });

  test('refuses with 503 when an owner has too many waiting tasks, or one waits too long [H98]', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const { begun, work, end } = noted();
    const queue = new FairQueue({ concurrency: 1, perOwner: 1, maxWaitingPerOwner: 2, maxWaitMs: 10_000 });
    const first = queue.run('a', work('a1'));
    const waiting = [queue.run('a', work('a2')), queue.run('a', work('a3'))];
    await assert.rejects(queue.run('a', work('a4')), { status: 503, message: /as many searches and long lists as it can/ });
    const other = queue.run('b', work('b1'));
    t.mock.timers.tick(10_000);
    for (const refused of [...waiting, other]) await assert.rejects(refused, { status: 503, message: /request timed out/ });
    await end('a1');
    assert.equal(await first, 'a1');
    const next = queue.run('b', work('b2'));
    await end('b2');
    assert.deepEqual([await next, begun], ['b2', ['a1', 'b2']]);
  });

  test('counts its tasks, and keeps places of tasks that start later until they leave', async () => {
    const queue = new FairQueue({ concurrency: 2, perOwner: 1 });
    const places = ['a', 'b', 'c', 'd'].map((owner) => queue.enter(owner));
    assert.deepEqual(queue.counts, { running: 2, waiting: 2 });
    places[1]!.leave();
    await places[2]!.turn;
    assert.deepEqual(queue.counts, { running: 2, waiting: 1 });
    places[1]!.leave();
    assert.equal(queue.counts.running, 2);
    for (const place of places) place.leave();
    assert.deepEqual(queue.counts, { running: 0, waiting: 0 });
  });

  test('refuses with 503 beyond its limit for all owners', () => {
    const queue = new FairQueue({ concurrency: 1, perOwner: 1, maxWaiting: 3, maxWaitingPerOwner: 2, what: 'tests' });
    for (const owner of ['a', 'a', 'a', 'b']) queue.enter(owner);
    for (const owner of ['a', 'b', 'c'])
      assert.throws(() => queue.enter(owner), { code: 'SERVICE_UNAVAILABLE', message: /^The service is handling as many tests as it can/ });
  });

  test('reserves a run for other owners, and lets the owner that has waited longest start next [F55]', async () => {
    const queue = new FairQueue({ concurrency: 3, perOwner: 2 });
    const greedy = Array.from({ length: 10 }, () => queue.enter('a'));
    assert.deepEqual(queue.counts, { running: 2, waiting: 8 });
    const first = queue.enter('b');
    assert.equal(first.turn, undefined);
    const second = queue.enter('b');
    greedy[0]!.leave();
    await greedy[2]!.turn;
    first.leave();
    await second.turn;
    assert.deepEqual(queue.counts, { running: 3, waiting: 7 });
  });

  test('forgets a task at once when it is cancelled while it waits, whose place others may then take', async () => {
    const queue = new FairQueue({ concurrency: 1, perOwner: 1, maxWaiting: 1 });
    const first = queue.enter('a');
    const controller = new AbortController();
    const second = queue.enter('a', controller.signal);
    controller.abort();
    await assert.rejects(second.turn!, /The connection closed/);
    second.leave();
    assert.deepEqual(queue.counts, { running: 1, waiting: 0 });
    queue.enter('b').leave();
    first.leave();
    assert.equal(queue.counts.running, 0);
  });
});
