import assert from 'node:assert/strict';
import { test } from 'node:test';

import { packetExample } from '../../../src/handoff/model/examples.ts';
import { createPacketViews } from '../../../src/handoff/service/packet-views.ts';
import type { Store } from '../../../src/handoff/store/store.ts';
import { Turns } from '../../../src/kit/turns.ts';

/** A store whose reads end when the test says so, as those of a database server do. */
function slowStore() {
  const stamping: (() => void)[] = [];
  const finding: (() => void)[] = [];
  const later = <T>(line: (() => void)[], value: T) => new Promise<T>((resolve) => line.push(() => resolve(value)));
  const packets = {
    stamp: () => later(stamping, { revision: packetExample.revision, status: 'created', root: packetExample.id }),
    find: () => later(finding, { packet: JSON.stringify(packetExample), revision: packetExample.revision }),
  };
  return { store: { of: () => ({ packets }) } as unknown as Store, stamping, finding };
}

/** Lets everything that can go on do so. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
}

/** Ends the reads that have begun until `read` has its results; returns the most that had begun at once. */
async function finish({ stamping, finding }: ReturnType<typeof slowStore>, read: Promise<unknown>): Promise<number> {
  let most = 0;
  let isRead = false;
  void read.then(() => (isRead = true));
  for (await settle(); !isRead; await settle()) {
    most = Math.max(most, finding.length);
    for (const end of [...stamping.splice(0), ...finding.splice(0)]) end();
  }
  return most;
}

test('a tenant has at most four packets read at once, however many it asks for', async () => {
  const slow = slowStore();
  const views = createPacketViews(slow.store, new Turns());
  const read = Promise.all(Array.from({ length: 30 }, (_, index) => views.of(1, `packet-${index}`)));
  assert.equal(await finish(slow, read), 4);
  assert.equal((await read).filter((view) => view?.packet.id === packetExample.id).length, 30);
});

test('a thousand who ask for the same packet at once share the query of its revision, and one read', async () => {
  const slow = slowStore();
  const views = createPacketViews(slow.store, new Turns());
  let asked = 0;
  const read = Promise.all(Array.from({ length: 1000 }, () => views.of(1, 'packet').then(() => (asked += 1))));
  await settle();
  assert.equal(slow.stamping.length, 1);
  slow.stamping.splice(0)[0]!();
  await settle();
  // Those that asked while the first query ran share the next one.
  assert.ok(slow.stamping.length <= 2, `${slow.stamping.length}`);
  await finish(slow, read);
  assert.equal(asked, 1000);
});
