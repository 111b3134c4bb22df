import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { describe, type TestContext, test } from 'node:test';
import { Worker } from 'node:worker_threads';

import { Thread } from '../../src/kit/thread.ts';
import type { TestTasks } from '../support/tasks.ts';

const entry = new URL('../support/tasks.ts', import.meta.url);

function start(t: TestContext): Thread<TestTasks> {
  const thread = new Thread<TestTasks>(entry, { greeting: 'Hello' });
  t.after(() => thread.stop());
  return thread;
}

describe('A thread', () => {
  test('answers each call with its own result, and has the data it was started with', async (t) => {
    const thread = start(t);
    const answers = await Promise.all(['a', 'b', 'c'].map((name) => thread.call('greet', name)));
    assert.deepEqual(answers, ['Hello, a', 'Hello, b', 'Hello, c']);
  });

  test('a call that fails rejects with the message and the codes of its error, and the next one is answered', async (t) => {
    const thread = start(t);
    await assert.rejects(thread.call('fail', { code: 'ERR_SQLITE_ERROR', errcode: 5 }), {
      message: 'It failed.',
      code: 'ERR_SQLITE_ERROR',
      errcode: 5,
    });
    assert.equal(await thread.call('greet', 'you'), 'Hello, you');
  });

  test('rejects open calls when it exits, and starts again at the next call', { timeout: 60_000 }, async (t) => {
    const thread = start(t);
    const open = [thread.call('end', 1), thread.call('greet', 'nobody')];
    for (const call of await Promise.allSettled(open)) {
      assert.equal(call.status, 'rejected');
      assert.match(String(call.reason), /The thread has stopped/);
    }
    assert.equal(await thread.call('greet', 'again'), 'Hello, again');
  });

  test('a call whose argument cannot be cloned rejects and is not open; an aborted call is not made', async (t) => {
    const thread = start(t);
    await assert.rejects(thread.call('greet', (() => undefined) as never), { name: 'DataCloneError' });
    await assert.rejects(thread.call('greet', 'nobody', AbortSignal.abort()), /The connection closed before the answer/);
    assert.equal(await thread.call('greet', 'you'), 'Hello, you');
  });

  test('a call aborted while it runs rejects when its task has ended, and its failure affects no other call', async (t) => {
    const thread = start(t);
    await thread.call('greet', 'you');
    const controller = new AbortController();
    const call = thread.call('wait', '', controller.signal);
    let hasEnded = false;
    const ended = () => {
      hasEnded = true;
    };
    call.then(ended, ended);
    controller.abort();
    // No message of the thread arrives before the next turn, so a rejection now would not wait for the task.
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    assert.equal(hasEnded, false);
    await assert.rejects(call, /The connection closed before the answer/);
    // This call is answered after the failure: messages of a thread arrive in order.
    assert.equal(await thread.call('greet', 'you'), 'Hello, you');
    assert.equal(await thread.call('greet', 'again'), 'Hello, again');
  });

  test('accepts no calls once stopped', async (t) => {
    const thread = start(t);
    await thread.call('greet', 'you');
    await thread.stop();
    await assert.rejects(thread.call('greet', 'you'), /The thread has stopped/);
  });

  test('keeps a process alive only while a call is open', () => {
    const source = `import('${new URL('../../src/kit/thread.ts', import.meta.url)}').then(({ Thread }) => {
      const thread = new Thread(new URL('${entry}'), { greeting: 'Hello' });
      thread.call('greet', 'you').then(console.log);
    })`;
    const ended = spawnSync(process.execPath, ['-e', source], { encoding: 'utf8', timeout: 60_000 });
    assert.deepEqual([ended.status, ended.stdout], [0, 'Hello, you\n'], ended.stderr);
  });
});

test('a thread that searches does not load the schemas of the API, so it starts soon', async (t) => {
  const entry = new URL('../../src/handoff/store/search/thread.ts', import.meta.url).href;
  const script = `
    const { registerHooks } = require('node:module');
    const { parentPort } = require('node:worker_threads');
    const packages = new Set();
    registerHooks({
      load(url, context, next) {
        packages.add(/\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]);
        return next(url, context);
      },
    });
    import(${JSON.stringify(entry)}).then(() => parentPort.postMessage([...packages]));`;
  const worker = new Worker(script, { eval: true, workerData: { data: { databaseUrl: 'sqlite::memory:' }, lowPriority: false } });
  t.after(() => worker.terminate());
  const [packages] = (await once(worker, 'message')) as [string[]];
  assert.ok(packages.includes('kysely'));
  assert.ok(!packages.includes('typebox'));
});
