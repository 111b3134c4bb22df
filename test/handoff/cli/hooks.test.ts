import assert from 'node:assert/strict';
import { test } from 'node:test';

import { output, refused, startCliBench } from '../../support/cli.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket } from '../../support/service.ts';

test('hooks deliveries, dlq, replay and retry-all list and retry failed deliveries [H293]', async (t) => {
  const receiver = await startReceiver(t, 500, 204, 500, 204);
  // One attempt, then a dead letter.
  const bench = await startCliBench(t, { settings: { SERVICE_WEBHOOK_ALLOW: '127.0.0.1', SERVICE_WEBHOOK_RETRY_SECONDS: '60' } });
  const { deliver } = bench.service.handoff.runOnce;
  const secret = { environment: { SERVICE_WEBHOOK_SECRET: 'sixteen characters' } };
  const hook = (await bench.run(['hooks', 'create', '--url', receiver.url, '--event', 'packet.created', '-q'], secret)).stdout.trim();
  const idsOf = async (...args: string[]) => (await output(bench, 'hooks', ...args, '-q')).split('\n').filter(Boolean);

  const { id: packet } = await createPacket(bench.service);
  await deliver();
  const [letter, ...none] = await idsOf('dlq', '--hook', hook);
  assert.deepEqual(none, []);
  const rows = await output(bench, 'hooks', 'deliveries', hook);
  assert.match(rows, new RegExp(`^${letter} +dead_letter +packet\\.created +1 +500 +2026-03-01T09:31:\\S+ +${packet}$`, 'm'));
  assert.deepEqual(await idsOf('deliveries', hook, '--status', 'delivered'), []);

  const replayed = JSON.parse(await output(bench, 'hooks', 'replay', letter!, '--format', 'json'));
  assert.deepEqual([replayed.delivery_id, replayed.status, replayed.replayed], [letter, 'pending', true]);
  await receiver.received(2);
  await deliver();
  assert.deepEqual(await idsOf('deliveries', hook, '--status', 'delivered'), [letter]);
  assert.deepEqual(await idsOf('dlq'), []);
  refused(await bench.run(['hooks', 'replay', letter!]), 1, /dead letter/);

  await createPacket(bench.service);
  await deliver();
  const [second] = await idsOf('dlq');
  assert.match(await output(bench, 'hooks', 'retry-all'), /^0 retried/);
  assert.match(await output(bench, 'hooks', 'retry-all', '--force', '--until', '2026-01-01T00:00:00Z'), /^0 retried/);
  const since = '2026-03-01T09:30:00Z';
  assert.match(
    await output(bench, 'hooks', 'retry-all', '--force', '--since', since, '--hook', hook),
    /^1 retried, 0 skipped .*, 0 remaining$/m,
  );
  await receiver.received(4);
  await deliver();
  assert.deepEqual(await idsOf('deliveries', hook, '--status', 'delivered'), [second, letter]);
  const { stderr } = await bench.run(['hooks', 'deliveries', hook, '--limit', '1']);
  assert.match(stderr, /1 to 1 of 2 deliveries; .*--offset 1/);
  refused(await bench.run(['hooks', 'retry-all', '--since', 'yesterday']), 1, /since/);
});
