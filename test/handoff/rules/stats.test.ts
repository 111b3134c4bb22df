import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { AnyPacket } from '../../../src/handoff/rules/packet.ts';
import { hourlyAmounts, medianSeconds } from '../../../src/handoff/rules/stats.ts';

test('the median of times that were counted in steps is that of the middle one, of an even number the lower', () => {
  assert.equal(medianSeconds(new Map()), null);
  assert.equal(medianSeconds(new Map([['00', 1]])), 1);
  // Four steps double the time: 08 is 4 s, 24 is 64 s, 40 is 1,024 s.
  assert.equal(medianSeconds(new Map(Object.entries({ '40': 1, '08': 1, '24': 1 }))), 64);
  assert.equal(medianSeconds(new Map(Object.entries({ '08': 2, '40': 2 }))), 4);
  assert.equal(medianSeconds(new Map(Object.entries({ '08': 2, '40': 3 }))), 1024);
});

test('a change of status moves a packet between the levels of its hour, and an end counts once', () => {
  const packet = (status: string, hitl: object | null = null) => ({ status, hitl }) as unknown as AnyPacket;
  const amounts = (before: AnyPacket | undefined, after: AnyPacket | undefined) =>
    hourlyAmounts(before, after).map(({ name, by }) => `${name} ${by}`);
  assert.deepEqual(amounts(undefined, packet('created')), ['waiting 1']);
  assert.deepEqual(amounts(packet('created'), packet('created')), []);
  assert.deepEqual(amounts(packet('created'), packet('claimed')), ['waiting -1', 'held 1']);
  assert.deepEqual(amounts(packet('claimed'), packet('in_progress')), []);
  assert.deepEqual(amounts(packet('in_progress'), packet('completed')), ['held -1', 'completed 1']);
  assert.deepEqual(amounts(packet('completed'), packet('expired')), []);
  assert.deepEqual(amounts(packet('created'), undefined), ['waiting -1', 'removed 1']);
  assert.deepEqual(amounts(packet('completed'), undefined), []);
  const question = { question_id: 'q', response: null, responded_at: null, expires_at: null, requested_at: '2026-03-01T09:00:00.000Z' };
  const answered = (responded_at: string) =>
    amounts(packet('awaiting_human', question), packet('in_progress', { ...question, response: 'Yes', responded_at }));
  assert.deepEqual(answered('2026-03-01T09:00:00.200Z'), ['asked -1', 'held 1', 'answered:00 1']);
  assert.deepEqual(answered('2026-03-01T09:01:04.000Z'), ['asked -1', 'held 1', 'answered:24 1']);
  assert.deepEqual(answered('2027-03-01T09:00:00.000Z'), ['asked -1', 'held 1', 'answered:99 1']);
  // Neither a withdrawn question nor an earlier answer is one.
  assert.deepEqual(amounts(packet('awaiting_human', question), packet('in_progress', question)), ['asked -1', 'held 1']);
  const before = { ...question, response: 'Yes', responded_at: '2026-03-01T09:01:04.000Z' };
  assert.deepEqual(amounts(packet('awaiting_human', before), packet('in_progress', before)), ['asked -1', 'held 1']);
  assert.deepEqual(amounts(packet('claimed', question), packet('created', before)), ['held -1', 'waiting 1']);
});
