import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { AgentService } from '../../../src/handoff/service/agents.ts';
import { openStore } from '../../../src/handoff/store/store.ts';
import { createIds } from '../../../src/kit/id.ts';
import { connectTo } from '../../support/databases.ts';
import { injectFault } from '../../support/faults.ts';
import { TestClock } from '../../support/service.ts';
import { inMemory, type TestStore } from '../../support/store.ts';
import { everyStore, postgresql } from '../../support/stores.ts';
import { until } from '../../support/until.ts';

async function openAgents(t: TestContext, testStore: TestStore) {
  const { url, drop } = await testStore.open('handoff');
  const clock = new TestClock();
  const store = await openStore({ databaseUrl: url, clock: clock.read, newId: createIds() });
  t.after(async () => {
    await store.close();
    await drop();
  });
  const agents = new AgentService(store, clock.read);
  const seen = async (tenant = 1) => {
    const { agents: page } = await agents.page({ tenant_number: tenant }, { limit: 50, offset: 0 }, new AbortController().signal);
    return page.map(({ agent_id, last_seen_at }) => [agent_id, last_seen_at.slice(11, 19)]);
  };
  return { url, clock, agents, seen };
}

for (const testStore of everyStore) {
  describe(`Agents that were seen, on ${testStore.name}`, () => {
    test('are written later when a write fails, at the time when each was last seen', async (t) => {
      const { clock, agents, seen } = await openAgents(t, testStore);
      const writeInVain = async () => {
        const fault = injectFault(1, { matching: (sql) => /^insert into "?agents\b/.test(sql) });
        t.after(fault.remove);
        await assert.rejects(agents.write());
        fault.remove();
      };
      agents.seen(1, 'first');
      agents.seen(1, 'second');
      await writeInVain();
      clock.turn(60);
      agents.seen(1, 'second');
      await writeInVain();
      assert.deepEqual(await seen(), [
        ['second', '09:31:00'],
        ['first', '09:30:00'],
      ]);
    });
  });
}

test('agents are counted once while they wait to be written, and a full list still takes those that it has', async (t) => {
  const { clock, agents, seen } = await openAgents(t, inMemory);
  for (let index = 0; index < 10_000; index += 1) agents.seen(2, `agent ${index}`);
  agents.seen(1, 'too late');
  clock.turn(60);
  agents.seen(2, 'agent 7');
  assert.equal(await agents.write(), 10_000);
  assert.deepEqual(await seen(1), []);
  assert.deepEqual((await seen(2))[0], ['agent 7', '09:31:00']);
});

test('instances write agents in the same order on PostgreSQL, so that they do not deadlock', async (t) => {
  const { url, agents } = await openAgents(t, postgresql);
  for (const id of ['c', 'a', 'b']) agents.seen(1, id);
  await agents.write();
  const first = await connectTo(t, url);
  const observer = await connectTo(t, url);
  await first.query('begin');
  await first.query(`select agent_id from agents where tenant = 1 and agent_id = 'a' for update`);
  for (const id of ['c', 'b', 'a']) agents.seen(1, id);
  const writing = agents.write();
  const blocked = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const waiting = async () => (await observer.query(blocked)).rowCount !== 0;
  await until(waiting);
  // The writer waits for the first agent and has locked none of the others.
  assert.equal((await first.query('select agent_id from agents where tenant = 1 for update skip locked')).rowCount, 3);
  await first.query('commit');
  assert.equal(await writing, 3);
});
