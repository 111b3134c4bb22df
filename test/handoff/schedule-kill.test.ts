import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bodies } from '../support/bodies.ts';
import { startProcess } from '../support/process.ts';
import { startService, TestClock, type TestService } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';

/** How many minutes the service was down, each with a packet to make. */
const minutes = 90;
/** After how many packets a program is killed. */
const kills = [1, 20, 50];

for (const store of storesOfSeveral) {
  test(`a schedule makes each of its times once through kill -9, on ${store.name}`, async (t) => {
    const { url, drop } = await store.open('handoff');
    t.after(drop);
    // What a program at the time of the system's clock finds when it starts.
    const clock = new TestClock(new Date(Date.now() - minutes * 60_000).toISOString());
    const ends: (() => unknown)[] = [];
    const before = await startService({ after: (end: unknown) => void ends.push(end as () => unknown) }, { databaseUrl: url, clock });
    const body = { ...bodies.putSchedule, cron: '* * * * *', timezone: 'UTC', missed: 'all' };
    const { status, body: written } = await before.call('PUT', '/schedules/minutely', { body });
    assert.equal(status, 201);
    for (const end of ends) await end();

    const made = async ({ call }: Pick<TestService, 'call'>): Promise<string[]> => {
      const { body: page } = await call('GET', '/packets?limit=200&order=asc');
      return page.packets.map(({ metadata }: { metadata: { schedule: { at: string } } }) => metadata.schedule.at);
    };
    for (const count of kills) {
      const program = await startProcess({ databaseUrl: url });
      while ((await made(program)).length < count);
      await program.kill();
    }
    const last = await startProcess({ databaseUrl: url });
    t.after(() => last.kill());
    const next = async () => new Date((await last.call('GET', '/schedules/minutely')).body.next_at);
    while ((await next()) <= new Date());
    const times = await made(last);
    const expected = times.map((_, minute) => new Date(Date.parse(written.next_at) + minute * 60_000).toISOString());
    assert.deepEqual(times, expected);
    assert.ok(times.length >= minutes - 1);
  });
}
