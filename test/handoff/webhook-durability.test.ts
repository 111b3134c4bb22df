import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startProcess, type TestProcess } from '../support/process.ts';
import { startReceiver } from '../support/receiver.ts';
import { packetRequest } from '../support/service.ts';
import { stores } from '../support/stores.ts';
import { secret } from '../support/webhooks.ts';

const settings = { SERVICE_WEBHOOK_ALLOW: '127.0.0.1' };

/** How often the program is killed. A start takes longest, so few times by default; BATON_KILL_ROUNDS=20 for a long look. */
const rounds = Number(process.env.BATON_KILL_ROUNDS ?? 3);

/** Creates packets, a few at once, until an answer is missing; gives the ids of those that were answered. */
async function createUntilKilled(service: TestProcess): Promise<string[]> {
  const ids: string[] = [];
  const create = async (): Promise<void> => {
    for (;;) {
      const answer = await service.call('POST', '/packets', { body: packetRequest() }).catch(() => undefined);
      if (answer?.status !== 201) return;
      ids.push(answer.body.id);
    }
  };
  await Promise.all([create(), create()]);
  return ids;
}

for (const store of stores.filter(({ name }) => name !== 'SQLite in memory')) {
  test(`killed at any moment on ${store.name}, what was answered is delivered at least once, under one delivery id`, async (t) => {
    const { url: databaseUrl, drop } = await store.open();
    t.after(drop);
    const receiver = await startReceiver(t);
    const answered: string[] = [];
    let service = await startProcess({ databaseUrl, settings });
    t.after(() => service.kill());
    const hook = await service.call('POST', '/hooks', { body: { url: receiver.url, secret, events: ['packet.created'] } });
    assert.equal(hook.status, 201);
    for (let round = 0; round < rounds; round += 1) {
      const creating = createUntilKilled(service);
      // In the middle of both: while packets are created, and while what they tell of is sent.
      await receiver.received(receiver.posts.length + 5 + 3 * round);
      await service.kill();
      answered.push(...(await creating));
      service = await startProcess({ databaseUrl, settings });
    }
    // What was in hand when the program was killed is due again when its lease ends, 20 seconds later at the most.
    const delivered = () => Map.groupBy(receiver.posts, ({ body }) => JSON.parse(body).packet_id as string);
    while (answered.some((id) => !delivered().has(id))) await receiver.received(receiver.posts.length + 1);
    for (const posts of delivered().values()) assert.equal(new Set(posts.map(({ headers }) => headers['x-service-delivery'])).size, 1);
    assert.ok(answered.length > rounds, `${answered.length} requests were answered`);
    assert.equal(await service.stop(), 0);
    // None is stuck: whatever was ever written ends delivered.
    const last = await startProcess({ databaseUrl, settings });
    t.after(() => last.kill());
    const path = `/hooks/${hook.body.id}/deliveries?limit=200`;
    const open = async () => (await last.call('GET', path)).body.filter(({ status }: { status: string }) => status !== 'delivered').length;
    while ((await open()) > 0) await receiver.received(receiver.posts.length + 1);
    assert.equal(await last.stop(), 0);
  });
}
