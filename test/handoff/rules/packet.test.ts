import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { type Status, statuses } from '../../../src/handoff/model/common.ts';
import { createExample } from '../../../src/handoff/model/examples.ts';
import type { Hitl } from '../../../src/handoff/model/hitl.ts';
import type { Packet, PatchRequest } from '../../../src/handoff/model/packet.ts';
import type { Command } from '../../../src/handoff/rules/command.ts';
import { dueAt } from '../../../src/handoff/rules/due.ts';
import { chained, newPacket } from '../../../src/handoff/rules/new-packet.ts';
import type { Decision } from '../../../src/handoff/rules/packet.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { entityTagOf } from '../../../src/kit/etag.ts';
import { decide } from '../../support/facts.ts';
import { moves } from '../../support/packet-model.ts';
import { refusal as refused } from '../../support/refusal.ts';

const began = new Date('2026-03-01T09:30:00.000Z');
const now = new Date('2026-03-01T10:00:00.000Z');
const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';
const claimant = { agent_id: 'resolver', agent_name: 'Resolver', framework: 'langgraph' };

const question: Hitl = {
  required: false,
  reason: 'Refunds over 50 need approval',
  question: 'Refund 59.90?',
  response: null,
  responded_by: null,
  responded_at: null,
  notes: null,
  requested_at: null,
  expires_at: null,
  question_id: null,
  asked_by: null,
};

/** What the service sets when it asks, half an hour ago. */
const asked = {
  requested_at: began.toISOString(),
  question_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a00',
  asked_by: { agent_id: 'frontline', agent_name: 'Frontline agent' },
  digest: 'f'.repeat(64),
};

/** The value, deeply frozen: `decide` must return a new packet and not mutate the old one. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) {
    Object.freeze(value);
    for (const part of Object.values(value)) frozen(part);
  }
  return value;
}

/** A packet in the status, with an optional question that was asked half an hour ago. */
function packetIn(status: Status, changes: Partial<Packet> = {}): Packet {
  const { hitl: _, ...request } = createExample;
  const { packet } = newPacket(structuredClone(request) as never, { id, now: began, agentId: undefined });
  const held = ['claimed', 'in_progress', 'completed'].includes(status);
  return frozen({
    ...packet,
    status,
    hitl: status === 'awaiting_human' ? { ...question, ...asked } : question,
    claimed_by: held ? claimant : null,
    claimed_at: held ? began.toISOString() : null,
    ...changes,
  });
}

const newQuestionId = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a01';
const patching = (patch: PatchRequest, agentId?: string): Command => ({ kind: 'patch', patch, agentId, questionId: newQuestionId });
const answering: Command = { kind: 'respond', answer: { response: 'Approve', responded_by: 'dana' } };

function assertUnchanged(decision: Decision, packet: Packet): void {
  assert.deepEqual(decision, { packet, events: [], searchable: false });
}

/** The expected result of a command in a status: a transition, no change, or a refusal with its code and field. */
type Outcome = { to: Status; type: string; event: string } | 'nothing' | { refused: string; field?: string };

const working: readonly Status[] = ['claimed', 'in_progress'];

const entering = (to: Status): Outcome => ({ to, type: `packet.${to}`, event: to });

interface Row {
  name: string;
  command: Command;
  outcome: (status: Status) => Outcome;
}

/** Every command by kind. The type makes a kind that is added to `Command` required here. */
const table: Record<Command['kind'], readonly Row[]> = {
  claim: [
    {
      name: 'claim',
      command: { kind: 'claim', claimant },
      outcome(status) {
        return status === 'created' ? entering('claimed') : { refused: status === 'expired' ? 'GONE' : 'CONFLICT' };
      },
    },
  ],
  respond: [
    {
      name: 'respond',
      command: answering,
      outcome(status) {
        return status === 'awaiting_human'
          ? { to: 'claimed', type: 'hitl.response_ready', event: 'hitl_responded' }
          : { refused: 'CONFLICT' };
      },
    },
  ],
  ask: [
    {
      name: 'ask',
      command: { kind: 'ask', question: { question: 'Really?' }, agentId: undefined, token: undefined, questionId: newQuestionId },
      outcome(status) {
        if (status === 'awaiting_human') return { refused: 'QUESTION_OPEN' };
        return moves[status].includes('awaiting_human') ? entering('awaiting_human') : { refused: 'VALIDATION_ERROR', field: 'status' };
      },
    },
  ],
  withdraw: [
    {
      name: 'withdraw',
      command: { kind: 'withdraw', agentId: undefined },
      outcome(status) {
        // Nobody holds the packet of this table; test/handoff/http/withdraw-question.test.ts has one with a holder.
        return status === 'awaiting_human'
          ? { to: 'created', type: 'hitl.withdrawn', event: 'question_withdrawn' }
          : { refused: 'CONFLICT' };
      },
    },
  ],
  complete: [
    {
      name: 'complete',
      command: { kind: 'complete', agentId: undefined },
      outcome: (status) => (working.includes(status) ? entering('completed') : { refused: 'CONFLICT' }),
    },
  ],
  delete: [
    {
      name: 'delete',
      command: { kind: 'delete', agentId: undefined },
      outcome: (status) => (status === 'expired' ? { refused: 'CONFLICT' } : entering('expired')),
    },
  ],
  // It leads to no status; it has its own test below.
  remove: [],
  erase: [
    {
      name: 'erase',
      command: { kind: 'erase', actor: 'key:1', erasureId: newQuestionId },
      outcome: (status) =>
        moves[status].length > 0 && status !== 'failed'
          ? { to: 'expired', type: 'packet.expired', event: 'erased' }
          : { to: status, type: 'packet.updated', event: 'erased' },
    },
  ],
  patch: [
    ...statuses.map((wanted) => ({
      name: `PATCH to ${wanted}`,
      command: patching({ status: wanted }),
      outcome(status: Status): Outcome {
        if (status === wanted) return 'nothing';
        return moves[status].includes(wanted) ? entering(wanted) : { refused: 'VALIDATION_ERROR', field: 'status' };
      },
    })),
    {
      name: 'PATCH of content',
      command: patching({ context: { summary: 'Both charges found.' } }),
      outcome: (status) => (status === 'expired' ? { refused: 'CONFLICT' } : { to: status, type: 'packet.updated', event: 'updated' }),
    },
    { name: 'PATCH of nothing', command: patching({}), outcome: () => 'nothing' },
  ],
  release: [
    {
      name: 'release',
      command: { kind: 'release', agentId: 'resolver', byAdmin: false },
      outcome(status) {
        return working.includes(status) ? { to: 'created', type: 'packet.updated', event: 'released' } : { refused: 'CONFLICT' };
      },
    },
  ],
  // These packets are not leased; test/handoff/rules/lease.test.ts tests leased ones.
  renew: [
    {
      name: 'renewing a lease',
      command: { kind: 'renew', token: undefined, seconds: undefined },
      outcome: () => ({ refused: 'LEASE_LOST' }),
    },
  ],
  end_lease: [
    {
      name: 'ending a lease',
      command: { kind: 'end_lease', agentId: undefined, token: undefined },
      outcome: () => ({ refused: 'LEASE_LOST' }),
    },
  ],
  // The question of these packets has no timeout, so time does not change them.
  time_out: [{ name: 'time_out', command: { kind: 'time_out' }, outcome: () => 'nothing' }],
  expire_unclaimed: [
    {
      name: 'expire_unclaimed',
      command: { kind: 'expire_unclaimed' },
      outcome: (status) => (status === 'created' ? entering('expired') : 'nothing'),
    },
  ],
};

describe('every status against every command', () => {
  for (const status of statuses) {
    for (const { name, command, outcome } of Object.values(table).flat()) {
      const expected = outcome(status);
      const packet = packetIn(status);

      if (expected === 'nothing') {
        test(`${status}: ${name} changes nothing and emits nothing`, () => assertUnchanged(decide(packet, command, now), packet));
      } else if ('refused' in expected) {
        test(`${status}: ${name} is refused with ${expected.refused}`, () => {
          const error = refused(() => decide(packet, command, now));
          assert.equal(error.code, expected.refused);
          assert.equal(error.field, expected.field ?? null);
        });
      } else {
        test(`${status}: ${name} leads to ${expected.to} and emits only ${expected.type}`, () => {
          const decision = decide(packet, command, now);
          assert.equal(decision.packet.status, expected.to);
          assert.deepEqual(
            decision.events.map(({ event_type, type }) => ({ event_type, type })),
            [{ event_type: expected.event, type: expected.type }],
          );
          assert.equal(decision.packet.revision, packet.revision + 1);
          assert.equal(decision.packet.updated_at, now.toISOString());
          assert.equal(decision.packet.created_at, packet.created_at);
        });
      }
    }
  }
});

test('a hard delete is possible in every status and emits only packet.deleted', () => {
  for (const status of statuses) {
    const packet = packetIn(status);
    const event = { event_type: 'erased', type: 'packet.deleted', actor: 'key:k', details: {} };
    assert.deepEqual(decide(packet, { kind: 'remove', actor: 'key:k' }, now), {
      packet,
      events: [event],
      searchable: false,
      isRemoved: true,
    });
  }
});

describe('PATCH moves', () => {
  for (const from of statuses) {
    test(`from ${from} a refused PATCH names exactly ${moves[from].join(', ') || 'nothing'} [H18]`, () => {
      for (const to of statuses.filter((status) => status !== from)) {
        if (moves[from].includes(to)) continue;
        const error = refused(() => decide(packetIn(from), patching({ status: to }), now));
        assert.deepEqual([error.status, error.code, error.field], [400, 'VALIDATION_ERROR', 'status']);
        const allowed = /(?:moved to ([a-z_, ]+)|packet can't be moved)\.$/.exec(error.message);
        assert.notEqual(allowed, null, error.message);
        assert.equal(allowed![1] ?? '', moves[from].join(', '));
      }
    });
  }

  test('claimed is only reached by claim and respond [H18]', () => {
    for (const from of statuses.filter((status) => status !== 'claimed')) {
      assert.match(refused(() => decide(packetIn(from), patching({ status: 'claimed' }), now)).message, /claim it/);
    }
  });

  test('with the current status the rest of the body applies, as an update [H18]', () => {
    const { packet, events } = decide(packetIn('claimed'), patching({ status: 'claimed', context: { summary: 'Found.' } }), now);
    assert.equal(packet.status, 'claimed');
    assert.equal(packet.context.summary, 'Found.');
    assert.deepEqual(
      events.map(({ event_type, details }) => ({ event_type, details })),
      [{ event_type: 'updated', details: { fields: ['context'] } }],
    );
  });

  test('a status and content in one PATCH are one change and one event', () => {
    const { packet, events, searchable } = decide(
      packetIn('claimed'),
      patching({ status: 'in_progress', decisions: [{ id: 'd2', decision: 'Refund', rationale: 'Within 14 days' }] }),
      now,
    );
    assert.deepEqual([packet.status, packet.revision, packet.decisions.length], ['in_progress', 2, 2]);
    assert.deepEqual(
      events.map(({ event_type, details }) => ({ event_type, details })),
      [{ event_type: 'in_progress', details: { fields: ['decisions'] } }],
    );
    assert.equal(searchable, true);
  });

  test('a refused status refuses the content as well', () => {
    const packet = packetIn('completed');
    const error = refused(() => decide(packet, patching({ status: 'in_progress', context: { summary: 'Again.' } }), now));
    assert.equal(error.field, 'status');
  });

  test('content of an expired packet is refused even together with its own status [H43]', () => {
    const error = refused(() => decide(packetIn('expired'), patching({ status: 'expired', context: { summary: 'Late.' } }), now));
    assert.deepEqual([error.status, error.code], [409, 'CONFLICT']);
  });
});

describe('completing', () => {
  const required = (response: string | null) => ({
    hitl: {
      ...question,
      ...asked,
      required: true,
      response,
      responded_by: response && 'dana',
      responded_at: response && now.toISOString(),
    },
  });

  for (const status of ['claimed', 'in_progress'] as const) {
    test(`${status}: PATCH to completed is refused on status while a required answer is missing [H21]`, () => {
      const error = refused(() => decide(packetIn(status, required(null)), patching({ status: 'completed' }), now));
      assert.deepEqual([error.status, error.code, error.field], [400, 'VALIDATION_ERROR', 'status']);
    });

    test(`${status}: complete is a conflict while a required answer is missing [H62]`, () => {
      const error = refused(() => decide(packetIn(status, required(null)), { kind: 'complete', agentId: undefined }, now));
      assert.deepEqual([error.status, error.code], [409, 'CONFLICT']);
    });

    test(`${status}: with the answer, even an empty one, it completes`, () => {
      for (const response of ['Approve', '']) {
        assert.equal(decide(packetIn(status, required(response)), patching({ status: 'completed' }), now).packet.status, 'completed');
        assert.equal(
          decide(packetIn(status, required(response)), { kind: 'complete', agentId: undefined }, now).packet.status,
          'completed',
        );
      }
    });
  }

  test('a question that the same PATCH makes required prevents the completion', () => {
    const error = refused(() => decide(packetIn('claimed'), patching({ status: 'completed', hitl: { required: true } }), now));
    assert.equal(error.field, 'status');
  });

  test('the event has the number of completed actions, including those of the same PATCH', () => {
    const { events } = decide(
      packetIn('claimed'),
      patching({ status: 'completed', actions: { completed: [{ id: 'a1', description: 'Refund', result: 'Refunded' }] } }),
      now,
    );
    assert.deepEqual(events[0]?.details, { actions_completed: 1, fields: ['actions'] });
    const { events: bare } = decide(packetIn('claimed'), { kind: 'complete', agentId: undefined }, now);
    assert.deepEqual(bare[0]?.details, { actions_completed: 0 });
  });
});

describe('claiming', () => {
  test('sets the claimant and the time', () => {
    const { packet, events } = decide(packetIn('created'), { kind: 'claim', claimant }, now);
    assert.deepEqual(packet.claimed_by, claimant);
    assert.equal(packet.claimed_at, now.toISOString());
    assert.equal(events[0]?.actor, 'agent:resolver');
  });

  test('the conflict names the holder and the time of the claim', () => {
    for (const status of ['claimed', 'in_progress', 'completed'] as const) {
      const error = refused(() => decide(packetIn(status), { kind: 'claim', claimant: { ...claimant, agent_id: 'late' } }, now));
      assert.deepEqual(error.body().claimed_by, { ...claimant, claimed_at: began.toISOString() });
    }
  });

  test('the conflict has null for a packet that never had a holder [H24]', () => {
    for (const status of ['failed', 'awaiting_human'] as const) {
      const error = refused(() => decide(packetIn(status), { kind: 'claim', claimant }, now));
      assert.equal(error.code, 'CONFLICT');
      assert.equal(error.body().claimed_by, null);
    }
  });

  test('the conflict names the last holder of a failed or waiting packet [H24]', () => {
    for (const status of ['failed', 'awaiting_human'] as const) {
      const held = packetIn(status, { claimed_by: claimant, claimed_at: began.toISOString() });
      const error = refused(() => decide(held, { kind: 'claim', claimant }, now));
      assert.deepEqual(error.body().claimed_by, { ...claimant, claimed_at: began.toISOString() });
    }
  });

  test('the holder itself gets the conflict as well [H24]', () => {
    assert.equal(refused(() => decide(packetIn('claimed'), { kind: 'claim', claimant }, now)).code, 'CONFLICT');
  });
});

describe('asking a person', () => {
  for (const status of ['created', 'claimed', 'in_progress'] as const) {
    test(`${status}: without a question PATCH to awaiting_human is refused on hitl [H21]`, () => {
      const error = refused(() => decide(packetIn(status, { hitl: null }), patching({ status: 'awaiting_human' }), now));
      assert.deepEqual([error.status, error.code, error.field], [400, 'VALIDATION_ERROR', 'hitl']);
    });

    test(`${status}: a question that the same PATCH removes does not count`, () => {
      const error = refused(() => decide(packetIn(status), patching({ status: 'awaiting_human', hitl: null }), now));
      assert.equal(error.field, 'hitl');
    });

    test(`${status}: the question may be in the same PATCH`, () => {
      const hitl = { required: true, reason: 'Policy', question: 'Refund?', timeout_seconds: 60 };
      const { packet } = decide(packetIn(status, { hitl: null }), patching({ status: 'awaiting_human', hitl }), now);
      assert.equal(packet.status, 'awaiting_human');
      const { digest, ...shown } = packet.hitl!;
      assert.match(digest!, /^[0-9a-f]{64}$/);
      const asked_by =
        status === 'created' ? { agent_id: 'frontline', agent_name: 'Frontline agent' } : { agent_id: 'resolver', agent_name: 'Resolver' };
      const requested_at = now.toISOString();
      const expires_at = '2026-03-01T10:01:00.000Z';
      assert.deepEqual(shown, { ...question, ...hitl, asked_by, requested_at, expires_at, question_id: newQuestionId });
    });
  }

  test('the question that is asked is only removed with a change of status [H21]', () => {
    const asking = packetIn('awaiting_human');
    const error = refused(() => decide(asking, patching({ hitl: null }), now));
    assert.deepEqual([error.status, error.field], [400, 'hitl']);
    assert.equal(decide(asking, patching({ status: 'failed', hitl: null }), now).packet.hitl, null);
  });

  test('without a timeout there is no deadline', () => {
    const { packet } = decide(packetIn('created'), patching({ status: 'awaiting_human' }), now);
    assert.deepEqual([packet.hitl?.requested_at, packet.hitl?.expires_at], [now.toISOString(), null]);
  });

  const answered: Hitl = {
    ...question,
    ...asked,
    options: ['Approve', 'Refuse'],
    responder: 'dana',
    timeout_seconds: 60,
    response: 'Approve',
    responded_by: 'dana',
    responded_at: began.toISOString(),
    notes: 'Fine',
  };

  test('asking again is a new question without an answer: the fields that are sent, or those of the latest one [H21]', () => {
    const before = packetIn('claimed', { hitl: answered });
    const same = decide(before, patching({ status: 'awaiting_human' }), now).packet.hitl!;
    assert.deepEqual([same.question, same.options, same.question_id], [question.question, ['Approve', 'Refuse'], newQuestionId]);
    assert.deepEqual([same.response, same.responded_by, same.responded_at, same.notes], [null, null, null, null]);
    const fresh = decide(before, patching({ status: 'awaiting_human', hitl: { question: 'And the postage?' } }), now).packet;
    const { digest, ...hitl } = fresh.hitl!;
    assert.notEqual(digest, same.digest);
    const asked_by = { agent_id: 'resolver', agent_name: 'Resolver' };
    const own = { required: true, reason: '', question: 'And the postage?', question_id: newQuestionId };
    assert.deepEqual(hitl, { ...question, ...own, asked_by, requested_at: now.toISOString() });
  });

  test('asking again restarts the time to answer [H31]', () => {
    const hitl = { ...answered, timeout_seconds: 60, requested_at: began.toISOString(), expires_at: '2026-03-01T09:31:00.000Z' };
    const { packet } = decide(packetIn('claimed', { hitl }), patching({ status: 'awaiting_human' }), now);
    assert.deepEqual([packet.hitl?.requested_at, packet.hitl?.expires_at], [now.toISOString(), '2026-03-01T10:01:00.000Z']);
  });

  test('a new timeout while the packet waits counts from when the question was asked', () => {
    const { packet } = decide(packetIn('awaiting_human'), patching({ hitl: { timeout_seconds: 3600 } }), now);
    assert.deepEqual([packet.hitl?.requested_at, packet.hitl?.expires_at], [began.toISOString(), '2026-03-01T10:30:00.000Z']);
  });
});

describe('answering', () => {
  const waiting = (changes: Partial<Packet> = {}, hitl: Partial<Hitl> = {}) =>
    packetIn('awaiting_human', {
      hitl: { ...question, ...asked, timeout_seconds: 1800, expires_at: now.toISOString(), ...hitl },
      ...changes,
    });
  const oneMsBefore = new Date(now.getTime() - 1);

  test('fills hitl and leaves the question unchanged', () => {
    const answer = { response: 'Approve', responded_by: 'dana', notes: 'Loyal customer' };
    const { packet, events } = decide(waiting(), { kind: 'respond', answer }, oneMsBefore);
    const answered_by = { name: 'dana', verified: false, method: 'typed' };
    assert.deepEqual(packet.hitl, { ...waiting().hitl, ...answer, answered_by, responded_at: oneMsBefore.toISOString() });
    assert.equal(events[0]?.actor, 'human:dana');
  });

  test('notes are null by default', () => {
    assert.equal(decide(waiting(), answering, oneMsBefore).packet.hitl?.notes, null);
  });

  test('returns the packet to its previous holder with the time of its claim', () => {
    const { packet } = decide(waiting({ claimed_by: claimant, claimed_at: began.toISOString() }), answering, oneMsBefore);
    assert.deepEqual([packet.claimed_by, packet.claimed_at], [claimant, began.toISOString()]);
  });

  test('assigns a packet without a holder to its target agent, from now [H34]', () => {
    const { packet } = decide(waiting(), answering, oneMsBefore);
    assert.deepEqual(packet.claimed_by, { agent_id: 'resolver', agent_name: 'Resolution desk', framework: null });
    assert.equal(packet.claimed_at, oneMsBefore.toISOString());
  });

  test('is accepted until the last millisecond, and refused as gone from the timeout on [H31]', () => {
    assert.equal(decide(waiting(), answering, oneMsBefore).packet.status, 'claimed');
    const error = refused(() => decide(waiting(), answering, now));
    assert.deepEqual([error.status, error.code], [410, 'GONE']);
  });

  test('is always accepted without a timeout', () => {
    const late = new Date('2036-01-01T00:00:00.000Z');
    assert.equal(decide(waiting({}, { expires_at: null }), answering, late).packet.status, 'claimed');
  });

  test('is refused because of the status in any other status, even after the timeout', () => {
    for (const status of statuses.filter((one) => one !== 'awaiting_human')) {
      assert.equal(refused(() => decide(packetIn(status, { hitl: waiting().hitl }), answering, now)).code, 'CONFLICT');
    }
  });
});

describe('the timeout of a question', () => {
  const overdue = (status: Status, on_timeout?: 'keep' | 'fail' | 'expire') =>
    packetIn(status, {
      hitl: {
        ...question,
        ...asked,
        timeout_seconds: 1800,
        ...(on_timeout === undefined ? {} : { on_timeout }),
        expires_at: now.toISOString(),
      },
    });

  for (const [on_timeout, end] of [
    ['fail', 'failed'],
    ['expire', 'expired'],
  ] as const) {
    test(`${on_timeout}: the packet is ${end}; the history has hitl_timed_out first, and only packet.${end} is emitted`, () => {
      const { packet, events } = decide(overdue('awaiting_human', on_timeout), { kind: 'time_out' }, now);
      assert.deepEqual([packet.status, packet.revision], [end, 2]);
      assert.deepEqual(
        events.map(({ event_type, type, actor }) => ({ event_type, type, actor })),
        [
          { event_type: 'hitl_timed_out', type: null, actor: 'system:sweeper' },
          { event_type: end, type: `packet.${end}`, actor: 'system:sweeper' },
        ],
      );
    });

    test(`${on_timeout}: a timeout is not recorded as an answer`, () => {
      const before = overdue('awaiting_human', on_timeout);
      assert.deepEqual(decide(before, { kind: 'time_out' }, now).packet.hitl, { ...before.hitl, ended_at: now.toISOString() });
    });

    test(`${on_timeout}: nothing happens a millisecond before`, () => {
      const before = overdue('awaiting_human', on_timeout);
      assertUnchanged(decide(before, { kind: 'time_out' }, new Date(now.getTime() - 1)), before);
    });

    test(`${on_timeout}: a packet that has left awaiting_human is not changed`, () => {
      for (const status of statuses.filter((one) => one !== 'awaiting_human')) {
        const before = overdue(status, on_timeout);
        assertUnchanged(decide(before, { kind: 'time_out' }, now), before);
      }
    });

    test(`${on_timeout}: it is due for the sweeper at its timeout, only in awaiting_human`, () => {
      for (const status of statuses) {
        assert.equal(dueAt(overdue(status, on_timeout)), status === 'awaiting_human' ? now.toISOString() : null);
      }
    });
  }

  test('without timeout_seconds it is never due for the sweeper, whatever its on_timeout', () => {
    assert.equal(dueAt(packetIn('awaiting_human', { hitl: { ...question, ...asked, on_timeout: 'fail' } })), null);
  });

  for (const on_timeout of ['keep', undefined] as const) {
    test(`${on_timeout ?? 'left out'}: nothing happens, and it is never due for the sweeper [H31]`, () => {
      const before = overdue('awaiting_human', on_timeout);
      assertUnchanged(decide(before, { kind: 'time_out' }, now), before);
      assert.equal(dueAt(before), null);
    });
  }
});

describe('a question that has ended', () => {
  test('has nothing any more that only an open one has, in its packet and as it is stored [H429]', () => {
    const step = { index: 1, of: 1, count: 1, given: 0, from: ['dana'], changes_at: null };
    const open = { step, remember: { scope: 'tool' as const, max_seconds: 60 }, verified_only: true };
    const before = packetIn('awaiting_human', {
      hitl: { ...question, ...asked, on_timeout: 'fail', expires_at: now.toISOString(), ...open },
    });
    const left = ({ step, remember, verified_only }: Partial<Hitl>) => [step, remember, verified_only];
    const earlier = new Date(now.getTime() - 1);
    for (const [name, command, at, isInPacket] of [
      ['timed out', { kind: 'time_out' }, now, true],
      ['deleted', { kind: 'delete', agentId: undefined }, earlier, true],
      ['failed', patching({ status: 'failed' }), earlier, true],
      ['withdrawn', { kind: 'withdraw', agentId: undefined }, earlier, false],
      ['replaced', patching({ hitl: { question: 'Another?' } }), earlier, false],
    ] as const) {
      const { packet, ended = [] } = decide(before, command, at);
      assert.deepEqual(
        ended.map((record) => left(record.asked)),
        [[null, undefined, undefined]],
        name,
      );
      if (isInPacket) assert.deepEqual(left(packet.hitl!), [null, undefined, undefined], name);
    }
  });
});

describe('the actor', () => {
  const actorOf = ({ events }: Decision) => events.map(({ actor }) => actor);

  test('of a create is the source agent, or the agent that the request names', () => {
    const request = structuredClone(createExample) as never;
    assert.deepEqual(actorOf(newPacket(request, { id, now, agentId: undefined })), ['agent:frontline']);
    assert.deepEqual(actorOf(newPacket(request, { id, now, agentId: 'router' })), ['agent:router']);
  });

  test('is the agent that the request names, else the claimant, else the source agent [H9]', () => {
    const commands = (agentId: string | undefined): Command[] => [
      patching({ context: { summary: 'Found.' } }, agentId),
      patching({ status: 'failed' }, agentId),
      { kind: 'delete', agentId },
    ];
    for (const command of commands(undefined)) {
      assert.deepEqual(actorOf(decide(packetIn('created'), command, now)), ['agent:frontline']);
      assert.deepEqual(actorOf(decide(packetIn('claimed'), command, now)), ['agent:resolver']);
    }
    for (const command of [...commands('auditor'), { kind: 'complete', agentId: 'auditor' } as const]) {
      assert.deepEqual(actorOf(decide(packetIn('claimed'), command, now)), ['agent:auditor']);
    }
  });

  test('of a timeout is the sweeper', () => {
    assert.deepEqual(actorOf(decide(packetIn('created'), { kind: 'expire_unclaimed' }, now)), ['system:sweeper']);
  });
});

describe('a new packet', () => {
  test('is created, at revision 1, with the version of the schema and an entity tag of its revision', () => {
    const { packet, events } = newPacket(structuredClone(createExample) as never, { id, now, agentId: undefined });
    assert.deepEqual([packet.status, packet.revision, packet.version], ['created', 1, '1.0.0']);
    assert.equal(entityTagOf(packet.revision), '"1"');
    assert.deepEqual(events, [{ event_type: 'created', type: 'packet.created', actor: 'agent:frontline', details: {} }]);
  });

  test('starts as created even if it requires an answer; its question is not asked yet [H18]', () => {
    const { packet } = newPacket(structuredClone(createExample) as never, { id, now, agentId: undefined });
    assert.equal(packet.hitl?.required, true);
    assert.deepEqual([packet.hitl?.requested_at, packet.hitl?.expires_at], [null, null]);
  });

  test("can't set its answer or its dates", () => {
    const request = structuredClone(createExample) as Record<string, unknown> & typeof createExample;
    Object.assign(request.hitl, {
      response: 'Approve',
      responded_by: 'me',
      responded_at: began.toISOString(),
      expires_at: began.toISOString(),
    });
    Object.assign(request.metadata, { created_at: '1999-01-01T00:00:00.000Z' });
    const { packet } = newPacket(request as never, { id, now, agentId: undefined });
    assert.deepEqual(packet.hitl, { ...createExample.hitl, ...question, required: true });
    assert.equal(packet.metadata.created_at, now.toISOString());
  });

  test('with a parent names it, and the history of the parent names the child', () => {
    const parent = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8c';
    const { packet, events } = newPacket({ ...structuredClone(createExample), parent_packet_id: parent } as never, {
      id,
      now,
      agentId: undefined,
    });
    assert.equal(packet.parent_packet_id, parent);
    assert.deepEqual(events[0]?.details, { parent_packet_id: parent });
    assert.deepEqual(chained(packet, undefined), {
      event_type: 'chained',
      type: null,
      actor: 'agent:frontline',
      details: { child_packet_id: id },
    });
  });
});

test('any sequence of commands moves the packet only along the table, and its revision counts the changes [H7]', () => {
  const commands = fc.array(
    fc.constantFrom(
      ...Object.values(table)
        .flat()
        .map(({ command }) => command),
      patching({ hitl: null }),
    ),
    { maxLength: 30 },
  );
  /** Where a claim, an answer, the end of a claim and the withdrawal of a question lead, beside a PATCH and a DELETE. */
  const others: Partial<Record<Status, readonly Status[]>> = {
    created: ['claimed'],
    claimed: ['created'],
    in_progress: ['created'],
    awaiting_human: ['claimed', 'created'],
    completed: ['expired'],
  };
  const leads = (from: Status): Status[] => [from, ...moves[from], ...(others[from] ?? [])];
  fc.assert(
    fc.property(commands, (list) => {
      let packet = packetIn('created');
      let changes = 0;
      for (const command of list) {
        const before = packet;
        try {
          const decision = decide(before, command, now);
          packet = frozen(decision.packet);
          changes += decision.events.length === 0 ? 0 : 1;
        } catch (error) {
          assert.ok(error instanceof ServiceError);
        }
        assert.ok(leads(before.status).includes(packet.status), `${before.status} -> ${packet.status} by ${command.kind}`);
        assert.equal(packet.revision, 1 + changes);
      }
    }),
    { numRuns: 300, seed: 20260301 },
  );
});
