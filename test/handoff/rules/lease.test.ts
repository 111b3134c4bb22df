import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import type { Packet } from '../../../src/handoff/model/packet.ts';
import type { Command } from '../../../src/handoff/rules/command.ts';
import { dueAt } from '../../../src/handoff/rules/due.ts';
import type { StoredLease } from '../../../src/handoff/rules/lease.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { decide } from '../../support/facts.ts';

const now = new Date('2026-03-01T10:00:00.000Z');
const later = (seconds: number) => new Date(now.getTime() + seconds * 1000);
const claimant = { agent_id: 'resolver', agent_name: 'Resolver', framework: null };
const token = 'lease_one';

function created(): Packet {
  const request = { ...structuredClone(createExample), hitl: { required: false, reason: 'Over 50', question: 'Refund 59.90?' } };
  return newPacket(request as never, { id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b', now, agentId: undefined }).packet;
}

/** A packet after a sequence of commands, and the stored state of its leases. */
function after(...commands: [command: Command, at: Date][]): { packet: Packet; lease: StoredLease | null } {
  return commands.reduce(
    ({ packet, lease }, [command, at]) => {
      const decision = decide(packet, command, at, lease);
      return { packet: decision.packet, lease: decision.lease === undefined ? lease : decision.lease };
    },
    { packet: created(), lease: null as StoredLease | null },
  );
}

const claim = (seconds: number, ownToken = token): Command => ({ kind: 'claim', claimant, terms: { seconds, token: ownToken } });
const ask = (ownToken?: string): Command => ({
  kind: 'patch',
  patch: { status: 'awaiting_human' },
  agentId: undefined,
  questionId: 'q',
  token: ownToken,
});
const respond: Command = { kind: 'respond', answer: { response: 'Approve', responded_by: 'dana' } };
const code = (expected: string) => (error: unknown) => (error as { code: string }).code === expected;

describe('a lease', () => {
  test('starts with the claim; only a digest of its token is stored', () => {
    const { packet, lease } = after([claim(300), now]);
    assert.deepEqual(packet.lease, { generation: 1, expires_at: later(300).toISOString() });
    assert.equal(lease?.seconds, 300);
    assert.match(lease?.token ?? '', /^[0-9a-f]{64}$/);
    assert.equal(dueAt(packet), later(300).toISOString());
  });

  for (const [name, command] of Object.entries({
    'a PATCH': (shown?: string): Command => ({
      kind: 'patch',
      patch: { status: 'in_progress' },
      agentId: undefined,
      questionId: 'q',
      token: shown,
    }),
    'a batch complete': (shown?: string): Command => ({ kind: 'complete', agentId: undefined, token: shown }),
    'a release': (shown?: string): Command => ({ kind: 'release', agentId: 'resolver', byAdmin: true, token: shown }),
    'a DELETE': (shown?: string): Command => ({ kind: 'delete', agentId: undefined, byAdmin: false, token: shown }),
    'a renewal': (shown?: string): Command => ({ kind: 'renew', seconds: undefined, token: shown }),
    'giving it back': (shown?: string): Command => ({ kind: 'end_lease', agentId: undefined, token: shown }),
  })) {
    test(`${name} needs the token of the lease, which is valid until the lease expires`, () => {
      const { packet, lease } = after([claim(60), now]);
      assert.throws(() => decide(packet, command(), later(1), lease), code('LEASE_LOST'));
      assert.throws(() => decide(packet, command('lease_two'), later(1), lease), code('LEASE_LOST'));
      assert.throws(() => decide(packet, command(token), later(60), lease), code('LEASE_LOST'));
      assert.doesNotThrow(() => decide(packet, command(token), later(59.999), lease));
    });
  }

  test('a token for a packet without a lease is refused', () => {
    const { packet, lease } = after([{ kind: 'claim', claimant }, now]);
    assert.throws(() => decide(packet, ask(token), now, lease), code('LEASE_LOST'));
    assert.equal(decide(packet, { kind: 'complete', agentId: undefined, token: undefined }, now, lease).packet.status, 'completed');
  });

  test('an admin may delete without a token, but not with a wrong one', () => {
    const { packet, lease } = after([claim(60), now]);
    const remove = (shown?: string): Command => ({ kind: 'delete', agentId: undefined, byAdmin: true, token: shown });
    assert.equal(decide(packet, remove(), now, lease).packet.status, 'expired');
    assert.throws(() => decide(packet, remove('lease_two'), now, lease), code('LEASE_LOST'));
  });

  test('is suspended while the packet awaits a person, and restarts in full after the answer [H110]', () => {
    const asked = after([claim(60), now], [ask(token), later(50)]);
    assert.deepEqual(asked.packet.lease, { generation: 1, expires_at: null });
    const hitl = { ...asked.packet.hitl!, on_timeout: 'fail', expires_at: later(90).toISOString() } as const;
    assert.equal(dueAt({ ...asked.packet, hitl }), later(90).toISOString());
    // A renewal does not restart it, and it can't be given back.
    const renewed = decide(asked.packet, { kind: 'renew', token, seconds: 30 }, later(55), asked.lease);
    assert.deepEqual(renewed.packet.lease, { generation: 1, expires_at: null });
    assert.throws(() => decide(asked.packet, { kind: 'end_lease', agentId: undefined, token }, later(55), asked.lease), code('CONFLICT'));
    const answered = after([claim(60), now], [ask(token), later(50)], [respond, later(5000)]);
    assert.deepEqual(answered.packet.lease, { generation: 1, expires_at: later(5060).toISOString() });
  });

  test('when it expires, and not before, the sweeper returns the packet to created [H109]', () => {
    const { packet, lease } = after([claim(60), now]);
    assert.deepEqual(decide(packet, { kind: 'time_out' }, later(59), lease).events, []);
    const { packet: free, events } = decide(packet, { kind: 'time_out' }, later(60), lease);
    assert.deepEqual([free.status, free.claimed_by, free.claimed_at, free.lease], ['created', null, null, null]);
    assert.deepEqual(
      events.map(({ event_type, type, actor }) => [event_type, type, actor]),
      [['lease_expired', 'packet.updated', 'system:sweeper']],
    );
    assert.equal(dueAt(free), null);
  });

  test('each new lease has the next generation, and invalidates the previous token [H102]', () => {
    const { packet, lease } = after([claim(60), now], [{ kind: 'time_out' }, later(60)], [claim(60, 'lease_two'), later(61)]);
    assert.equal(packet.lease?.generation, 2);
    assert.throws(() => decide(packet, ask(token), later(62), lease), code('LEASE_LOST'));
    assert.equal(decide(packet, ask('lease_two'), later(62), lease).packet.status, 'awaiting_human');
  });

  test('a renewal keeps the revision and emits no event', () => {
    const { packet, lease } = after([claim(60), now]);
    const renewed = decide(packet, { kind: 'renew', token, seconds: 600 }, later(30), lease);
    assert.deepEqual(renewed.events, []);
    assert.equal(renewed.packet.revision, packet.revision);
    assert.equal(renewed.packet.lease?.expires_at, later(630).toISOString());
    const again = decide(renewed.packet, { kind: 'renew', token, seconds: undefined }, later(60), renewed.lease);
    assert.equal(again.packet.lease?.expires_at, later(660).toISOString());
  });

  test('ends with the packet', () => {
    const { packet } = after([claim(60), now], [{ kind: 'complete', agentId: undefined, token }, later(10)]);
    assert.equal(packet.lease, null);
    assert.equal(dueAt(packet), null);
  });
});

describe('a release', () => {
  const release = (agentId: string | undefined, byAdmin = false): Command => ({ kind: 'release', agentId, byAdmin });

  test('is allowed to the holder and to an admin', () => {
    const { packet } = after([{ kind: 'claim', claimant }, now]);
    assert.throws(() => decide(packet, release('somebody'), now), code('FORBIDDEN'));
    assert.throws(() => decide(packet, release(undefined), now), code('FORBIDDEN'));
    assert.equal(decide(packet, release('resolver'), now).packet.status, 'created');
    assert.equal(decide(packet, release(undefined, true), now).packet.status, 'created');
  });

  test('records the previous holder [H109]', () => {
    const { packet } = after([{ kind: 'claim', claimant }, now]);
    const [event] = decide(packet, release('resolver'), now).events;
    assert.deepEqual(event, { event_type: 'released', type: 'packet.updated', actor: 'agent:resolver', details: { claimed_by: claimant } });
  });
});
