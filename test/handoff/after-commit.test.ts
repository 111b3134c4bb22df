import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { CreateRequest } from '../../src/handoff/model/packet.ts';
import { withRequest } from '../../src/kit/current-request.ts';
import { adminCaller as caller } from '../support/caller.ts';
import { injectFault } from '../support/faults.ts';
import { openPackets } from '../support/packet-service.ts';
import { packetRequest, startService, TestClock } from '../support/service.ts';
import { stores } from '../support/stores.ts';

for (const store of stores) {
  test(`A failure after a commit fails no request: it is logged with the request's id and counted (${store.name})`, async (t) => {
    let isWritten = false;
    let isDue = false;
    const time = new TestClock();
    // The first to read the clock after the commit is a listener of created packets.
    const read = () => {
      if (!isDue) return time.read();
      isDue = false;
      throw new Error('the clock is broken');
    };
    const clock = Object.assign(new TestClock(), { read });
    const service = await startService(t, { store, clock });
    const commits = injectFault(Number.POSITIVE_INFINITY, {
      matching(sql) {
        if (/^insert into "?packets\b/i.test(sql)) isWritten = true;
        if (isWritten && /^commit\b/i.test(sql)) isDue = true;
        return true;
      },
    });
    t.after(commits.remove);
    const created = await service.call('POST', '/packets', { body: packetRequest() });
    commits.remove();
    assert.equal(created.status, 201, created.text);
    const line = service.logs.map((text) => JSON.parse(text)).find(({ msg }) => msg === 'failed after a commit');
    const request = service.logs.map((text) => JSON.parse(text)).find(({ status }) => status === 201);
    assert.deepEqual(line.request_ids, [request.request_id]);
    assert.equal(line.err.message, 'the clock is broken');
    const metrics = await service.call('GET', '//metrics', { key: null });
    assert.match(metrics.text, /^service_after_commit_failures_total 1$/m);
    assert.equal((await service.call('GET', `/packets/${created.body.id}`)).status, 200);
  });

  test(`An operation on packets whose listeners fail is answered, or changes nothing; the failure is reported (${store.name})`, async (t) => {
    const failing = () => {
      throw new Error('a listener is broken');
    };
    const { store: opened, packets, tenant } = await openPackets(t, store, { onSeen: failing, onCreated: failing });
    const reported: (readonly string[])[] = [];
    opened.onFailure((error, requestIds) => {
      assert.match(String(error), /a listener is broken/);
      reported.push(requestIds);
    });
    const request = packetRequest() as CreateRequest;
    const stored = async () => {
      const { total, text } = await tenant.packets.page({ filter: {}, limit: 10, offset: 0, full: true, ascending: true });
      return { total, text };
    };
    const { text } = await packets.create(caller, request);
    const { id } = JSON.parse(text);
    const claimant = { agent_id: 'worker', agent_name: 'Worker', framework: null };
    const filter = { target_agent: null, tags: [], priorities: ['normal' as const] };
    const operations = {
      create: () => packets.create(caller, request),
      chain: () => packets.chain(caller, id, request),
      batch: () => packets.createBatch(caller, [{ request }, { request }]),
      claim: () => packets.claim(caller, id, { claimant }),
      claimEach: () => packets.claimEach(caller, [id], { claimant }),
      claimNext: () => packets.claimNext(caller, filter, { claimant }),
    };
    for (const [name, operation] of Object.entries(operations)) {
      const before = await stored();
      reported.length = 0;
      const failure = await withRequest({ id: name, trace: undefined }, async () => operation()).then(
        () => undefined,
        (error: unknown) => error ?? 'refused',
      );
      const after = await stored();
      if (failure !== undefined) assert.deepEqual(after, before, `${name} was refused, but changed something`);
      else assert.deepEqual(reported, [[name]], `${name} was answered, and the failure was not reported`);
    }
  });
}
