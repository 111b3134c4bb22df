import assert from 'node:assert/strict';
import { test } from 'node:test';

import { packetExample } from '../../../src/handoff/model/examples.ts';
import type { Viewer } from '../../../src/handoff/rules/sight.ts';
import { createPacketViews, type PacketReads } from '../../../src/handoff/service/packet-views.ts';
import { Turns } from '../../../src/kit/turns.ts';
import { until } from '../../support/until.ts';

/** A query that the test ends. */
interface Query {
  readonly tenant: number;
  readonly end: () => void;
}

/** A store whose queries end when the test says so, as those of a database server do. */
class SlowStore implements PacketReads {
  /** The queries in progress, of a packet's revision and of its text. */
  readonly stamping: Query[] = [];
  readonly finding: Query[] = [];
  /** How many queries of either kind were made. */
  stamps = 0;
  finds = 0;

  of({ tenant_number: tenant }: Viewer) {
    const later = <T>(line: Query[], value: T) => new Promise<T>((resolve) => line.push({ tenant, end: () => resolve(value) }));
    const { id: root, revision } = packetExample;
    return {
      packets: {
        stamp: () => {
          this.stamps += 1;
          return later(this.stamping, { revision, status: 'created' as const, due_at: null, root });
        },
        find: () => {
          this.finds += 1;
          return later(this.finding, { packet: JSON.stringify(packetExample), revision });
        },
      },
    };
  }

  endStamps(): void {
    for (const { end } of this.stamping.splice(0)) end();
  }

  /** Ends all queries until the reads are done. */
  async finish<T>(reads: Promise<T>): Promise<T> {
    let isDone = false;
    const done = reads.finally(() => {
      isDone = true;
    });
    await until(() => {
      this.endStamps();
      for (const { end } of this.finding.splice(0)) end();
      return isDone;
    });
    return done;
  }
}

test('a tenant has at most four packets read at once, however many it asks for, and does not delay another tenant', async () => {
  const slow = new SlowStore();
  const views = createPacketViews(slow, new Turns());
  const own = Promise.all(Array.from({ length: 30 }, (_, index) => views.of({ tenant_number: 1 }, `packet-${index}`)));
  const begun = (tenant: number) => slow.finding.filter((query) => query.tenant === tenant).length;
  const whenBegun = (tenant: number, count: number) =>
    until(() => {
      slow.endStamps();
      return begun(tenant) >= count;
    });
  await whenBegun(1, 4);
  const other = views.of({ tenant_number: 2 }, 'packet');
  await whenBegun(2, 1);
  // A fifth would have begun before the read of the other tenant, which was asked for later.
  assert.equal(begun(1), 4);
  await slow.finish(other);
  const read = await slow.finish(own);
  assert.equal(read.filter((view) => view?.packet.id === packetExample.id).length, 30);
});

test('a thousand who ask for the same packet at once share the query of its revision, and one read', async () => {
  const slow = new SlowStore();
  const views = createPacketViews(slow, new Turns());
  const asked = Promise.all(Array.from({ length: 1000 }, () => views.of({ tenant_number: 1 }, 'packet')));
  assert.equal(slow.stamps, 1);
  const read = await slow.finish(asked);
  assert.equal(read.filter((view) => view?.packet.id === packetExample.id).length, 1000);
  // Those that ask while the first query runs share the next one; the third is that of the read.
  assert.ok(slow.stamps <= 3, `${slow.stamps}`);
  assert.equal(slow.finds, 1);
});

test('what is forgotten is read again, also by a read that had begun before, which is not kept', async () => {
  const slow = new SlowStore();
  const views = createPacketViews(slow, new Turns());
  const view = () => slow.finish(views.of({ tenant_number: 1 }, 'packet'));
  await view();
  await view();
  assert.equal(slow.finds, 1);
  views.forget();
  await view();
  assert.equal(slow.finds, 2);

  const begun = views.of({ tenant_number: 1 }, 'another');
  await until(() => {
    slow.endStamps();
    return slow.finding.length === 1;
  });
  views.forget();
  await slow.finish(begun);
  assert.equal(slow.finds, 3);
  await slow.finish(views.of({ tenant_number: 1 }, 'another'));
  assert.equal(slow.finds, 4);
});
