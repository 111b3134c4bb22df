import assert from 'node:assert/strict';
import { test } from 'node:test';

import { assertSound } from '../support/consistency.ts';
import { startReceiver } from '../support/receiver.ts';
import { packetRequest, type TestAnswer } from '../support/service.ts';
import { startPair } from '../support/standby.ts';
import { until } from '../support/until.ts';
import { register, startHooked } from '../support/webhooks.ts';

const writers = 6;

/** How many packets are answered before the primary is killed, and after the standby has taken over. */
const enough = 60;

test('a standby that is promoted under load: no answered write is lost, /ready is 503 meanwhile, and the service recovers by itself', {
  timeout: 120_000,
}, async (t) => {
  const pair = await startPair();
  const service = await startHooked(t, { databaseUrl: pair.url });
  t.after(() => pair.stop());
  const receiver = await startReceiver(t);
  await register(service, receiver.url, { events: ['packet.created'] });

  const created: TestAnswer[] = [];
  const claimed = new Map<string, TestAnswer>();
  const refused: TestAnswer[] = [];
  let isOver = false;
  async function write(writer: number): Promise<void> {
    while (!isOver) {
      const made = await service.call('POST', '/packets', { body: packetRequest() });
      if (made.status === 201) {
        created.push(made);
        const claim = await service.call('POST', `/packets/${made.body.id}/claim`, { body: { agent_id: `writer-${writer}` } });
        if (claim.status === 200) claimed.set(made.body.id, claim);
        else refused.push(claim);
      } else refused.push(made);
    }
  }
  const writing = Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)));

  await until(() => created.length >= enough);
  // What the primary answers without the standby is lost with it.
  pair.cutOff();
  const answered = created.length;
  await until(async () => created.length >= answered + enough || (await pair.isWaiting()));
  await pair.killPrimary();
  await until(() => refused.length >= writers);
  const ready = () => service.call('GET', '//ready', { key: null });
  assert.equal((await ready()).status, 503);
  assert.equal((await service.call('GET', '//health', { key: null })).status, 200);
  await pair.promote();
  await until(async () => (await ready()).status === 200);
  const before = created.length;
  await until(() => created.length >= before + enough);
  isOver = true;
  await writing;

  for (const { status, text } of refused) assert.equal(status, 503, text);
  for (const { body } of created) {
    const expected = claimed.get(body.id)?.body ?? body;
    const now = (await service.call('GET', `/packets/${body.id}`)).body;
    // A claim whose answer was a 503 may have happened.
    if (claimed.has(body.id)) assert.deepEqual(now, expected);
    else assert.ok(now.revision === 1 || now.revision === 2);
  }
  while (receiver.posts.length < created.length) {
    const delivered = receiver.posts.length;
    service.clock.turn(30);
    await service.handoff.runOnce.deliver();
    assert.ok(receiver.posts.length > delivered, `${receiver.posts.length} of ${created.length} deliveries arrived`);
  }
  const delivered = new Map(receiver.posts.map(({ headers, body }) => [headers['x-service-delivery'], JSON.parse(body)]));
  const packets = new Set([...delivered.values()].map(({ packet_id }) => packet_id));
  for (const { body } of created) assert.ok(packets.has(body.id));
  await assertSound(pair.url);
});
