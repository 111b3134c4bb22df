import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { packetIn, unknownId } from '../../support/life.ts';
import { walk } from '../../support/pages.ts';
import { createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** The fields of a packet that these tests read. */
interface Listed {
  id: string;
  context: { summary: string };
}

interface Page {
  packets: Listed[];
  total: number;
  limit: number;
  offset: number;
  next_cursor: string | null;
}

const agent = (id: string) => ({ id, name: id, framework: 'langgraph' });
const question = (required: boolean) => ({ required, reason: 'policy', question: 'Go on?' });

/** A create request with this summary. */
function named(
  name: string,
  { source = 'alpha', target = 'north', priority = 'normal', tags = [] as string[], hitl = undefined as boolean | undefined } = {},
): Record<string, unknown> {
  return packetRequest({
    metadata: { source_agent: agent(source), target_agent: agent(target), priority, tags },
    context: { summary: name },
    ...(hitl === undefined ? {} : { hitl: question(hitl) }),
  });
}

/** Nine packets, one per minute from 09:30 on, in all statuses. */
const seeds = [
  { name: 'a', source: 'alpha', target: 'north', priority: 'low', tags: ['red'], path: [] },
  { name: 'b', source: 'alpha', target: 'south', priority: 'normal', tags: ['red', 'blue'], path: ['claim'] },
  { name: 'c', source: 'beta', target: 'north', priority: 'high', tags: ['blue'], path: ['claim', 'in_progress'] },
  { name: 'd', source: 'beta', target: 'south', priority: 'critical', tags: ['red', 'blue', 'hot'], hitl: true, path: ['awaiting_human'] },
  { name: 'e', source: 'alpha', target: 'north', priority: 'normal', tags: ['a, b', ' c '], path: ['claim', 'completed'] },
  { name: 'f', source: 'beta', target: 'north', priority: 'high', tags: ['red'], hitl: false, path: ['failed'] },
  { name: 'g', source: 'alpha', target: 'south', priority: 'low', tags: ['hot'], path: ['expired'] },
  { name: 'h', source: 'beta', target: 'south', priority: 'normal', tags: ['red', 'blue'], hitl: true, path: [] },
  { name: 'i', source: 'alpha', target: 'north', priority: 'critical', tags: ['blue', 'red'], path: [] },
];

async function seed(service: TestService): Promise<void> {
  for (const { name, path, ...parts } of seeds) {
    const created = await service.call('POST', '/packets', { body: named(name, parts) });
    assert.equal(created.status, 201);
    for (const step of path) {
      const at = `/packets/${created.body.id}`;
      const moved =
        step === 'claim'
          ? await service.call('POST', `${at}/claim`, { body: { agent_id: 'worker' } })
          : await service.call('PATCH', at, { body: { status: step } });
      assert.equal(moved.status, 200);
    }
    service.clock.turn(60);
  }
}

async function list(service: TestService, query = '', key?: string): Promise<Page> {
  const answer = await service.call('GET', `/packets${query === '' ? '' : `?${query}`}`, key === undefined ? {} : { key });
  assert.equal(answer.status, 200, `${query}: ${answer.text}`);
  return answer.body;
}

const names = ({ packets }: Page) => packets.map(({ context }) => context.summary).join(' ');
const idsOf = (packets: readonly { id: string }[]) => packets.map(({ id }) => id);

/** Creates `count` packets in batches, each batch at one time, and returns their ids newest first. */
async function createMany(service: TestService, count: number, body: (index: number) => Record<string, unknown>): Promise<string[]> {
  const ids: string[] = [];
  for (let begun = 0; begun < count; begun += 100) {
    const packets = Array.from({ length: Math.min(100, count - begun) }, (_, index) => body(begun + index));
    const answer = await service.call('POST', '/packets/batch', { body: { packets } });
    assert.equal(answer.status, 201);
    ids.push(...idsOf(answer.body.created));
    service.clock.turn(0.001);
  }
  return ids.sort().reverse();
}

const listIn = (service: TestService) => (query: string) => list(service, query);

const minute = (at: string) => `2026-03-01T09:${at}.000Z`;

/** Query strings and the packets that match, newest first. */
const filters: [query: string, expected: string][] = [
  ['', 'i h g f e d c b a'],
  ['status=created', 'i h a'],
  ['status=claimed', 'b'],
  ['status=in_progress', 'c'],
  ['status=awaiting_human', 'd'],
  ['status=completed', 'e'],
  ['status=failed', 'f'],
  ['status=expired', 'g'],
  ['status=created,claimed', 'i h b a'],
  ['status=claimed,created,claimed', 'i h b a'],
  ['status=expired,failed,completed', 'g f e'],
  ['source_agent=alpha', 'i g e b a'],
  ['source_agent=Alpha', ''],
  ['source_agent=nobody', ''],
  ['target_agent=south', 'h g d b'],
  ['priority=critical', 'i d'],
  ['priority=low', 'g a'],
  ['tags=red', 'i h f d b a'],
  ['tags=red,blue', 'i h d b'],
  ['tags=blue,red', 'i h d b'],
  ['tags=hot,red,blue', 'd'],
  ['tags=red,unknown', ''],
  [`tags=${encodeURIComponent('"a, b"')}`, 'e'],
  [`tags=${encodeURIComponent('"a, b"," c "')}`, 'e'],
  ['tags=a,b', ''],
  ['hitl_required=true', 'h d'],
  ['hitl_required=false', 'i g f e c b a'],
  [`created_after=${minute('34:00')}`, 'i h g f e'],
  ['created_after=2026-03-01T09:34:00.001Z', 'i h g f'],
  [`created_before=${minute('34:00')}`, 'e d c b a'],
  ['created_before=2026-03-01T09:33:59.999Z', 'd c b a'],
  [`created_after=${minute('32:00')}&created_before=${minute('34:00')}`, 'e d c'],
  [`created_after=${minute('34:00')}&created_before=${minute('34:00')}`, 'e'],
  [`created_after=${minute('35:00')}&created_before=${minute('34:00')}`, ''],
  ['created_after=2026-03-01T11:04:00%2B01:30', 'i h g f e'],
  ['created_after=2026-03-01T11:04:00%2B0130', 'i h g f e'],
  ['created_after=2026-03-01', 'i h g f e d c b a'],
  ['created_before=2026-03-01', ''],
  ['created_before=9999-12-31', 'i h g f e d c b a'],
  ['created_after=0001-01-01', 'i h g f e d c b a'],
  ['created_before=1969-12-31', ''],
  ['status=created&source_agent=alpha', 'i a'],
  ['source_agent=alpha&target_agent=north', 'i e a'],
  ['status=created,claimed&tags=red,blue', 'i h b'],
  ['source_agent=beta&priority=high&tags=red', 'f'],
  ['hitl_required=true&status=awaiting_human', 'd'],
  ['status=created&priority=low', 'a'],
  ['status=created&hitl_required=true', 'h'],
  ['priority=normal&hitl_required=true', 'h'],
  ['priority=normal&hitl_required=false', 'e b'],
  ['hitl_required=false&tags=red', 'i f b a'],
  [`tags=red&created_after=${minute('31:00')}&created_before=${minute('37:00')}`, 'h f d b'],
  [`status=created&created_before=${minute('37:00')}`, 'h a'],
  [
    `status=created,failed&source_agent=alpha&target_agent=north&tags=red,blue&priority=critical&hitl_required=false&created_after=${minute('38:00')}&created_before=${minute('38:00')}`,
    'i',
  ],
];

for (const store of stores) {
  describe(`GET /packets on ${store.name}`, () => {
    test('filters apply alone and combined, and total counts exactly the matches [H71, H73]', async () => {
      const service = await shareService(store);
      await seed(service);
      for (const [query, expected] of filters) {
        const page = await list(service, query);
        assert.equal(names(page), expected, query);
        assert.equal(page.total, page.packets.length, `total of ${query}`);
        assert.deepEqual([page.limit, page.offset, page.next_cursor], [50, 0, null], query);
      }
    });

    test('every filter can be paged, by offset and by cursor with the same packets in the same order', async () => {
      const service = await shareService(store);
      await seed(service);
      for (const [query, expected] of filters) {
        const joint = query === '' ? '' : `${query}&`;
        const pages = await walk(listIn(service), `${joint}limit=2`);
        assert.equal(pages.map(names).filter(Boolean).join(' '), expected, query);
        const total = expected === '' ? 0 : expected.split(' ').length;
        for (const page of pages) assert.equal(page.total, total, query);
        assert.equal(names(await list(service, `${joint}offset=1&limit=1`)), expected.split(' ')[1] ?? '', query);
      }
    });

    test('limit is 1 to 200, by default 50', async () => {
      const service = await shareService(store);
      const ids = await createMany(service, 201, (index) => named(`${index}`));
      const one = await list(service, 'limit=1');
      assert.deepEqual(idsOf(one.packets), ids.slice(0, 1));
      const most = await list(service, 'limit=200');
      assert.deepEqual(idsOf(most.packets), ids.slice(0, 200));
      assert.equal(most.limit, 200);
      assert.notEqual(most.next_cursor, null);
      const usual = await list(service);
      assert.equal(usual.packets.length, 50);
      assert.equal(usual.limit, 50);
      assert.equal(usual.total, 201);
    });

    test('packets are listed newest first, those of the same time by descending id [H72]', async () => {
      const service = await shareService(store);
      const early = await createMany(service, 30, (index) => named(`early ${index}`));
      service.clock.turn(60);
      const late = await createMany(service, 30, (index) => named(`late ${index}`));
      assert.ok(late.at(-1)! > early[0]!);
      const { packets } = await list(service, 'limit=200');
      assert.deepEqual(idsOf(packets), [...late, ...early]);
    });

    test('a list has summaries: no decisions, actions or dependencies, only the summary of the context, and counts [H69]', async () => {
      const service = await shareService(store);
      const parent = await createPacket(service);
      service.clock.turn(1);
      const packet = await createPacket(service, {
        parent_packet_id: parent.id,
        context: {
          summary: 'Counted',
          conversation_state: [
            { role: 'user', content: 'one' },
            { role: 'assistant', content: 'two' },
          ],
          artifacts: [{ key: 'a', value: 1 }],
          custom: { secret: 'kept out of lists' },
          extra: 'kept out as well',
        },
        decisions: [{ id: 'd1', decision: 'Yes', rationale: '' }],
        actions: {
          pending: [
            { id: 'p1', description: 'p', assignee: '' },
            { id: 'p2', description: 'p', assignee: '' },
            { id: 'p3', description: 'p', assignee: '' },
          ],
          completed: [{ id: 'c1', description: 'c', result: '' }],
          failed: [{ id: 'f1', description: 'f', error: '' }],
        },
        dependencies: [{ id: 'x', type: 'service', description: 'x' }],
        hitl: question(true),
      });
      const { decisions: _d, actions: _a, dependencies: _x, context: _c, ...rest } = packet;
      const [shown] = (await list(service)).packets;
      assert.deepEqual(shown, {
        ...rest,
        context: { summary: 'Counted' },
        counts: { decisions: 1, pending: 3, completed: 1, failed: 1, dependencies: 1, turns: 2, artifacts: 1 },
      });
    });

    test('a summary reflects every change of its packet', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'worker', agent_name: 'Worker' } });
      service.clock.turn(5);
      const changed = await service.call('PATCH', `/packets/${id}`, {
        body: {
          status: 'in_progress',
          context: { summary: 'Now' },
          metadata: { tags: ['new'] },
          actions: { completed: [{ id: 'a1', result: 'done' }] },
        },
      });
      assert.equal(changed.status, 200);
      const { packets } = await list(service, 'tags=new&status=in_progress');
      assert.equal(packets.length, 1);
      const [shown] = packets as unknown as Record<string, unknown>[];
      assert.deepEqual(shown!.context, { summary: 'Now' });
      assert.deepEqual(shown!.claimed_by, { agent_id: 'worker', agent_name: 'Worker', framework: null });
      assert.equal(shown!.revision, 3);
      assert.equal(shown!.updated_at, '2026-03-01T09:30:05.000Z');
      assert.deepEqual((shown!.counts as { pending: number; completed: number }).completed, 1);
      assert.equal((await list(service, 'tags=billing')).total, 0);
    });

    test('view=full returns whole packets, byte for byte as GET does [H69]', async () => {
      const service = await shareService(store);
      const first = await createPacket(service);
      service.clock.turn(1);
      const second = await createPacket(service, { hitl: question(true) });
      const { packets, total } = await list(service, 'view=full');
      assert.equal(total, 2);
      assert.deepEqual(packets, [second, first]);
      const { text } = await service.call('GET', '/packets?view=full');
      for (const { id } of packets) assert.ok(text.includes((await service.call('GET', `/packets/${id}`)).text), text);
      const filtered = await list(service, 'view=full&hitl_required=true&limit=1');
      assert.deepEqual(filtered.packets, [second]);
      const summaries = await list(service, 'view=summary');
      assert.ok(!('decisions' in summaries.packets[0]!));
    });

    test('paging by cursor returns each packet once, in order, while others are created and change', async () => {
      const service = await shareService(store);
      const ids = await createMany(service, 25, (index) => named(`${index}`));
      let created = 25;
      const pages = await walk(listIn(service), 'limit=7', async () => {
        service.clock.turn(1);
        await service.call('POST', '/packets', { body: named('newcomer') });
        created += 1;
        await service.call('POST', `/packets/${ids[20]}/claim`, { body: { agent_id: 'worker' } });
      });
      assert.deepEqual(
        pages.flatMap(({ packets }) => idsOf(packets)),
        ids,
      );
      assert.deepEqual(
        pages.map(({ packets }) => packets.length),
        [7, 7, 7, 4],
      );
      assert.deepEqual(
        pages.map(({ total }) => total),
        [25, 26, 27, 28],
      );
      assert.equal((await list(service)).total, created);
    });

    test('paging a filter by cursor returns each of its packets once while others are created', async () => {
      const service = await shareService(store);
      const body = (index: number) =>
        named(`${index}`, { source: index % 2 === 0 ? 'even' : 'odd', tags: index % 3 === 0 ? ['third'] : [] });
      const ids = await createMany(service, 60, body);
      const shown = new Map((await list(service, 'limit=200')).packets.map((packet) => [packet.id, Number(packet.context.summary)]));
      for (const [query, wanted] of [
        ['source_agent=even', (index: number) => index % 2 === 0],
        ['status=created', () => true],
        ['source_agent=even&tags=third&status=created,claimed', (index: number) => index % 6 === 0],
      ] as const) {
        const pages = await walk(listIn(service), `${query}&limit=4`, async () => {
          service.clock.turn(1);
          await service.call('POST', '/packets', { body: body(0) });
          await service.call('POST', '/packets', { body: body(1) });
        });
        const seen = pages.flatMap(({ packets }) => idsOf(packets));
        assert.deepEqual(
          seen.filter((id) => shown.has(id)),
          ids.filter((id) => wanted(shown.get(id)!)),
          query,
        );
        assert.equal(new Set(seen).size, seen.length, query);
      }
    });

    test('next_cursor is null on the last page, even if that page is full', async () => {
      const service = await shareService(store);
      const ids = await createMany(service, 20, (index) => named(`${index}`));
      const pages = await walk(listIn(service), 'limit=10');
      assert.deepEqual(
        pages.map(({ packets }) => packets.length),
        [10, 10],
      );
      assert.deepEqual(
        pages.flatMap(({ packets }) => idsOf(packets)),
        ids,
      );
      assert.equal((await list(service, 'limit=20')).next_cursor, null);
    });

    test('the cursor of a page by offset continues after that page', async () => {
      const service = await shareService(store);
      const ids = await createMany(service, 12, (index) => named(`${index}`));
      const third = await list(service, 'limit=3&offset=6');
      assert.deepEqual(idsOf(third.packets), ids.slice(6, 9));
      assert.equal(third.offset, 6);
      const fourth = await list(service, `limit=3&cursor=${third.next_cursor}`);
      assert.deepEqual(idsOf(fourth.packets), ids.slice(9));
      assert.equal(fourth.offset, 0);
    });

    test('a cursor is 400 with other filters or an offset, for another list or tenant, or if it is changed [H70]', async () => {
      const service = await shareService(store);
      const other = await newTenant(service);
      await createMany(service, 4, (index) => named(`${index}`, { tags: ['red'] }));
      const cursor = (await list(service, 'limit=2&tags=red')).next_cursor!;
      const bad = [
        `tags=blue&cursor=${cursor}`,
        `cursor=${cursor}`,
        `tags=red&status=created&cursor=${cursor}`,
        `tags=red&offset=1&cursor=${cursor}`,
        ...[
          ...['', 'abc', '%00', '%FF', 'null', '{}', '..%2f', unknownId, 'A'.repeat(36), 'A'.repeat(5000)],
          ...[cursor.slice(0, -4), cursor.slice(0, 16), `${cursor}AAAA`, `${cursor}%00`, (cursor[0] === 'A' ? 'B' : 'A') + cursor.slice(1)],
          Buffer.from(unknownId).toString('base64url'),
        ].map((junk) => `tags=red&cursor=${junk}`),
      ];
      for (const [path, key] of [
        ...bad.map((query) => [`/packets?${query}`]),
        [`/packets/awaiting?cursor=${cursor}`],
        [`/packets?tags=red&cursor=${cursor}`, other.key],
      ]) {
        const answer = await service.call('GET', path!, key === undefined ? {} : { key });
        assert.deepEqual([answer.status, answer.body.field], [400, 'cursor'], path!);
      }
      const several = (await list(service, 'limit=2&status=created,claimed&tags=red,red')).next_cursor!;
      assert.equal((await list(service, `limit=2&status=claimed,created&tags=red&cursor=${several}`)).packets.length, 2);
      // The size and the view of a page are not part of the filters.
      assert.equal((await list(service, `tags=red&limit=1&view=full&cursor=${cursor}`)).packets.length, 1);
    });

    test('offsets over a thousand are exact, with and without a filter, and past the end', async () => {
      const service = await shareService(store);
      const ids = await createMany(service, 1_050, (index) => named(`${index}`, { source: 'deep' }));
      for (const query of ['', 'source_agent=deep&', 'status=created&', 'source_agent=deep&priority=normal&']) {
        const shallow = await list(service, `${query}offset=1000&limit=20`);
        assert.deepEqual(idsOf(shallow.packets), ids.slice(1000, 1020), query);
        const deep = await list(service, `${query}offset=1001&limit=20`);
        assert.deepEqual(idsOf(deep.packets), ids.slice(1001, 1021), query);
        assert.equal(deep.total, 1_050, query);
        assert.equal(deep.offset, 1001, query);
        const next = await list(service, `${query}limit=20&cursor=${deep.next_cursor}`);
        assert.deepEqual(idsOf(next.packets), ids.slice(1021, 1041), query);
        const last = await list(service, `${query}offset=1049&limit=20`);
        assert.deepEqual(idsOf(last.packets), ids.slice(1049), query);
        assert.equal(last.next_cursor, null, query);
        const beyond = await list(service, `${query}offset=1000000000&limit=20`);
        assert.deepEqual([beyond.packets, beyond.total, beyond.next_cursor], [[], 1_050, null], query);
      }
    });

    test('a page of more packets than one read has no gap, also after an offset and a cursor', async (t) => {
      const service = await startService(t, { store, settings: { SERVICE_BATCH_MAX: '500' } });
      const packets = Array.from({ length: 230 }, (_, index) => named(`${index}`));
      assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      const order = packets.map((_, index) => `${229 - index}`);
      for (const view of ['', '&view=full']) {
        const page = await list(service, `limit=120&offset=7${view}`);
        assert.equal(names(page), order.slice(7, 127).join(' '));
        assert.equal(names(await list(service, `limit=200&cursor=${page.next_cursor}${view}`)), order.slice(127).join(' '));
      }
    });

    test('a page contains large and small packets, each once and in order, in both views', async () => {
      const service = await shareService(store);
      const ids: string[] = [];
      for (let index = 0; index < 12; index += 1) {
        const summary = index % 5 === 2 ? 'word '.repeat(20_000) : 'small';
        ids.unshift((await createPacket(service, { context: { summary } })).id);
      }
      for (const view of ['summary', 'full']) {
        const pages = await walk(listIn(service), `view=${view}&limit=7`);
        assert.deepEqual(
          pages.flatMap(({ packets }) => idsOf(packets)),
          ids,
        );
      }
    });

    test('a page of more than 16 MiB ends early and continues with next_cursor; at an offset it is 413 with a limit that fits [H78]', async () => {
      const service = await shareService(store, { SERVICE_PACKET_BYTES_BUSINESS: '16777216' });
      // The newest packet is small; of the others, two fit in a page.
      const large = 'x'.repeat(5_650_000);
      const ids: string[] = [];
      for (const summary of [large, large, large, 'small', 'small'])
        ids.unshift((await createPacket(service, { context: { summary } })).id);
      const refused = await service.call('GET', '/packets?view=full&limit=200&offset=1');
      assert.equal(refused.status, 413, refused.text.slice(0, 200));
      assert.match(refused.body.detail, /limit=3, .*next_cursor/);
      for (const first of ['', '&offset=0']) {
        const pages = await walk((query) => listIn(service)(query.includes('cursor=') ? query : `${query}${first}`), 'view=full&limit=200');
        for (const { total, packets } of pages) assert.ok(total === 5 && packets.length < 5);
        assert.deepEqual(
          pages.flatMap(({ packets }) => idsOf(packets)),
          ids,
        );
      }
    });

    test('total stays exact through creates, claims, updates, deletes, removals and batches [H71]', async () => {
      const service = await shareService(store);
      const totals = async () => {
        const all = await list(service, 'limit=1');
        const created = await list(service, 'status=created&limit=1');
        const claimed = await list(service, 'status=claimed&limit=1');
        const others = await list(service, 'status=in_progress,awaiting_human,completed,failed,expired&limit=1');
        assert.equal(created.total + claimed.total + others.total, all.total);
        return [all.total, created.total, claimed.total, others.total];
      };
      const [first, second, third] = await createMany(service, 5, (index) => named(`${index}`));
      assert.deepEqual(await totals(), [5, 5, 0, 0]);
      await service.call('POST', `/packets/${first}/claim`, { body: { agent_id: 'worker' } });
      assert.deepEqual(await totals(), [5, 4, 1, 0]);
      await service.call('POST', '/packets/batch/claim', { body: { packet_ids: [first, second, third], agent_id: 'worker' } });
      assert.deepEqual(await totals(), [5, 2, 3, 0]);
      await service.call('PATCH', `/packets/${first}`, { body: { status: 'completed' } });
      assert.deepEqual(await totals(), [5, 2, 2, 1]);
      assert.equal((await service.call('DELETE', `/packets/${second}`)).status, 204);
      assert.deepEqual(await totals(), [5, 2, 1, 2]);
      assert.equal((await service.call('DELETE', `/packets/${first}?hard=true`)).status, 204);
      assert.deepEqual(await totals(), [4, 2, 1, 1]);
      assert.equal((await service.call('DELETE', `/packets/${first}?hard=true`)).status, 404);
      assert.equal((await service.call('POST', '/packets', { body: {} })).status, 400);
      assert.deepEqual(await totals(), [4, 2, 1, 1]);
    });

    test('concurrent requests for different lists each get their own list, of their own tenant [H77]', async () => {
      const service = await shareService(store);
      await seed(service);
      const { key } = await newTenant(service);
      await createPacket(service, named('Übergabe 日本 🙂'), key);
      const asked = [
        ['', 'i h g f e d c b a'],
        ['limit=2', 'i h'],
        ['limit=2&offset=2', 'g f'],
        ['status=created', 'i h a'],
        ['priority=low', 'g a'],
      ] as const;
      const others = async () => names(await list(service, '', key));
      const all = await Promise.all(
        Array.from({ length: 20 }, () => [...asked.map(async ([query]) => names(await list(service, query))), others()]).flat(),
      );
      const wanted = [...asked.map(([, found]) => found), 'Übergabe 日本 🙂'];
      assert.deepEqual(all, Array.from({ length: 20 }, () => wanted).flat());
    });

    test('concurrent requests for one list each get their own page, in the requested view', async () => {
      const service = await shareService(store);
      await seed(service);
      const { next_cursor } = await list(service, 'limit=2');
      const { next_cursor: further } = await list(service, `limit=2&cursor=${next_cursor}`);
      const asked = [
        ['limit=2', 'i h', false],
        ['limit=2&view=full', 'i h', true],
        [`limit=2&cursor=${next_cursor}`, 'g f', false],
        [`limit=2&cursor=${further}`, 'e d', false],
      ] as const;
      const all = await Promise.all(
        Array.from({ length: 20 }, () =>
          asked.map(async ([query]) => {
            const page = await list(service, query);
            return [query, names(page), 'decisions' in page.packets[0]!];
          }),
        ).flat(),
      );
      assert.deepEqual(all, Array.from({ length: 20 }, () => asked).flat());
    });

    test('a list after a create includes the packet, however many concurrent requests there are [H77]', async () => {
      const service = await shareService(store);
      const ask = async () => (await list(service)).total;
      for (let count = 1; count <= 10; count += 1) {
        const asking = Array.from({ length: 10 }, ask);
        await createPacket(service, named(`${count}`));
        asking.push(ask(), ask());
        const totals = await Promise.all(asking);
        assert.ok(totals.every((total) => total === count || total === count - 1));
        assert.deepEqual(totals.slice(-2), [count, count]);
      }
    });

    test('a timestamp without an offset is UTC, whatever the time zone of the service [H73]', async (t) => {
      const zone = process.env.TZ;
      process.env.TZ = 'America/New_York';
      t.after(() => {
        if (zone === undefined) delete process.env.TZ;
        else process.env.TZ = zone;
      });
      const service = await shareService(store);
      await seed(service);
      assert.equal(names(await list(service, 'created_after=2026-03-01T09:34:00&created_before=2026-03-01T09:36')), 'g f e');
    });

    test('hitl_required filters by whether the question requires an answer, whatever the status and whether it was answered [H73]', async () => {
      const service = await shareService(store);
      const { id: answered } = await packetIn(service, 'awaiting_human', { hitl: question(true) });
      assert.equal(
        (await service.call('POST', `/packets/${answered}/respond`, { body: { response: 'Yes', responded_by: 'dana' } })).status,
        200,
      );
      const { id: notAsked } = await createPacket(service, { hitl: question(true) });
      const { id: expired } = await packetIn(service, 'expired', { hitl: question(true) });
      const { id: optional } = await packetIn(service, 'awaiting_human', { hitl: question(false) });
      const { id: none } = await createPacket(service);
      const listed = async (value: boolean) =>
        (await service.call('GET', `/packets?hitl_required=${value}`)).body.packets.map(({ id }: { id: string }) => id);
      assert.deepEqual(await listed(true), [expired, notAsked, answered]);
      assert.deepEqual(await listed(false), [none, optional]);
    });

    test('a list can be filtered by at most 20 tags; an empty tags is no filter [H73]', async () => {
      const service = await shareService(store);
      const tags = Array.from({ length: 21 }, (_, index) => `t${index}`);
      await createPacket(service, { metadata: { ...(packetRequest().metadata as object), tags } });
      await createPacket(service);
      assert.equal((await list(service, `tags=${tags.slice(0, 20).join(',')}`)).total, 1);
      const refused = await service.call('GET', `/packets?tags=${tags.join(',')}`);
      assert.equal(refused.status, 400);
      assert.equal(refused.body.field, 'tags');
      assert.equal((await list(service, 'tags=')).total, 2);
      assert.equal((await list(service, 'tags=,')).total, 2);
    });
  });
}
