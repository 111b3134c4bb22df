import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import type { Hitl } from '../../../src/handoff/model/hitl.ts';
import type { Packet, PatchRequest } from '../../../src/handoff/model/packet.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { hitlOf, latestQuestion, recordOf } from '../../../src/handoff/rules/question-state.ts';
import { decide } from '../../support/facts.ts';
import { refusal as refused } from '../../support/refusal.ts';

const now = new Date('2026-03-01T09:30:00.000Z');
const later = (seconds: number) => new Date(now.getTime() + seconds * 1000);

function created(changes: Partial<Packet> = {}): Packet {
  const request = structuredClone(createExample) as never;
  return { ...newPacket(request, { id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b', now, agentId: undefined }).packet, ...changes };
}

const patched = (packet: Packet, patch: PatchRequest, at = now, questionId = 'q1'): Packet =>
  decide(packet, { kind: 'patch', patch, agentId: undefined, questionId }, at).packet;

const asking = (hitl: object = {}): Packet =>
  patched(created({ hitl: null }), { status: 'awaiting_human', hitl: { question: 'Refund?', ...hitl } });
const answered = (): Packet =>
  decide(asking(), { kind: 'respond', answer: { response: 'Yes', responded_by: 'dana', notes: 'Fine' } }, later(1)).packet;

describe('a draft of a question', () => {
  test('is merged at its top level; null removes it [H44]', () => {
    const draft = patched(created(), { hitl: { question: 'Refund 60?' } });
    assert.deepEqual(draft.hitl, { ...created().hitl, question: 'Refund 60?' });
    assert.equal(patched(draft, { hitl: null }).hitl, null);
    assert.equal(patched(created({ hitl: null }), { hitl: null }).hitl, null);
  });

  test('must be complete: the missing field is named', () => {
    const whole = { required: true, reason: 'Policy', question: 'Refund?' };
    for (const field of Object.keys(whole) as (keyof typeof whole)[]) {
      const { [field]: _, ...incomplete } = whole;
      assert.equal(refused(() => patched(created({ hitl: null }), { hitl: incomplete })).field, `hitl.${field}`);
    }
    const nothing = { response: null, responded_by: null, responded_at: null, notes: null };
    const unasked = { requested_at: null, expires_at: null, question_id: null, asked_by: null };
    assert.deepEqual(patched(created({ hitl: null }), { hitl: whole }).hitl, { ...whole, ...nothing, ...unasked });
  });
});

describe('what the service sets of a question', () => {
  const fields = ['question_id', 'asked_by', 'requested_at', 'expires_at', 'remind_at', 'digest', 'response', 'responded_by', 'data'];
  const more = ['responded_at', 'notes', 'answered_by', 'decision', 'approvals', 'step', 'shadow', 'first_question_id', 'ended_at'];

  test('is ignored where it equals what stands there or is null; another value is 400 that names it [H8]', () => {
    for (const packet of [created(), asking({ timeout_seconds: 60, remind_after_seconds: 30 })]) {
      const hitl = packet.hitl as Hitl & Record<string, unknown>;
      assert.deepEqual(patched(packet, { hitl }).hitl, hitl);
      for (const field of [...fields, ...more]) {
        assert.deepEqual(patched(packet, { hitl: { [field]: null } as never }).hitl, hitl, field);
        const error = refused(() => patched(packet, { hitl: { [field]: { agent_name: 'Chief Financial Officer' } } as never }));
        assert.deepEqual([error.status, error.field], [400, `hitl.${field}`]);
      }
    }
  });
});

describe('the records of a question', () => {
  test('are printed as the hitl that they were read from', () => {
    for (const { hitl } of [created(), asking({ timeout_seconds: 60, remind_after_seconds: 30 }), answered()])
      assert.deepEqual(hitlOf(recordOf(hitl!)), hitl);
  });

  test('tell where it stands', () => {
    const stateOf = (packet: Packet, at = now) => latestQuestion(packet, at).state;
    assert.equal(stateOf(created({ hitl: null })), 'none');
    assert.equal(stateOf(created()), 'draft');
    const open = asking({ timeout_seconds: 60 });
    assert.equal(stateOf(open, later(59.999)), 'open');
    assert.equal(stateOf(open, later(60)), 'timed_out');
    assert.equal(stateOf(answered()), 'answered');
    const failed = patched(open, { status: 'failed' }, later(59));
    assert.equal(stateOf(failed, later(3600)), 'ended');
    assert.equal(stateOf(patched(open, { status: 'failed' }, later(61)), later(61)), 'timed_out');
  });
});

describe('an open question', () => {
  test('becomes another one by whatever changes its digest, with the times of the first asking', () => {
    const open = asking({ timeout_seconds: 60 });
    const pending = [{ id: 'a1', description: 'Refund all charges' }];
    for (const patch of [
      { hitl: { question: 'Refund all?' } },
      { hitl: { reason: 'Policy' } },
      { hitl: { options: ['Yes'] } },
      { context: { summary: 'Another order.' } },
      { actions: { pending } },
      { decisions: [{ id: 'd1', decision: 'Refund all' }] },
    ] as PatchRequest[]) {
      const { hitl } = patched(open, patch, later(30), 'q2');
      assert.deepEqual([hitl!.question_id, hitl!.first_question_id, hitl!.expires_at], ['q2', 'q1', open.hitl!.expires_at]);
      assert.notEqual(hitl!.digest, open.hitl!.digest);
    }
    for (const patch of [
      { hitl: { responder: 'mia' } },
      { hitl: { timeout_seconds: 90 } },
      { metadata: { tags: ['x'] } },
      { context: { custom: { a: 1 } } },
    ] as PatchRequest[])
      assert.equal(patched(open, patch, later(30), 'q2').hitl!.question_id, 'q1');
  });

  test('is asked by the agent that changes it', () => {
    const change = (agentId: string | undefined) =>
      decide(asking(), { kind: 'patch', patch: { hitl: { question: 'Refund all?' } }, agentId, questionId: 'q2' }, now).packet.hitl!
        .asked_by;
    assert.deepEqual(change(undefined), { agent_id: 'frontline', agent_name: 'Frontline agent' });
    assert.deepEqual(change('frontline'), { agent_id: 'frontline', agent_name: 'Frontline agent' });
    assert.deepEqual(change('other'), { agent_id: 'other', agent_name: 'other' });
  });
});
