import assert from 'node:assert/strict';
import { test } from 'node:test';

import { startProcess } from '../support/process.ts';
import { storesOfSeveral } from '../support/stores.ts';

/** When the service is killed: once before the start, while it is asked to start, once it has, and while it is told of the end. */
const moments = ['approved', 'starting', 'starting', 'started', 'ending'] as const;

for (const store of storesOfSeveral) {
  test(`an approved action is started once through kill -9 between approval, start and end, on ${store.name}`, async (t) => {
    const { url, drop } = await store.open('handoff');
    t.after(drop);
    let program = await startProcess({ databaseUrl: url });
    t.after(() => program.kill());
    const restart = async () => {
      await program.kill();
      program = await startProcess({ databaseUrl: url });
    };
    const make = async (rights: object) => (await program.call('POST', '/keys', { body: { name: 'k', ...rights } })).body.key as string;
    const agent = await make({ scopes: ['read', 'work'], agents: ['refunds'] });
    const dana = await make({ scopes: ['read', 'respond'], responder: 'dana' });
    const ask = (call_id: string) =>
      program.call('POST', '/approvals', {
        body: { agent: { id: 'refunds' }, action: { tool: 'refund', arguments: { amount: 500 }, call_id } },
        key: agent,
      });

    for (const [round, moment] of moments.entries()) {
      const { id, hitl } = (await ask(`call-${round}`)).body;
      const path = `/packets/${id}/execution`;
      const start = () => program.call('POST', path, { body: { arguments_digest: hitl.action.arguments_digest }, key: agent });
      const end = () => program.call('PATCH', path, { body: { status: 'succeeded' }, key: agent });
      const approved = await program.call('POST', `/packets/${id}/respond`, {
        body: { decision: 'approve', responded_by: 'dana' },
        key: dana,
      });
      assert.equal(approved.status, 200, approved.text);

      let told = 0;
      /** Counts the answers that let the agent execute; one that is lost does not. */
      const tell = (starting: ReturnType<typeof start>) =>
        starting.then(
          ({ status }) => {
            told += status === 201 ? 1 : 0;
          },
          () => undefined,
        );
      if (moment === 'starting') await Promise.all([tell(start()), restart()]);
      else if (moment !== 'approved') await tell(start());
      if (moment === 'ending') await Promise.all([end().catch(() => undefined), restart()]);
      if (moment === 'approved' || moment === 'started') await restart();

      // The agent that was started over finds its packet, and what became of it.
      const again = await ask(`call-${round}`);
      assert.deepEqual([again.status, again.body.id, again.body.hitl.decision.decision], [200, id, 'approve']);
      const begun = await program.call('GET', path, { key: agent });
      const next = await start();
      if (begun.status === 404) {
        assert.ok(moment === 'approved' || moment === 'starting', moment);
        assert.equal(told, 0, 'who was told to execute finds the execution');
        assert.equal(next.status, 201, next.text);
        assert.equal((await end()).status, 200);
      } else {
        assert.equal(begun.status, 200, begun.text);
        const statuses = moment === 'ending' ? ['started', 'succeeded'] : ['started'];
        assert.ok(statuses.includes(begun.body.status), begun.text);
        assert.deepEqual([next.status, next.body.code], [409, 'ALREADY_EXECUTED']);
        assert.deepEqual(next.body.execution, begun.body);
      }
      const history = (await program.call('GET', `/packets/${id}/history`, { key: agent })).body.events as { event_type: string }[];
      assert.equal(history.filter(({ event_type }) => event_type === 'execution_started').length, 1);
    }
  });
}
