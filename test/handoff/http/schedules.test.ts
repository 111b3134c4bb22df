import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { nextTime } from '../../../src/handoff/rules/cron.ts';
import { bodies } from '../../support/bodies.ts';
import { openInstances } from '../../support/instances.ts';
import { newTenant, packetRequest, startService, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { inMemory } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';
import { repeat } from '../../support/until.ts';

type Service = Pick<TestService, 'call' | 'clock' | 'handoff'>;

const put = (service: Pick<TestService, 'call'>, name: string, more: object = {}, options: object = {}) =>
  service.call('PUT', `/schedules/${name}`, { body: { cron: '0 * * * *', timezone: 'UTC', packet: packetRequest(), ...more }, ...options });

const get = async (service: Pick<TestService, 'call'>, name: string) => (await service.call('GET', `/schedules/${name}`)).body;

/** Runs what is due until nothing is. */
const runAll = ({ handoff }: Service) => repeat(handoff.runOnce.schedule, (nextMs) => nextMs > 0);

/** The times for which a schedule made packets, in the order of creation. */
async function timesOf(service: Service, name: string): Promise<string[]> {
  const times: string[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { body }: TestAnswer = await service.call('GET', `/packets?order=asc&limit=100${cursor === '' ? '' : `&cursor=${cursor}`}`);
    for (const { metadata } of body.packets) if (metadata.schedule?.name === name) times.push(metadata.schedule.at);
    cursor = body.next_cursor;
  }
  return times;
}

const audited = async (service: Service) =>
  (await service.call('GET', '/audit?limit=200')).body.entries
    .filter(({ resource }: { resource: string }) => resource === 'schedule')
    .map(({ action, actor, details }: Record<string, unknown>) => ({ event_type: action, actor, details }))
    .toReversed();

for (const store of stores) {
  describe(`Schedules on ${store.name}`, () => {
    test('a schedule is written, read, changed to its next version, listed and removed', async () => {
      const service = await shareService(store);
      const made = await put(service, 'hourly');
      assert.equal(made.status, 201, made.text);
      assert.equal(made.headers.etag, '"1"');
      const { packet, created_at, updated_at, ...shown } = made.body;
      assert.deepEqual(packet, packetRequest());
      assert.equal(created_at, updated_at);
      assert.deepEqual(shown, {
        ...{ name: 'hourly', version: 1, cron: '0 * * * *', timezone: 'UTC', active: true, missed: 'latest' },
        ...{ next_at: '2026-03-01T10:00:00.000Z', last_at: null, last_packet_id: null, last_error: null, disabled_reason: null },
      });
      assert.equal((await put(service, 'hourly')).body.version, 1, 'the same again changes nothing');
      assert.equal((await put(service, 'hourly', { active: false }, { headers: { 'If-Match': '"7"' } })).status, 412);
      const off = await put(service, 'hourly', { active: false }, { headers: { 'If-Match': '"1"' } });
      assert.deepEqual([off.status, off.body.version, off.body.next_at], [200, 2, null]);
      await put(service, 'daily', { cron: '@daily' });
      const { schedules, ...page } = (await service.call('GET', '/schedules?limit=1&offset=1')).body;
      assert.deepEqual(page, { total: 2, limit: 1, offset: 1 });
      assert.deepEqual(schedules[0], await get(service, 'hourly'));
      const times = await service.call('GET', '/schedules/hourly/next?count=2');
      assert.deepEqual(times.body, { times: ['2026-03-01T10:00:00.000Z', '2026-03-01T11:00:00.000Z'] }, 'also while it is off');
      assert.equal((await service.call('GET', '/schedules/hourly/next?count=101')).status, 400);
      assert.equal((await service.call('DELETE', '/schedules/hourly')).status, 204);
      for (const path of ['', '/next']) assert.equal((await service.call('GET', `/schedules/hourly${path}`)).status, 404);
      assert.equal((await service.call('POST', '/schedules/hourly/run')).status, 404);
      assert.equal((await put(service, 'hourly')).body.version, 3, 'its versions go on');
      assert.deepEqual(
        (await audited(service)).map(({ event_type, details }: { event_type: string; details: { version: number } }) => [
          event_type,
          details.version,
        ]),
        [
          ...[
            ['created', 1],
            ['updated', 2],
            ['created', 1],
            ['deleted', 2],
            ['created', 3],
          ],
        ],
      );
      await service.call('DELETE', '/schedules/hourly');
    });

    test('what can never run is refused in a sentence that names the field [H741]', async () => {
      const service = await shareService(store);
      const refused = async (more: object) => {
        const { status, body } = await put(service, 'odd', more);
        assert.equal(status, 400);
        return body.field;
      };
      assert.equal(await refused({ cron: '0 0 31 2 *' }), 'cron');
      assert.equal(await refused({ timezone: '+02:00' }), 'timezone');
      assert.equal(await refused({ missed: 'some' }), 'missed');
      assert.equal(await refused({ packet: packetRequest({ not_before: '2099-01-01' }) }), 'packet.not_before');
      assert.equal(await refused({ packet: { context: {} } }), 'packet.metadata');
      assert.equal(await refused({ packet: packetRequest({ context: { summary: 'x'.repeat(65 * 1024) } }) }), 'packet');
      assert.equal((await service.call('GET', '/schedules/odd')).status, 404);
    });

    test('each time makes one packet, which names the schedule and the time, by the key that wrote it', async () => {
      const service = await shareService(store);
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'w', scopes: ['read', 'work'] } });
      await put(service, 'hourly', {}, { key: key.key });
      await runAll(service);
      assert.deepEqual(await timesOf(service, 'hourly'), []);
      service.clock.set('2026-03-01T10:00:00.000Z');
      await runAll(service);
      await runAll(service);
      assert.deepEqual(await timesOf(service, 'hourly'), ['2026-03-01T10:00:00.000Z']);
      const shown = await get(service, 'hourly');
      assert.deepEqual([shown.last_at, shown.next_at], ['2026-03-01T10:00:00.000Z', '2026-03-01T11:00:00.000Z']);
      const history = (await service.call('GET', `/packets/${shown.last_packet_id}/history`)).body.events;
      assert.deepEqual([history[0].event_type, history[0].key_id], ['created', key.id]);
      // A rotated key is the same for a schedule.
      await service.call('POST', `/keys/${key.id}/rotate`, { body: { overlap_seconds: 0 } });
      service.clock.set('2026-03-01T11:00:30.000Z');
      await runAll(service);
      assert.equal((await timesOf(service, 'hourly')).length, 2);
      await service.call('DELETE', '/schedules/hourly');
    });

    test('only the service sets metadata.schedule: a body can neither give nor change it [H743]', async () => {
      const service = await shareService(store);
      const schedule = { name: 'forged', at: '2026-03-01T10:00:00.000Z' };
      const request = packetRequest();
      const given = { ...request, metadata: { ...(request.metadata as object), schedule } };
      const { body: plain } = await service.call('POST', '/packets', { body: given });
      assert.equal(plain.metadata.schedule, undefined);
      await put(service, 'mine', { packet: given });
      const made = await service.call('POST', '/schedules/mine/run');
      assert.equal(made.status, 201, made.text);
      assert.deepEqual(made.body.metadata.schedule, { name: 'mine', at: service.clock.read().toISOString() });
      const { body } = await service.call('PATCH', `/packets/${made.body.id}`, { body: { metadata: { schedule } } });
      assert.equal(body.metadata.schedule.name, 'mine');
      await service.call('DELETE', '/schedules/mine');
    });

    test('a run by hand makes a packet as the caller, repeats its answer, and moves no time of the schedule [H744]', async () => {
      const service = await shareService(store);
      await put(service, 'mine', { active: false });
      const before = await get(service, 'mine');
      const run = () => service.call('POST', '/schedules/mine/run', { headers: { 'Idempotency-Key': 'once' } });
      const [first, again] = [await run(), await run()];
      assert.deepEqual([first.status, again.body.id, again.headers['idempotency-replayed']], [201, first.body.id, 'true']);
      assert.deepEqual(await get(service, 'mine'), before);
      await service.call('DELETE', '/schedules/mine');
    });

    test('missed times are skipped, made once for the latest, or each [H742]', async () => {
      const service = await shareService(store);
      for (const missed of ['skip', 'latest', 'all']) await put(service, missed, { missed });
      service.clock.set('2026-03-01T13:30:00.000Z');
      await runAll(service);
      assert.deepEqual(await timesOf(service, 'skip'), []);
      assert.deepEqual(await timesOf(service, 'latest'), ['2026-03-01T13:00:00.000Z']);
      assert.deepEqual(
        await timesOf(service, 'all'),
        [10, 11, 12, 13].map((hour) => `2026-03-01T${hour}:00:00.000Z`),
      );
      const skipped = (await audited(service)).filter(({ event_type }: { event_type: string }) => event_type === 'skipped');
      assert.deepEqual(
        skipped
          .map(({ actor, details }: { actor: string; details: object }) => ({ actor, ...details }))
          .toSorted((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)),
        [
          { actor: 'system:scheduler', name: 'latest', from: '2026-03-01T10:00:00.000Z', until: '2026-03-01T13:00:00.000Z' },
          { actor: 'system:scheduler', name: 'skip', from: '2026-03-01T10:00:00.000Z', until: '2026-03-01T14:00:00.000Z' },
        ],
      );
      service.clock.set('2026-03-01T14:00:00.000Z');
      await runAll(service);
      for (const missed of ['skip', 'latest', 'all']) {
        assert.equal((await timesOf(service, missed)).at(-1), '2026-03-01T14:00:00.000Z');
        await service.call('DELETE', `/schedules/${missed}`);
      }
    });

    test('what a create would refuse is an entry and last_error, and the schedule goes on', async () => {
      const service = await shareService(store);
      const contract = (schema: object) => service.call('PUT', '/agents/picky/contract', { body: { schema } });
      const metadata = { source_agent: { id: 'a', name: 'A', framework: '' }, target_agent: { id: 'picky', name: 'P' } };
      await put(service, 'refused', { packet: packetRequest({ metadata }) });
      await contract({ required: ['dependencies'] });
      service.clock.set('2026-03-01T10:00:00.000Z');
      await runAll(service);
      const failed = await get(service, 'refused');
      assert.deepEqual([failed.last_error.code, failed.last_error.at], ['CONTRACT_VIOLATION', '2026-03-01T10:00:00.000Z']);
      assert.deepEqual([failed.last_at, failed.next_at], [null, '2026-03-01T11:00:00.000Z']);
      assert.deepEqual((await audited(service)).at(-1), {
        event_type: 'failed',
        actor: 'system:scheduler',
        details: { name: 'refused', ...failed.last_error },
      });
      assert.equal((await service.call('POST', '/schedules/refused/run')).body.code, 'CONTRACT_VIOLATION');
      await contract({});
      service.clock.set('2026-03-01T11:00:00.000Z');
      await runAll(service);
      assert.equal((await get(service, 'refused')).last_error, null);
      assert.deepEqual(await timesOf(service, 'refused'), ['2026-03-01T11:00:00.000Z']);
      await service.call('DELETE', '/schedules/refused');
    });

    test('a schedule counts against the daily quota as every create does', async () => {
      const service = await startService({ after: (stop) => void ends.push(stop as () => unknown) }, { store });
      const tenant = await newTenant(service, { handoffs_per_day: 1 });
      const call: TestService['call'] = (method, path, options) => service.call(method, path, { key: tenant.key, ...options });
      await put({ call }, 'hourly');
      service.clock.set('2026-03-01T10:00:00.000Z');
      await runAll(service);
      service.clock.set('2026-03-01T11:00:00.000Z');
      await runAll(service);
      const { last_error, last_at } = await get({ call }, 'hourly');
      assert.deepEqual([last_error.code, last_at], ['RATE_LIMITED', '2026-03-01T10:00:00.000Z']);
      for (const end of ends.splice(0)) await end();
    });

    test('the schedule of a revoked key is switched off with a reason, which is shown and audited [H745]', async () => {
      const service = await shareService(store);
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'w', scopes: ['read', 'work'] } });
      await put(service, 'orphan', {}, { key: key.key });
      assert.equal((await service.call('DELETE', `/keys/${key.id}`)).status, 204);
      service.clock.set('2026-03-01T10:00:00.000Z');
      await runAll(service);
      const { next_at, disabled_reason } = await get(service, 'orphan');
      assert.deepEqual([next_at, disabled_reason], [null, 'The key or the person that wrote it is no longer valid.']);
      assert.deepEqual(await timesOf(service, 'orphan'), []);
      assert.equal((await audited(service)).at(-1).event_type, 'disabled');
      const again = await put(service, 'orphan');
      assert.deepEqual([again.body.disabled_reason, again.body.next_at], [null, '2026-03-01T11:00:00.000Z']);
      await service.call('DELETE', '/schedules/orphan');
    });

    test('a key may only write, run and remove schedules of agents that it may act as, and sees those of its packets [H746]', async () => {
      const service = await shareService(store);
      const make = async (rights: object) => (await service.call('POST', '/keys', { body: { name: 'k', ...rights } })).body.key;
      const metadata = (id: string) => ({ source_agent: { id, name: id, framework: '' }, target_agent: { id: `for-${id}`, name: 'T' } });
      const own = await make({ scopes: ['read', 'work'], agents: ['a'], sees: 'own' });
      assert.equal((await put(service, 'of-b', { packet: packetRequest({ metadata: metadata('b') }) })).status, 201);
      assert.equal((await put(service, 'of-a', { packet: packetRequest({ metadata: metadata('a') }) }, { key: own })).status, 201);
      assert.equal((await put(service, 'new', { packet: packetRequest({ metadata: metadata('b') }) }, { key: own })).status, 403);
      assert.equal((await put(service, 'of-b', { packet: packetRequest({ metadata: metadata('a') }) }, { key: own })).status, 409);
      for (const [method, path] of [
        ['GET', ''],
        ['GET', '/next'],
        ['POST', '/run'],
        ['DELETE', ''],
      ] as const)
        assert.equal((await service.call(method, `/schedules/of-b${path}`, { key: own })).status, 404, `${method} ${path}`);
      const { body } = await service.call('GET', '/schedules', { key: own });
      assert.deepEqual([body.total, body.schedules.map(({ name }: { name: string }) => name)], [1, ['of-a']]);
      const bound = await make({ scopes: ['read', 'work'], agents: ['a'] });
      assert.equal((await service.call('DELETE', '/schedules/of-b', { key: bound })).status, 403);
      assert.equal((await service.call('POST', '/schedules/of-b/run', { key: bound })).status, 403);
      const { version } = await get(service, 'of-b');
      assert.equal(version, 1);
      for (const name of ['of-a', 'of-b']) await service.call('DELETE', `/schedules/${name}`);
    });

    test('a tenant has at most 100 schedules', async () => {
      const service = await shareService(store);
      const { packet } = bodies.putSchedule!;
      const answers = await Promise.all(Array.from({ length: 101 }, (_, index) => put(service, `s${index}`, { packet })));
      assert.deepEqual(
        answers
          .map(({ status }) => status)
          .toSorted()
          .slice(-2),
        [201, 409],
      );
      await Promise.all(answers.map((_, index) => service.call('DELETE', `/schedules/s${index}`)));
    });
  });
}

test('a year of schedules in five time zones makes a packet for each time', async () => {
  const service = await shareService(inMemory);
  const zones = ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'UTC'];
  const { packet } = bodies.putSchedule!;
  const cron = '30 2 * * 0';
  for (const [index, timezone] of zones.entries()) await put(service, `zone-${index}`, { cron, timezone, packet });
  const from = service.clock.read();
  const to = new Date(from.getTime() + 365 * 86_400_000);
  const due = zones.flatMap((timezone) => {
    const times: number[] = [];
    for (let at = nextTime({ cron, timezone }, from); at <= to; at = nextTime({ cron, timezone }, at)) times.push(at.getTime());
    return times;
  });
  for (const time of [...new Set(due)].toSorted((a, b) => a - b)) {
    service.clock.set(new Date(time).toISOString());
    await runAll(service);
  }
  for (const [index, timezone] of zones.entries()) {
    const expected: string[] = [];
    for (let at = nextTime({ cron, timezone }, from); at <= to; at = nextTime({ cron, timezone }, at)) expected.push(at.toISOString());
    assert.deepEqual(await timesOf(service, `zone-${index}`), expected, timezone);
    await service.call('DELETE', `/schedules/zone-${index}`);
  }
});

const ends: (() => unknown)[] = [];

test('two instances make one packet for each time', async (t) => {
  const { start, clock } = await openInstances(t);
  const instances = [await start(), await start()] as const;
  const [service] = instances;
  const { packet } = bodies.putSchedule!;
  const names = Array.from({ length: 10 }, (_, index) => `s${index}`);
  for (const name of names) await put(service, name, { cron: '* * * * *', packet });
  for (let minute = 0; minute < 10; minute += 1) {
    clock.turn(60);
    await Promise.all(instances.flatMap((one) => [one.handoff.runOnce.schedule(), one.handoff.runOnce.schedule()]));
  }
  const expected = Array.from({ length: 10 }, (_, minute) => `2026-03-01T09:${31 + minute}:00.000Z`);
  for (const name of names)
    assert.deepEqual(
      await timesOf(service, name),
      expected.map((time) => time.replace('09:60', '10:00')),
      name,
    );
});
