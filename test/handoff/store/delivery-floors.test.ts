import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DeliveryFloors } from '../../../src/handoff/store/delivery-floors.ts';
import { connectTo } from '../../support/databases.ts';
import { openInstances } from '../../support/instances.ts';
import { startReceiver } from '../../support/receiver.ts';
import { packetRequest } from '../../support/service.ts';
import { pagesOf, recordStatements } from '../../support/statements.ts';
import { repeat } from '../../support/until.ts';
import { register } from '../../support/webhooks.ts';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds));
const iso = (seconds: number) => at(seconds).toISOString();

/** Floors after a look at all, with as many leased deliveries of each of these destinations as a floor needs. */
function floorsOf(...webhooks: number[]): DeliveryFloors {
  const floors = new DeliveryFloors();
  floors.start(at(0));
  for (const webhook of webhooks) floors.leased(webhook, 100);
  return floors;
}

describe('Where the search for due deliveries begins', () => {
  test('is the start of all destinations until many deliveries of one were leased', () => {
    const floors = new DeliveryFloors();
    floors.leased(7, 99);
    assert.deepEqual(floors.start(at(0)), { floors: [], gaps: [{ after: 0, before: Number.MAX_SAFE_INTEGER }] });
    floors.leased(7, 1);
    assert.deepEqual(floors.start(at(1)), {
      floors: [{ webhook: 7, from: '' }],
      gaps: [
        { after: 0, before: 7 },
        { after: 7, before: Number.MAX_SAFE_INTEGER },
      ],
    });
  });

  test('is the first pending delivery, or ten seconds before the last look if there is none or a later one', () => {
    const floors = floorsOf(1, 2, 3);
    floors.looked(at(30), [
      { webhook: 1, due_at: iso(5) },
      { webhook: 2, due_at: iso(90) },
    ]);
    assert.deepEqual(floors.start(at(31)).floors, [
      { webhook: 1, from: iso(5) },
      { webhook: 2, from: iso(20) },
      { webhook: 3, from: iso(20) },
    ]);
  });

  test('leaves no destination out: each is between two floors or has one', () => {
    const { floors, gaps } = floorsOf(4, 5, 9).start(at(1));
    const covered = (webhook: number) =>
      floors.filter((one) => one.webhook === webhook).length +
      gaps.filter(({ after, before }) => after < webhook && webhook < before).length;
    assert.deepEqual(
      Array.from({ length: 20 }, (_, index) => covered(index + 1)),
      Array(20).fill(1),
    );
  });

  test('is the start of all again each minute, and when the clock was set back', () => {
    const floors = floorsOf(1);
    floors.looked(at(59), []);
    assert.deepEqual(floors.start(at(59)).floors, [{ webhook: 1, from: iso(49) }]);
    assert.deepEqual(floors.start(at(60)).floors, [{ webhook: 1, from: '' }]);
    floors.looked(at(60), []);
    assert.deepEqual(floors.start(at(-1)).floors, [{ webhook: 1, from: '' }]);
  });

  test('is kept for a hundred destinations, those leased last', () => {
    const floors = floorsOf(...Array.from({ length: 101 }, (_, index) => index + 1));
    assert.deepEqual(
      floors.start(at(1)).floors.map(({ webhook }) => webhook),
      Array.from({ length: 100 }, (_, index) => index + 2),
    );
  });
});

test('Due deliveries are found without a visit to those that were sent since another session took its snapshot', async (t) => {
  const { start, url, clock } = await openInstances(t);
  const service = await start({ SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
  const receiver = await startReceiver(t);
  await register(service, receiver.url);
  const { deliver } = service.handoff.runOnce;
  const send = async (count: number) => {
    const packets = Array.from({ length: count }, () => packetRequest());
    assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
    const before = receiver.posts.length;
    await repeat(deliver, () => receiver.posts.length === before + count);
  };
  // Receivers get a floor with their hundredth delivery.
  for (let batch = 0; batch < 3; batch += 1) await send(40);
  const holder = await connectTo(t, url);
  await holder.query('begin isolation level repeatable read');
  await holder.query('select 1');
  const reader = await connectTo(t, url);
  const [looks, claims] = [recordStatements(t, 'begun'), recordStatements(t, 'due_rows')];
  const pagesAfter = async (batches: number) => {
    for (let batch = 0; batch < batches; batch += 1) await send(40);
    // Leased deliveries are due after twenty seconds.
    clock.turn(31);
    await deliver();
    await send(1);
    return (await pagesOf(reader, looks.at(-1)!)) + (await pagesOf(reader, claims.at(-1)!));
  };
  const few = await pagesAfter(1);
  const many = await pagesAfter(6);
  assert.ok(many <= few + 4, `${few} pages, then ${many}`);
});
