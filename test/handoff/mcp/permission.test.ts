import assert from 'node:assert/strict';
import { test } from 'node:test';
import { requestPermission } from '../../../src/handoff/mcp/permission.ts';
import type { Session } from '../../../src/handoff/mcp/session.ts';
import { NetworkError } from '../../../src/kit/client-errors.ts';
import { LimitReached, ServiceError, unavailable } from '../../../src/kit/errors.ts';
import { TestClock } from '../../support/service.ts';

type Answer = 'early' | 'late' | 'changed' | 'approved' | Error;

/** Asks for an approval while the service answers the waits one after the other; ends with the last one. `gone`: the client leaves during that wait. */
async function asking(answers: readonly Answer[], gone?: number) {
  const clock = new TestClock();
  const leaving = new AbortController();
  const pauses: number[] = [];
  let waits = 0;
  let packet: object = {
    id: 'p',
    status: 'awaiting_human',
    revision: 1,
    hitl: { question_id: 'q', question: 'Q?', response: null, expires_at: null },
  };
  const call = async ({ id }: { id: string }, { query }: { query?: { wait_seconds: number } }) => {
    if (id !== 'getPacket') return packet;
    const answer = answers[waits];
    waits += 1;
    if (waits === gone) leaving.abort();
    if (answer === undefined) throw new Error('The loop goes on.');
    if (answer === 'late') clock.turn(query!.wait_seconds);
    if (answer instanceof Error) throw answer;
    if (answer === 'changed') packet = { ...packet, revision: 2 };
    if (answer === 'approved') {
      const decision = { decision: 'approve', arguments: { n: 1 }, valid_until: '2027-01-01T00:00:00.000Z', by: [] };
      packet = { ...packet, status: 'claimed', revision: 3, hitl: { question_id: 'q', response: 'approve', decision } };
    }
    return packet;
  };
  const session = {
    ...{ call, agentId: 'a', isNamed: false, takesTasks: false, packet: async () => undefined, now: clock.read, signal: leaving.signal },
    refusalOf: (error: unknown) =>
      error instanceof ServiceError ? error : { code: error instanceof NetworkError ? 'SERVICE_UNAVAILABLE' : '' },
    async pause(milliseconds: number) {
      pauses.push(milliseconds);
      clock.turn(milliseconds / 1000);
    },
  } as unknown as Session;
  const { structured } = await requestPermission(session, { tool_name: 't', input: {}, timeout_seconds: 60 });
  return { result: structured as { behavior: string; message?: string }, waits, pauses };
}

test('request_approval ends its waits when its client is gone, and pauses after one that ended early', async () => {
  const left = await asking(['late', 'early'], 2);
  assert.deepEqual([left.result.behavior, left.waits, left.pauses], ['deny', 2, []]);
  const stopping = await asking(['early', 'early', 'changed', 'late', 'approved']);
  assert.deepEqual([stopping.result.behavior, stopping.waits, stopping.pauses], ['allow', 5, [1000, 1000]]);
});

test('request_approval goes on after a refusal that passes, until its time is over, and denies after another', async () => {
  const connections = new LimitReached('All are open.', { name: 'connections', max: 1 }, 5);
  const broken = new NetworkError('http://localhost', new Error('broken'));
  const passed = await asking([connections, unavailable(), broken, 'approved']);
  assert.deepEqual([passed.result.behavior, passed.pauses], ['allow', [1000, 1000, 1000]]);
  const silent = await asking(Array.from({ length: 60 }, () => connections));
  assert.match(silent.result.message!, /Nobody approved/);
  assert.equal(silent.waits, 60);
  const refused = await asking([new ServiceError('UNAUTHORIZED', 'The key became invalid.')]);
  assert.deepEqual([refused.result, refused.pauses], [{ behavior: 'deny', message: 'The key became invalid.' }, []]);
});
