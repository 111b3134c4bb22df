import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';

import type { Tables } from '../../../src/handoff/store/tables.ts';
import { openDatabase } from '../../../src/kit/sql/database.ts';
import { a2a } from '../../support/a2a.ts';
import { walk } from '../../support/pages.ts';
import { createPacket, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';

/** The largest packet of 16 MiB, so that a few packets fill a page. */
const settings = { SERVICE_PACKET_BYTES_BUSINESS: '16777216' };

interface Page {
  readonly total: number;
  readonly packets: readonly { id: string }[];
  readonly next_cursor: string | null;
}

const listIn = (service: TestService) => async (query: string) => {
  const { status, body } = await service.call('GET', `/packets?${query}`);
  assert.equal(status, 200);
  return body as Page;
};

const idsOf = (pages: readonly Page[]): string[] => pages.flatMap(({ packets }) => packets.map(({ id }) => id));

for (const store of stores) {
  describe(`After a hard delete, on ${store.name}`, () => {
    test('409: an answer stored under an idempotency key is removed with its packet [H264]', async () => {
      const service = await shareService(store, settings);
      const headers = { 'idempotency-key': 'once' };
      const made = await service.call('POST', '/packets', { body: packetRequest(), headers });
      assert.equal(made.status, 201);
      assert.equal((await service.call('DELETE', `/packets/${made.body.id}?hard=true`)).status, 204);
      const again = await service.call('POST', '/packets', { body: packetRequest(), headers });
      assert.equal(again.status, 409);
      assert.equal(again.text.includes('charged twice'), false);
    });

    test('the stored answer to a batch is removed with any of its packets', async () => {
      const service = await shareService(store, settings);
      const headers = { 'idempotency-key': 'batch' };
      const body = { packets: [packetRequest(), packetRequest()] };
      const made = await service.call('POST', '/packets/batch', { body, headers });
      assert.equal(made.status, 201);
      for (const { id } of made.body.created) assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      assert.equal((await service.call('POST', '/packets/batch', { body, headers })).status, 409);
    });

    test('nothing of a packet is left that a request of the same moment stored: no repeated answer, answer link or push configuration', async () => {
      const service = await shareService(store, { ...settings, SERVICE_WEBHOOK_ALLOW: '127.0.0.1' });
      const ids: string[] = [];
      for (let round = 0; round < 8; round += 1) {
        const question = { required: true, reason: '', question: 'Go on?' };
        const { id } = await createPacket(service, { hitl: question });
        const asked = await createPacket(service, { hitl: question });
        await service.call('PATCH', `/packets/${asked.id}`, { body: { status: 'awaiting_human' } });
        const claim = () =>
          service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' }, headers: { 'idempotency-key': `claim ${id}` } });
        ids.push(id, asked.id);
        const config = { taskId: asked.id, id: 'mine', url: 'http://127.0.0.1:9/', token: 'a-token-for-tests-0123456789' };
        const [, , link] = await Promise.all([
          claim(),
          a2a(service, 'CreateTaskPushNotificationConfig', config),
          service.call('POST', `/packets/${asked.id}/answer-links`, { body: { responder: 'dana' } }),
          service.call('DELETE', `/packets/${id}?hard=true`),
          service.call('DELETE', `/packets/${asked.id}?hard=true`),
        ]);
        const again = await claim();
        assert.ok(again.status === 409 || again.status === 404, `${again.status}`);
        assert.ok(!again.text.includes('charged twice'));
        const url = link.body.url === undefined ? undefined : new URL(link.body.url).pathname;
        if (url !== undefined) assert.equal((await service.call('GET', `/${url}`, { key: null })).status, 404);
      }
      if (store.name === 'SQLite in memory') return;
      const database = openDatabase<Tables>(service.databaseUrl);
      for (const table of ['answer_links', 'idempotency_packets'] as const)
        assert.deepEqual(await database.reads.selectFrom(table).select('packet_id').where('packet_id', 'in', ids).execute(), [], table);
      assert.deepEqual(await database.reads.selectFrom('webhooks').select('id').where('for_packet', 'in', ids).execute(), []);
      await database.close();
    });

    test('totals by status, priority and question stay exact through changes and removal', async () => {
      const service = await shareService(store, settings);
      const hitl = { required: true, reason: '', question: 'Go on?' };
      const first = await createPacket(service, { hitl });
      const second = await createPacket(service, { hitl });
      await createPacket(service);
      const totals = async () => {
        const queries = ['', '?priority=high', '?priority=low', '?hitl_required=true', '?hitl_required=false', '?status=created'];
        return Promise.all(queries.map(async (query) => (await service.call('GET', `/packets${query}`)).body.total));
      };
      assert.deepEqual(await totals(), [3, 3, 0, 2, 1, 3]);
      assert.equal(
        (await service.call('PATCH', `/packets/${first.id}`, { body: { metadata: { priority: 'low' }, hitl: null } })).status,
        200,
      );
      assert.deepEqual(await totals(), [3, 2, 1, 1, 2, 3]);
      assert.equal((await service.call('DELETE', `/packets/${second.id}?hard=true`)).status, 204);
      assert.deepEqual(await totals(), [2, 1, 1, 0, 2, 2]);
    });

    test('a page contains large and small packets, each once and in order, in both views', async () => {
      const service = await shareService(store, settings);
      const ids: string[] = [];
      for (let index = 0; index < 12; index += 1) {
        const summary = index % 5 === 2 ? 'word '.repeat(20_000) : 'small';
        ids.unshift((await createPacket(service, { context: { summary } })).id);
      }
      for (const view of ['summary', 'full']) {
        const pages = await walk(listIn(service), `view=${view}&limit=7`);
        assert.deepEqual(idsOf(pages), ids);
      }
    });

    test('a page of more than 16 MiB ends early and continues with next_cursor; at an offset it is 413 with a limit that fits [H78]', async () => {
      const service = await shareService(store, settings);
      // The newest packet is small; of the others, two fit in a page.
      const large = 'word '.repeat(1_130_000);
      const ids: string[] = [];
      for (const summary of [large, large, large, 'small', 'small'])
        ids.unshift((await createPacket(service, { context: { summary } })).id);
      const refused = await service.call('GET', '/packets?view=full&limit=200&offset=1');
      assert.equal(refused.status, 413, refused.text.slice(0, 200));
      assert.match(refused.body.detail, /limit=3, .*next_cursor/);
      for (const first of ['', '&offset=0']) {
        const pages = await walk((query) => listIn(service)(query.includes('cursor=') ? query : `${query}${first}`), 'view=full&limit=200');
        for (const { total, packets } of pages) assert.ok(total === 5 && packets.length < 5);
        assert.deepEqual(idsOf(pages), ids);
      }
    });
  });
}

for (const store of storesOfSeveral) {
  describe(`The tables after a hard delete, on ${store.name}`, () => {
    test('204: no table contains anything of the packet but the audit entry of its removal', async (t) => {
      const service = await startService(t, { store });
      const headers = { 'idempotency-key': 'once' };
      const made = await service.call('POST', '/packets', { body: packetRequest(), headers });
      assert.equal(made.status, 201);
      const { id } = made.body;
      assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'resolver' } })).status, 200);
      await service.handoff.runOnce.index();
      assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'Other words' } } })).status, 200);
      assert.equal((await service.call('DELETE', `/packets/${id}?hard=true`)).status, 204);
      const database = openDatabase<Tables>(service.databaseUrl);
      t.after(() => database.close());
      for (const table of ['packets', 'contents', 'packet_tags', 'search_queue', 'search_index', 'idempotency_packets'] as const) {
        const { rows } = await sql`select * from ${sql.table(table)}`.execute(database.reads);
        assert.deepEqual(rows, [], table);
      }
      const kept = await database.reads.selectFrom('idempotency').select(['key', 'body']).execute();
      assert.deepEqual(
        kept.map(({ key, body }) => [key, body]),
        [['once', null]],
      );
      const events = await database.reads.selectFrom('events').select(['event_type', 'details']).where('packet_id', '=', id).execute();
      assert.deepEqual(
        events.map(({ event_type, details }) => [event_type, details]),
        [['deleted', '{}']],
      );
    });
  });
}
