import assert from 'node:assert/strict';
import { test } from 'node:test';

import { output, refused, startCliBench } from '../../support/cli.ts';
import { packetIn } from '../../support/life.ts';
import { startReceiver } from '../../support/receiver.ts';

test('channels create, list, test and delete manage who is notified of questions; a target from the environment stays out of the arguments', async (t) => {
  const receiver = await startReceiver(t, 200);
  const bench = await startCliBench(t, {
    settings: { SERVICE_WEBHOOK_ALLOW: '127.0.0.1', SERVICE_PUBLIC_URL: 'https://baton.example.com' },
  });
  const { deliver } = bench.service.handoff.runOnce;
  const note = async (...args: string[]) => (await bench.run(['channels', ...args])).stderr;
  assert.match(await note('list'), /^No channels\.$/m);
  refused(await bench.run(['channels', 'create', '--kind', 'slack']), 2, /--target, or SERVICE_CHANNEL_TARGET/);
  refused(await bench.run(['channels', 'create', '--kind', 'pigeon', '--target', 'x']), 2, /email, slack/);
  refused(await bench.run(['channels', 'create', '--kind', 'slack', '--target', 'nowhere']), 1, /target/);

  const create = ['channels', 'create', '--kind', 'slack', '--name', 'Refunds', '--event', 'asked', '--event', 'answered'];
  const target = { environment: { SERVICE_CHANNEL_TARGET: receiver.url } };
  const made = await bench.run([...create, '--responder', 'dana@example.com', '--format', 'json'], target);
  assert.equal(made.exitCode, 0, made.stderr);
  const { id, ...channel } = JSON.parse(made.stdout);
  assert.deepEqual(
    [channel.kind, channel.name, channel.responder, channel.events],
    ['slack', 'Refunds', 'dana@example.com', ['asked', 'answered']],
  );
  const rows = await output(bench, 'channels', 'list');
  assert.match(rows, new RegExp(`^${id} +yes +slack +Refunds +\\S+ +dana@example\\.com +asked,answered `, 'm'));
  assert.equal((await output(bench, 'channels', 'list', '-q')).trim(), id);

  assert.match(await note('test', id), /The test message is queued\./);
  await packetIn(bench.service, 'awaiting_human', {
    hitl: { required: true, question: 'Refund?', reason: 'r', responder: 'dana@example.com' },
  });
  await deliver();
  await receiver.received(2);
  assert.match(await note('delete', id), /The channel is removed\./);
  assert.match(await note('list'), /^No channels\.$/m);
  refused(await bench.run(['channels', 'test', id]), 1, /No such channel/);
});
