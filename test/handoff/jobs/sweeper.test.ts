import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createPruner } from '../../../src/handoff/jobs/pruner.ts';
import { createSweeper } from '../../../src/handoff/jobs/sweeper.ts';
import type { CreateRequest } from '../../../src/handoff/model/packet.ts';
import { claimOf } from '../../../src/handoff/service/packets.ts';
import { adminCaller as caller } from '../../support/caller.ts';
import { openPackets } from '../../support/packet-service.ts';
import { packetRequest } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';

for (const store of stores) {
  describe(`The jobs on ${store.name}`, () => {
    test('packets whose change fails again and again keep no other from theirs', async (t) => {
      const { store: opened, packets, clock } = await openPackets(t, store);
      const ids: string[] = [];
      for (let index = 0; index < 203; index += 1)
        ids.push(JSON.parse((await packets.create(caller, packetRequest() as CreateRequest)).text).id);
      await packets.claimEach(caller, ids, claimOf({ agent_id: 'resolver', lease_seconds: 60 }));
      clock.turn(60);
      const failing = new Set(ids.slice(0, 200));
      const sweep = createSweeper({
        store: opened,
        clock: clock.read,
        unclaimedTtlSeconds: 0,
        packets: {
          async sweep(tenant, id, command) {
            if (failing.has(id)) throw new Error('This packet fails.');
            await packets.sweep(tenant, id, command);
          },
        },
      });
      await assert.rejects(sweep(), /This packet fails/);
      await sweep();
      assert.equal((await opened.packets.countByStatus()).created, 3);
      // Those that failed are tried again, also much later.
      clock.turn(3600);
      failing.clear();
      for (let round = 0; round < 3; round += 1) await sweep();
      assert.equal((await opened.packets.countByStatus()).created, 203);
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
