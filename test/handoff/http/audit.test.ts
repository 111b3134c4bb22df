import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { sql } from 'kysely';

import { openDatabase } from '../../../src/kit/sql/database.ts';
import { adminKey, createPacket, newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { sendRaw } from '../../support/socket.ts';
import { numbersTo, type TestStore } from '../../support/store.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';

interface Entry {
  id: string;
  packet_id: string | null;
  actor: string;
  key_id: string | null;
  action: string;
  resource: string;
  details: Record<string, unknown>;
  timestamp: string;
}

interface Log {
  entries: Entry[];
  total: number;
  limit: number;
  offset: number;
  total_is: 'exact' | 'at_least';
}

async function audit(service: TestService, query = '', key?: string): Promise<Log> {
  const answer = await service.call('GET', `/audit${query === '' ? '' : `?${query}`}`, key === undefined ? {} : { key });
  assert.equal(answer.status, 200, `${query}: ${answer.text}`);
  return answer.body;
}

const actions = ({ entries }: Log) => entries.map(({ action }) => action).join(' ');
const question = { required: true, reason: 'policy', question: 'Go on?', timeout_seconds: 60 };

/** The ids of what `play` created, and of the key that it used. */
interface Played {
  readonly first: string;
  readonly second: string;
  readonly keyId: string;
  readonly adminKeyId: string;
}

/** Events of two packets and a key, one per minute from 09:30 on. */
async function play(service: TestService): Promise<Played> {
  const did = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const answer = await service.call(method, path, { headers, ...(body === undefined ? {} : { body }) });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`);
    service.clock.turn(60);
    return answer.body;
  };
  const { id: first } = await did('POST', '/packets', packetRequest());
  await did('POST', `/packets/${first}/claim`, { agent_id: 'worker' });
  await did('PATCH', `/packets/${first}`, { status: 'awaiting_human', hitl: question }, { 'X-Agent-Id': 'helper' });
  service.clock.turn(-30);
  await did('POST', `/packets/${first}/respond`, { response: 'Yes', responded_by: 'dana' });
  service.clock.turn(30);
  await did('PATCH', `/packets/${first}`, { metadata: { tags: ['new'] } });
  const { id: second } = await did('POST', `/packets/${first}/chain`, packetRequest());
  const { id: keyId } = await did('POST', '/keys', { name: 'ci' });
  await did('PATCH', `/packets/${first}`, { status: 'completed' });
  await did('DELETE', `/packets/${second}`);
  await did('DELETE', `/keys/${keyId}`);
  const [{ id: adminKeyId }] = (await service.call('GET', '/keys')).body;
  return { first, second, keyId, adminKeyId };
}

const tenantsOfPlays = new Map<TestStore, Promise<Played & { service: TestService }>>();

/** A tenant in which `play` has run, for tests that only read: one for each store. */
function played(store: TestStore): Promise<Played & { service: TestService }> {
  const start = async () => {
    const service = await shareService(store);
    return { service, ...(await play(service)) };
  };
  const playing = tenantsOfPlays.get(store) ?? start();
  tenantsOfPlays.set(store, playing);
  return playing;
}

for (const store of stores) {
  describe(`GET /audit on ${store.name}`, () => {
    test('lists everything that happened in the tenant, newest first, with actor, action, resource and time [H72, H218]', async () => {
      const { service, first, second, keyId, adminKeyId } = await played(store);
      const [{ id: creatorKeyId }] = (await service.call('GET', '/keys', { key: adminKey })).body;
      const log = await audit(service);
      assert.deepEqual(
        log.entries.map(({ timestamp, action, actor, resource, packet_id }) => [
          timestamp.slice(11, 19),
          action,
          actor,
          resource,
          packet_id,
        ]),
        [
          ['09:39:00', 'deleted', `key:${adminKeyId}`, 'api_key', null],
          ['09:38:00', 'expired', 'agent:frontline', 'packet', second],
          ['09:37:00', 'completed', 'agent:worker', 'packet', first],
          ['09:36:00', 'created', `key:${adminKeyId}`, 'api_key', null],
          ['09:35:00', 'chained', 'agent:frontline', 'packet', first],
          ['09:35:00', 'created', 'agent:frontline', 'packet', second],
          ['09:34:00', 'updated', 'agent:worker', 'packet', first],
          ['09:32:30', 'hitl_responded', 'human:dana', 'packet', first],
          ['09:32:00', 'awaiting_human', 'agent:helper', 'packet', first],
          ['09:31:00', 'claimed', 'agent:worker', 'packet', first],
          ['09:30:00', 'created', 'agent:frontline', 'packet', first],
          ['09:30:00', 'created', `key:${creatorKeyId}`, 'api_key', null],
          ['09:30:00', 'created', `key:${creatorKeyId}`, 'tenant', null],
        ],
      );
      assert.deepEqual([log.total, log.limit, log.offset], [13, 50, 0]);
      assert.deepEqual(Object.keys(log).sort(), ['entries', 'limit', 'next_cursor', 'offset', 'total', 'total_is']);
      for (const entry of log.entries) {
        assert.deepEqual(Object.keys(entry), ['id', 'packet_id', 'actor', 'key_id', 'action', 'resource', 'details', 'timestamp']);
        assert.match(entry.id, /^[0-9a-f-]{36}$/);
        assert.match(entry.timestamp, /^2026-03-01T09:3\d:\d\d\.000Z$/);
      }
      assert.equal(new Set(log.entries.map(({ id }) => id)).size, 13);
      assert.deepEqual(
        log.entries.map(({ key_id }) => key_id),
        [...Array(11).fill(adminKeyId), creatorKeyId, creatorKeyId],
      );
      assert.deepEqual(log.entries[2]!.details, { actions_completed: 0 });
      assert.equal(log.entries[3]!.details.key_id, keyId);
    });

    test('the entries of a packet are its history in reverse', async () => {
      const { service, first } = await played(store);
      const { events } = (await service.call('GET', `/packets/${first}/history`)).body;
      const { entries } = await audit(service, `packet_id=${first}`);
      assert.deepEqual(
        entries
          .map(({ timestamp, action, actor, key_id, details }) => ({ timestamp, event_type: action, actor, key_id, details }))
          .reverse(),
        events,
      );
    });

    test('filters apply alone and combined, and total counts exactly the matches', async () => {
      const { service, first, second, adminKeyId } = await played(store);
      const cases: [query: string, expected: string][] = [
        ['actor=agent:frontline', 'expired chained created created'],
        ['actor=agent:worker', 'completed updated claimed'],
        ['actor=agent:helper', 'awaiting_human'],
        ['actor=human:dana', 'hitl_responded'],
        [`actor=key:${adminKeyId}`, 'deleted created'],
        ['actor=worker', ''],
        ['actor=agent:work', ''],
        ['action=created', 'created created created created created'],
        ['action=completed', 'completed'],
        ['action=nothing', ''],
        ['action=create', ''],
        [`packet_id=${second}`, 'expired created'],
        [`packet_id=${first}`, 'completed chained updated hitl_responded awaiting_human claimed created'],
        ['packet_id=0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b', ''],
        ['packet_id=junk', ''],
        ['created_after=2026-03-01T09:37:00.000Z', 'deleted expired completed'],
        ['created_after=2026-03-01T09:37:00.001Z', 'deleted expired'],
        ['created_before=2026-03-01T09:31:00.000Z', 'claimed created created created'],
        ['created_before=2026-03-01T09:30:59.999Z', 'created created created'],
        ['created_after=2026-03-01T09:32:00.000Z&created_before=2026-03-01T09:34:00.000Z', 'updated hitl_responded awaiting_human'],
        ['created_after=2026-03-01T10:37:00%2B01:00', 'deleted expired completed'],
        [
          'created_after=2026-03-01',
          'deleted expired completed created chained created updated hitl_responded awaiting_human claimed created created created',
        ],
        ['created_before=2026-03-01', ''],
        ['actor=agent:frontline&action=created', 'created created'],
        [`actor=agent:frontline&packet_id=${first}`, 'chained created'],
        [
          `packet_id=${first}&action=created&actor=agent:frontline&created_after=2026-03-01T09:30:00Z&created_before=2026-03-01T09:30:00Z`,
          'created',
        ],
        ['action=created&created_after=2026-03-01T09:36:00.000Z', 'created'],
      ];
      for (const [query, expected] of cases) {
        const log = await audit(service, query);
        assert.equal(actions(log), expected, query);
        assert.equal(log.total, log.entries.length, query);
        const page = await audit(service, `${query}&limit=1&offset=1`);
        assert.equal(actions(page), expected.split(' ')[1] ?? '', query);
        assert.equal(page.total, log.total, query);
      }
    });

    test('a cursor goes on where a page ended, whatever is appended meanwhile, and only with the same filters', async () => {
      const service = await shareService(store);
      const made = [];
      for (let index = 0; index < 5; index += 1) made.push((await createPacket(service)).id);
      const page = async (query: string) => (await service.call('GET', `/audit?action=created&limit=2${query}`)).body;
      const first = await page('');
      await createPacket(service);
      const second = await page(`&cursor=${first.next_cursor}`);
      const third = await page(`&cursor=${second.next_cursor}`);
      assert.deepEqual(
        [first, second, third].flatMap(({ entries }) => entries.map(({ packet_id }: Entry) => packet_id)).slice(0, 5),
        made.toReversed(),
      );
      let last = third;
      while (last.next_cursor !== null) last = await page(`&cursor=${last.next_cursor}`);
      assert.notEqual(last.entries[0].resource, 'packet');
      for (const query of [`cursor=${first.next_cursor}`, `action=created&cursor=${first.next_cursor}&offset=1`, 'cursor=x'])
        assert.equal((await service.call('GET', `/audit?${query}`)).status, 400, query);
    });

    test('entries are found by their key, and by the person whose data their packet holds, also in exports', async () => {
      const service = await shareService(store);
      const { body: other } = await service.call('POST', '/keys', { body: { name: 'other' } });
      const metadata = { ...(packetRequest().metadata as object), subjects: ['customer:4711'] };
      const about = await createPacket(service, { metadata }, other.key);
      await createPacket(service);
      await service.call('POST', `/packets/${about.id}/claim`, { body: { agent_id: 'a' } });
      assert.deepEqual([actions(await audit(service, `key_id=${other.id.toUpperCase()}`))], ['created']);
      assert.equal(actions(await audit(service, 'subject=customer:4711')), 'claimed created');
      assert.equal(actions(await audit(service, `subject=customer:4711&key_id=${other.id}`)), 'created');
      assert.equal((await audit(service, 'subject=customer:1')).total, 0);
      assert.equal((await audit(service, 'person=dana')).total, 0);
      const { text } = await service.call('GET', '/audit/export?subject=customer:4711');
      assert.deepEqual(
        text
          .trimEnd()
          .split('\n')
          .slice(1, -1)
          .map((line) => JSON.parse(line).type),
        ['created', 'claimed'],
      );
      assert.ok(!text.includes('4711'));
      const { text: csv } = await service.call('GET', '/audit/export?subject=customer:4711&format=csv');
      assert.equal(csv.trimEnd().split('\n').length, 3);
    });

    test('a timestamp outside the years 0 to 9999 is before or after everything', async () => {
      const service = await shareService(store);
      await createPacket(service);
      const everything = (await audit(service)).total;
      for (const [query, total] of [
        ['created_before=9999-12-31T23:59:59-05:00', 1],
        ['created_after=9999-12-31T23:59:59-05:00', 0],
        ['created_after=0000-01-01T00:00:00%2B05:00', 1],
        ['created_before=0000-01-01T00:00:00%2B05:00', 0],
      ] as const) {
        assert.equal((await audit(service, query)).total, total * everything, query);
        assert.equal((await service.call('GET', `/packets?${query}`)).body.total, total, query);
      }
    });

    test('paging by limit and offset returns every entry once, with the exact total', async () => {
      const service = await shareService(store);
      // With the entries of the tenant and its key, 201.
      for (const length of [100, 99]) {
        const packets = Array.from({ length }, () => packetRequest());
        assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
      }
      const whole = await audit(service, 'limit=200');
      assert.deepEqual([whole.entries.length, whole.total, whole.limit], [200, 201, 200]);
      const usual = await audit(service);
      assert.deepEqual([usual.entries.length, usual.total, usual.limit], [50, 201, 50]);
      const seen: string[] = [];
      for (let offset = 0; offset < 210; offset += 30) {
        const page = await audit(service, `limit=30&offset=${offset}`);
        assert.deepEqual([page.total, page.limit, page.offset], [201, 30, offset]);
        seen.push(...page.entries.map(({ id }) => id));
      }
      assert.equal(seen.length, 201);
      assert.deepEqual(
        seen.slice(0, 200),
        whole.entries.map(({ id }) => id),
      );
      assert.equal(new Set(seen).size, 201);
      const beyond = await audit(service, 'offset=201');
      assert.deepEqual([beyond.entries, beyond.total], [[], 201]);
    });

    test('changes of keys and tenants are recorded in the log of the tenant concerned, without the value of a key [H218]', async () => {
      const service = await shareService(store);
      const before = await audit(service);
      const [{ id: adminKeyId }] = (await service.call('GET', '/keys')).body;
      const tenant = await newTenant(service, { tier: 'pro' });
      assert.equal((await service.call('PATCH', `/tenants/${tenant.id}`, { body: { name: 'Renamed', max_api_keys: 9 } })).status, 200);
      const own = await service.call('POST', '/keys', { body: { name: 'ci' }, key: tenant.key });
      assert.equal(own.status, 201);
      assert.equal((await service.call('DELETE', `/keys/${own.body.id}`, { key: tenant.key })).status, 204);
      const { entries, total } = await audit(service, '', tenant.key);
      assert.equal(total, 5);
      assert.deepEqual(
        entries.map(({ resource, action, actor, packet_id }) => [resource, action, actor, packet_id]),
        [
          ['api_key', 'deleted', `key:${tenant.keyId}`, null],
          ['api_key', 'created', `key:${tenant.keyId}`, null],
          ['tenant', 'updated', `key:${adminKeyId}`, null],
          ['api_key', 'created', `key:${adminKeyId}`, null],
          ['tenant', 'created', `key:${adminKeyId}`, null],
        ],
      );
      assert.deepEqual([entries[0]!.details.key_id, entries[2]!.details], [own.body.id, { fields: ['name', 'max_api_keys'] }]);
      const text = JSON.stringify(entries);
      for (const value of [tenant.key, own.body.key, adminKey]) assert.ok(!text.includes(value));
      assert.deepEqual(await audit(service), before);
    });

    test("the deletion of a tenant is recorded in the log of the deleting admin's tenant, where it can be read [H207]", async () => {
      const service = await shareService(store);
      const before = await audit(service);
      const [{ id: adminKeyId }] = (await service.call('GET', '/keys')).body;
      const tenant = await newTenant(service);
      assert.equal((await service.call('DELETE', `/tenants/${tenant.id}`)).status, 204);
      const { entries, total } = await audit(service);
      assert.equal(total, before.total + 1);
      assert.deepEqual(entries.slice(1), before.entries);
      const { resource, action, actor, details } = entries[0]!;
      assert.deepEqual([resource, action, actor], ['tenant', 'deleted', `key:${adminKeyId}`]);
      assert.equal(details.tenant_id, tenant.id);
    });

    test('a non-ASCII X-Agent-Id is decoded as UTF-8, or else as Latin-1 [H260]', async () => {
      const service = await shareService(store);
      const address = await service.listen();
      const body = JSON.stringify(packetRequest());
      for (const encoding of ['utf8', 'latin1'] as const) {
        const head = `POST /api/v1/packets HTTP/1.1\r\nHost: x\r\nX-API-Key: ${service.key}\r\nContent-Type: application/json\r\nConnection: close\r\n`;
        const name = Buffer.from('X-Agent-Id: müller\r\n', encoding).toString('latin1');
        const answer = await sendRaw(address, `${head}${name}Content-Length: ${body.length}\r\n\r\n${body}`);
        assert.equal(answer.status, 201);
      }
      assert.equal((await audit(service, `actor=${encodeURIComponent('agent:müller')}`)).total, 2);
    });

    test('after a hard delete the entries of a packet have no details, one says who removed it, and the totals stay exact [H29]', async () => {
      const service = await shareService(store);
      const [{ id: adminKeyId }] = (await service.call('GET', '/keys')).body;
      const { first, second } = await play(service);
      const before = await audit(service);
      const own = before.entries.filter(({ packet_id }) => packet_id === first);
      assert.ok(own.some(({ details }) => Object.keys(details).length > 0));
      assert.equal((await service.call('DELETE', `/packets/${first}?hard=true`)).status, 204);
      const after = await audit(service, 'limit=200');
      assert.equal(after.total, before.total + 1);
      assert.equal(after.entries.length, after.total);
      const left = await audit(service, `packet_id=${first}`);
      const [removed, ...kept] = left.entries;
      assert.deepEqual(
        kept,
        own.map((entry) => ({ ...entry, details: {} })),
      );
      const { id: _, ...entry } = removed!;
      assert.deepEqual(entry, {
        packet_id: first,
        actor: `key:${adminKeyId}`,
        key_id: adminKeyId,
        action: 'erased',
        resource: 'packet',
        details: {},
        timestamp: '2026-03-01T09:40:00.000Z',
      });
      assert.equal(after.entries[0]!.id, removed!.id);
      assert.equal((await audit(service, `packet_id=${second}`)).total, 2);
      assert.equal((await service.call('DELETE', `/packets/${second}?hard=true`, { headers: { 'X-Agent-Id': 'janitor' } })).status, 204);
      assert.equal((await audit(service, `packet_id=${second}`)).entries[0]!.actor, 'agent:janitor');
    });

    test('totals stay exact under concurrent creates, claims and hard deletes', async () => {
      const service = await shareService(store);
      const before = await audit(service);
      const created = await Promise.all(Array.from({ length: 20 }, () => createPacket(service)));
      const claims = await Promise.all(
        created.flatMap(({ id }, index) => {
          const claim = service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'worker' } });
          const others = [...(index % 2 === 0 ? [service.call('DELETE', `/packets/${id}?hard=true`)] : []), createPacket(service)];
          return Promise.all(others).then(() => claim);
        }),
      );
      const claimed = claims.filter(({ status }) => status === 200).length;
      const log = await audit(service, 'limit=200');
      // 40 packets were created, 10 of them removed.
      const total = 50 + claimed + before.total;
      assert.deepEqual([log.total, log.entries.length], [total, total]);
      for (const [action, count] of [
        ['created', 40 + before.total],
        ['claimed', claimed],
        ['erased', 10],
      ] as const) {
        assert.equal((await audit(service, `action=${action}`)).total, count, action);
      }
    });

    test('the audit log finds a packet by its id in upper case as well [H237]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      await createPacket(service);
      assert.equal((await audit(service, `packet_id=${id.toUpperCase()}`)).total, 1);
    });
  });
}

for (const store of storesOfSeveral) {
  describe(`A long audit log, on ${store.name}`, () => {
    test('of more than 10,000 entries that a filter selects, total is a lower bound that grows with the offset [H71]', async (t) => {
      const service = await startService(t, { store });
      const { databaseUrl: url } = service;
      const { id } = await createPacket(service);
      const database = openDatabase<Record<string, never>>(url);
      await database.transaction((tx) =>
        sql`insert into events (id, tenant, position, packet_id, event_type, actor, resource, details, timestamp, details_digest, digest)
          select 'n' || number, tenant, 2000 + number, packet_id, 'small', actor, resource, '{}', timestamp, details_digest, digest
          from events cross join ${sql.raw(numbersTo(url, 10_005))} where packet_id = ${id} order by number`.execute(tx),
      );
      await database.close();
      const first = await audit(service, 'action=small&limit=3');
      assert.deepEqual([first.total, first.total_is, first.entries[0]!.id], [10_000, 'at_least', 'n10005']);
      const deep = await audit(service, 'action=small&limit=3&offset=10000');
      assert.deepEqual([deep.total, deep.total_is, deep.entries.length], [10_004, 'at_least', 3]);
      const last = await audit(service, 'action=small&limit=3&offset=10003');
      assert.deepEqual([last.total, last.entries.map((entry) => entry.id)], [10_005, ['n2', 'n1']]);
      const other = await audit(service, 'action=created');
      assert.deepEqual([other.total, other.total_is], [other.entries.length, 'exact']);
    });
  });
}
