import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createEraser } from '../../../src/handoff/jobs/eraser.ts';
import { createPruner } from '../../../src/handoff/jobs/pruner.ts';
import { createSweeper } from '../../../src/handoff/jobs/sweeper.ts';
import { createExample } from '../../../src/handoff/model/examples.ts';
import type { CreateRequest } from '../../../src/handoff/model/packet.ts';
import { createErasureService } from '../../../src/handoff/service/erasures.ts';
import { claimOf } from '../../../src/handoff/service/packets.ts';
import { createTenantService } from '../../../src/handoff/service/tenants.ts';
import type { Store } from '../../../src/handoff/store/store.ts';
import { noChannel, packetOfSubscriptions, type StoredWebhook } from '../../../src/handoff/store/webhooks.ts';
import { unavailable } from '../../../src/kit/errors.ts';
import { createIds } from '../../../src/kit/id.ts';
import { adminCaller as caller } from '../../support/caller.ts';
import { openPackets } from '../../support/packet-service.ts';
import { packetRequest, type TestClock } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';

/** The operations on erasures of a store whose packets are erased a day after they ended. */
const erasuresOf = (store: Store, clock: TestClock) =>
  createErasureService({ store, clock: clock.read, newId: createIds(), views: { forget: () => undefined }, retentionDays: 1 });

/** Whether a packet of the first tenant is erased. */
async function isErased(store: Store, id: string): Promise<boolean> {
  const found = await store.of(caller).packets.find(id);
  return JSON.parse(found!.packet).erased === true;
}

/** A subscription to events, except for its name. */
const subscription: Omit<StoredWebhook, 'name' | 'id' | 'created_at' | 'updated_at'> = {
  ...{ ...noChannel, seq: 0, kind: 'event', events: [], for_packet: packetOfSubscriptions, active: true, disabled_reason: null },
  ...{ url: 'https://example.com', secret: 'secret', old_secret: null, old_secret_until: null, failing_since: null, removed_at: null },
  ...{ key_id: null, key_origin: null, subscription: '{}', position: 0, expires_at: '2099-01-01T00:00:00.000Z' },
};

for (const store of stores) {
  describe(`The jobs on ${store.name}`, () => {
    for (const { what, unclaimedTtlSeconds, after } of [
      { what: 'packets whose lease is over', unclaimedTtlSeconds: 0, after: 'created' },
      { what: 'packets that nobody claims', unclaimedTtlSeconds: 60, after: 'expired' },
    ] as const) {
      test(`${what} and whose change fails again and again keep no other from theirs`, async (t) => {
        const { store: opened, packets, clock } = await openPackets(t, store);
        const ids: string[] = [];
        for (let index = 0; index < 203; index += 1)
          ids.push(JSON.parse((await packets.create(caller, packetRequest() as CreateRequest)).text).id);
        if (unclaimedTtlSeconds === 0) await packets.claimEach(caller, ids, claimOf({ agent_id: 'resolver', lease_seconds: 60 }));
        clock.turn(60);
        const failing = new Set(ids.slice(0, 200));
        const sweep = createSweeper({
          ...{ store: opened, clock: clock.read, unclaimedTtlSeconds, refresh: () => undefined },
          packets: {
            async sweep(tenant, id, command) {
              if (failing.has(id)) throw new Error('This packet fails.');
              await packets.sweep(tenant, id, command);
            },
          },
        });
        await assert.rejects(sweep(), /This packet fails/);
        await sweep();
        assert.equal((await opened.packets.countByStatus())[after], 3);
        // Those that failed are tried again, also much later.
        clock.turn(3600);
        failing.clear();
        for (let round = 0; round < 3; round += 1) await sweep();
        assert.equal((await opened.packets.countByStatus())[after], 203);
      });
    }

    test('an erasure that fails keeps no other from its own, and no packet from the end of its retention', async (t) => {
      const { store: opened, clock, newPacket, packets } = await openPackets(t, store);
      const erasures = erasuresOf(opened, clock);
      const asked: string[] = [];
      for (let index = 0; index < 22; index += 1) {
        const request = { packet_ids: [await newPacket()], reason: 'Request' };
        asked.push((await erasures.create(caller, request)).id);
      }
      const ended = await newPacket();
      await packets.sweep(1, ended, { kind: 'expire_unclaimed' });
      clock.turn(2 * 86_400);
      const failing = new Set(asked.slice(0, 20));
      const erase = createEraser({
        ...{ store: opened, now: () => clock.read().getTime() },
        erasures: {
          ...erasures,
          async step(tenant, id) {
            if (failing.has(id)) throw new Error('This erasure fails.');
            return erasures.step(tenant, id);
          },
        },
      });
      await assert.rejects(erase(), /This erasure fails/);
      assert.equal(await isErased(opened, ended), true);
      await erase();
      const open = async () => (await erasures.list(caller, { limit: 50, offset: 0 })).erasures.filter(({ status }) => status !== 'done');
      assert.deepEqual(new Set((await open()).map(({ id }) => id)), failing);
      failing.clear();
      for (let round = 0; round < 2; round += 1) await erase();
      assert.deepEqual(await open(), []);
    });

    test('a packet that can not be erased keeps no other, neither of its erasure nor of its retention', async (t) => {
      const { store: opened, clock, newPacket, packets } = await openPackets(t, store);
      const ids = [await newPacket(), await newPacket(), await newPacket()];
      const old = [await newPacket(), await newPacket(), await newPacket()];
      for (const id of old) await packets.sweep(1, id, { kind: 'expire_unclaimed' });
      const failing = new Set([ids[0], old[0]]);
      const whole = (tenant: number) => {
        const own = opened.whole(tenant);
        const commit: typeof own.commit = async (unit) => {
          if (unit.packets?.some((id) => failing.has(id))) throw new Error('This packet fails.');
          return opened.whole(tenant).commit(unit);
        };
        return Object.assign(own, { commit });
      };
      const erasures = erasuresOf({ ...opened, whole }, clock);
      await erasures.create(caller, { packet_ids: ids, reason: 'Request' });
      clock.turn(2 * 86_400);
      const erase = createEraser({ store: opened, now: () => clock.read().getTime(), erasures });
      const erased = () => Promise.all([...ids, ...old].map((id) => isErased(opened, id)));
      await assert.rejects(erase(), /This packet fails/);
      assert.deepEqual(await erased(), [false, true, true, false, true, true]);
      failing.clear();
      for (let round = 0; round < 3; round += 1) await erase();
      assert.deepEqual(await erased(), Array(6).fill(true));
    });

    test('packets that can not be erased keep no other of their erasure, however many they are, nor repeat what an outage stopped [H422]', async (t) => {
      const { store: opened, clock, packets } = await openPackets(t, store);
      const failing = new Set<string>();
      let fault = new Error('This packet fails.');
      let commits = 0;
      const whole = (tenant: number) => {
        const own = opened.whole(tenant);
        const commit: typeof own.commit = async (unit) => {
          commits += 1;
          if (unit.packets?.some((id) => failing.has(id))) throw fault;
          return opened.whole(tenant).commit(unit);
        };
        return Object.assign(own, { commit });
      };
      const erasures = erasuresOf({ ...opened, whole, isUnavailable: (error) => error === fault.cause }, clock);
      for (const bySubject of [true, false]) {
        const subjects = [`customer:${bySubject}`];
        const requests = Array.from({ length: 22 }, () => packetRequest({ metadata: { ...createExample.metadata, subjects } }));
        const ids: string[] = [];
        for (const request of requests) ids.push(JSON.parse((await packets.create(caller, request as CreateRequest)).text).id);
        for (const id of ids.toSorted().slice(0, 20)) failing.add(id);
        const { id } = await erasures.create(caller, {
          reason: 'Request',
          ...(bySubject ? { subject: subjects[0]! } : { packet_ids: ids }),
        });
        const erased = async () => (await Promise.all(ids.map((packet) => isErased(opened, packet)))).filter(Boolean).length;
        fault = new Error('This packet fails.');
        await assert.rejects(erasures.step(1, id), fault);
        assert.equal(await erasures.step(1, id), false);
        assert.deepEqual([await erased(), (await erasures.get(caller, id)).status], [2, 'running']);
        fault = unavailable(new Error('No database'));
        commits = 0;
        await assert.rejects(erasures.step(1, id), fault);
        assert.equal(commits, 1);
        failing.clear();
        for (let step = 0; step < 3; step += 1) await erasures.step(1, id);
        assert.deepEqual([await erased(), (await erasures.get(caller, id)).status], [22, 'done']);
      }
    });

    test('packets that nobody claims and that fail keep none from theirs that nobody claims after their not_before', async (t) => {
      const { store: opened, clock, newPacket, packets } = await openPackets(t, store);
      const first = await newPacket();
      const not_before = new Date(clock.read().getTime() + 1000).toISOString();
      const { text } = await packets.create(caller, { ...packetRequest(), not_before } as CreateRequest);
      const { id: later } = JSON.parse(text);
      clock.turn(2);
      await packets.sweep(1, later, { kind: 'time_out' });
      clock.turn(60);
      const found: string[][] = [];
      const round = opened.packets.unclaimed(clock.read(), 200, async (rows) => {
        found.push(rows.map(({ id }) => id));
        if (rows.some(({ id }) => id === first)) throw new Error('This packet fails.');
      });
      await assert.rejects(round, /This packet fails/);
      assert.deepEqual(found, [[first], [later]], 'each list at once');
    });

    test('each round of subscriptions, erasures and heads goes on behind the one before', async (t) => {
      const { store: opened, clock, tenant, newPacket } = await openPackets(t, store);
      const parts = { store: opened, clock: clock.read, newId: createIds() };
      await createTenantService(parts).create(caller, { name: 'Another' });
      const erasures = erasuresOf(opened, clock);
      for (const _ of [1, 2]) await erasures.create(caller, { packet_ids: [await newPacket()], reason: 'Request' });
      const at = clock.read().toISOString();
      await tenant.commit({
        work({ webhooks }) {
          for (const name of ['one', 'other'])
            webhooks.insert({ ...subscription, name, id: parts.newId(clock.read()), created_at: at, updated_at: at });
        },
      });
      const rounds: ((work: (found: readonly object[]) => Promise<void>) => Promise<boolean>)[] = [
        (work) => opened.webhooks.following(clock.read(), 1, work),
        (work) => opened.erasures.open(1, work),
        (work) => opened.trail.moved(1, work),
      ];
      for (const round of rounds) {
        const found: object[] = [];
        for (let index = 0; index < 5; index += 1) await round(async (rows) => void found.push(...rows));
        const [one, other] = found;
        assert.notDeepEqual(one, other);
        // After the last one, from the beginning again.
        assert.deepEqual(found, [one, other, one, other]);
      }
    });

    test('a table that fails does not keep the pruner from others', async (t) => {
      const { store: opened, clock } = await openPackets(t, store);
      const done: string[] = [];
      const failing = <Of extends object>(of: Of, names: readonly (keyof Of & string)[], fails: boolean): Of => ({
        ...of,
        ...Object.fromEntries(
          names.map((name) => [
            name,
            async () => {
              if (fails) throw new Error('This table fails.');
              done.push(name);
              return 0;
            },
          ]),
        ),
      });
      const prune = createPruner({
        store: {
          ...opened,
          idempotency: failing(opened.idempotency, ['forget'], true),
          answerLinks: failing(opened.answerLinks, ['forget'], false),
          webhooks: failing(opened.webhooks, ['scrub'], false),
        },
        clock: clock.read,
        retention: {
          ...{ idempotencyRetentionSeconds: 1, streamRetentionSeconds: 1 },
          ...{ deliveryRetentionSeconds: 1, deadLetterRetentionSeconds: 1 },
        },
      });
      await assert.rejects(prune(), /This table fails/);
      assert.deepEqual(done, ['scrub', 'forget']);
    });
  });
}
