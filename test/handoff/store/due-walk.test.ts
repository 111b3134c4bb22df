import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';

import { createSweeper } from '../../../src/handoff/jobs/sweeper.ts';
import type { CreateRequest } from '../../../src/handoff/model/packet.ts';
import { claimOf } from '../../../src/handoff/service/packets.ts';
import { DueWalk } from '../../../src/handoff/store/due-walk.ts';
import { adminCaller as caller } from '../../support/caller.ts';
import { connectTo } from '../../support/databases.ts';
import { openPackets } from '../../support/packet-service.ts';
import { packetRequest } from '../../support/service.ts';
import { endOfFile } from '../../support/shared.ts';
import { pagesOf, recordStatements } from '../../support/statements.ts';
import { postgresql } from '../../support/stores.ts';

const at = (seconds: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, seconds));
const row = (seconds: number) => ({ due_at: at(seconds).toISOString() });

describe('The walk over due rows', () => {
  test('begins at the earliest row that it found or that was written meanwhile, or ten seconds before it began', () => {
    const walk = new DueWalk(true);
    assert.equal(walk.from(at(0)), '');
    walk.found([], false);
    assert.equal(walk.from(at(30)), row(-10).due_at);
    walk.found([row(25), row(5)], false);
    assert.equal(walk.from(at(31)), row(5).due_at);
    walk.written(row(3).due_at);
    walk.found([], false);
    assert.equal(walk.from(at(32)), row(3).due_at);
    walk.found([], false);
    walk.written(row(30).due_at);
    assert.equal(walk.from(at(33)), row(22).due_at);
  });

  test('goes on behind the rows of the round before, from the same time on, and then once from the beginning', () => {
    const walk = new DueWalk(true);
    walk.from(at(0));
    walk.found([], false);
    walk.from(at(40));
    assert.equal(walk.found([row(1), row(2)], true), true);
    assert.deepEqual([walk.from(at(41)), walk.last], [row(-10).due_at, row(2)]);
    assert.equal(walk.found([row(4)], false), true);
    assert.deepEqual([walk.from(at(42)), walk.last], [row(1).due_at, undefined]);
    assert.equal(walk.found([], false), false);
  });

  test('looks at all rows each minute, when the clock was set back, and where no entries stay behind', () => {
    const walk = new DueWalk(true);
    walk.from(at(0));
    walk.found([], false);
    assert.notEqual(walk.from(at(59)), '');
    walk.found([], false);
    assert.equal(walk.from(at(60)), '');
    walk.found([], false);
    assert.equal(walk.from(at(-1)), '');
    const whole = new DueWalk(false);
    whole.from(at(0));
    whole.found([], false);
    assert.equal(whole.from(at(1)), '');
  });
});

interface DueCase {
  readonly what: string;
  /** A part of the statement that looks for them. */
  readonly part: string;
  /** Makes some, which are due within a minute. */
  readonly make: (opened: Opened, count: number) => Promise<unknown>;
  readonly round: (opened: Opened) => Promise<unknown>;
}

type Opened = Awaited<ReturnType<typeof openPackets>>;

async function createPackets({ packets }: Opened, count: number, more: Partial<CreateRequest> = {}): Promise<string[]> {
  const requests = Array.from({ length: count }, () => ({ ...packetRequest(), ...more }) as CreateRequest);
  return (await Promise.all(requests.map((request) => packets.create(caller, request)))).map(({ text }) => JSON.parse(text).id);
}

const sweeping =
  (unclaimedTtlSeconds: number) =>
  async ({ store, packets, clock }: Opened): Promise<void> => {
    const sweep = createSweeper({ store, packets, clock: clock.read, refresh: () => undefined, unclaimedTtlSeconds });
    while ((await sweep()) === 0);
  };

const cases: DueCase[] = [
  {
    ...{ what: 'packets whose lease is over', part: 'from "packets" where "due_at"', round: sweeping(0) },
    async make(opened, count) {
      const ids = await createPackets(opened, count);
      await opened.packets.claimEach(caller, ids, claimOf({ agent_id: 'resolver', lease_seconds: 60 }));
    },
  },
  { what: 'packets that nobody claims', part: '"packets"."id" <', make: createPackets, round: sweeping(60) },
  {
    ...{ what: 'packets that nobody claims after their not_before', part: '"packets"."available_at" <', round: sweeping(60) },
    make: (opened, count) => createPackets(opened, count, { not_before: new Date(opened.clock.read().getTime() + 1000).toISOString() }),
  },
  {
    ...{ what: 'schedules', part: 'from "schedules" where "due_at"' },
    async make({ tenant, clock }, count) {
      for (let index = 0; index < count; index += 1) await saveSchedule(tenant, new Date(clock.read().getTime() + index).toISOString());
    },
    async round({ store, tenant, clock }) {
      await store.schedules.due(clock.read(), 100, (due) => Promise.all(due.map(() => saveSchedule(tenant, null))));
    },
  },
];

const saveSchedule = (tenant: Opened['tenant'], due_at: string | null) =>
  tenant.commit({
    schedulesOf: ['report'],
    work({ schedules }) {
      const names = { name: 'report', key_origin: 'key', source_agent: 'a', target_agent: 'b' };
      // Few versions of the row fit on a page.
      const last_error = 'x'.repeat(1500);
      schedules.save({ ...names, version: 1, due_at, last_at: null, last_packet_id: null, last_error, disabled_reason: null });
    },
  });

describe('Beside a session that holds an older snapshot', () => {
  let opened: Opened;
  let reader: Awaited<ReturnType<typeof connectTo>>;

  before(async () => {
    opened = await openPackets(endOfFile, postgresql);
    reader = await connectTo(endOfFile, opened.url);
    const holder = await connectTo(endOfFile, opened.url);
    await holder.query('begin isolation level repeatable read');
    await holder.query('select 1');
  });

  for (const { what, part, make, round } of cases) {
    test(`${what} are found without a visit to those that were done since`, async (t) => {
      const looks = recordStatements(t, part);
      const pagesAfter = async (count: number) => {
        await make(opened, count);
        for (const seconds of [2, 62, 31, 1]) {
          opened.clock.turn(seconds);
          await round(opened);
        }
        const look = looks.at(-1)!;
        await reader.query('analyze');
        return pagesOf(reader, look);
      };
      const few = await pagesAfter(10);
      const many = await pagesAfter(200);
      assert.ok(many <= few + 10, `${few} pages, then ${many}`);
    });
  }

  test('a packet that waits again, long after it was created, is found at once', async () => {
    const expired = (await opened.store.packets.countByStatus()).expired;
    const [id] = await createPackets(opened, 1);
    await opened.packets.claimEach(caller, [id!], claimOf({ agent_id: 'resolver', lease_seconds: 600 }));
    for (const seconds of [590, 11]) {
      opened.clock.turn(seconds);
      await sweeping(60)(opened);
    }
    assert.equal((await opened.store.packets.countByStatus()).expired, expired + 1);
  });
});
