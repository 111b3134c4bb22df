import assert from 'node:assert/strict';
import { test } from 'node:test';

import { channelsOf, eventId, parseChannels, positionOf } from '../../../src/handoff/rules/channels.ts';

const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b';

test('a channel is a status, a packet or an agent; the id of a packet is read in any case, and that of an agent as it is', () => {
  const given = ['status:created', `packet:${id.toUpperCase()}`, 'agent:Team A:1', `agent:${'x'.repeat(255)}`];
  assert.deepEqual(parseChannels(given, 'channels'), ['status:created', `packet:${id}`, 'agent:Team A:1', `agent:${'x'.repeat(255)}`]);
  for (const wrong of [
    'status',
    'status:',
    'status:done',
    'packet:1',
    'agent:',
    'agent: ',
    `agent:${'x'.repeat(256)}`,
    'tenant:1',
    ':created',
    '',
  ])
    assert.throws(() => parseChannels([wrong], 'channels'), { code: 'VALIDATION_ERROR' }, wrong);
  assert.equal(parseChannels(Array(100).fill('status:created'), 'channels').length, 100);
  assert.throws(() => parseChannels(Array(101).fill('status:created'), 'channels'), { code: 'VALIDATION_ERROR' });
});

test('an event belongs to the channels of its status, its packet and each of its agents', () => {
  const event = { packet_id: id, status: 'claimed', source_agent: 'a', target_agent: 'b', claimant: 'b' };
  assert.deepEqual(channelsOf(event), ['status:claimed', `packet:${id}`, 'agent:a', 'agent:b']);
  const none = { packet_id: null, status: null, source_agent: null, target_agent: null, claimant: null };
  assert.deepEqual(channelsOf(none), []);
});

test('the id of an event has its position, and is that of its tenant only', () => {
  assert.equal(positionOf('t', eventId('t', 42)), 42);
  for (const wrong of [eventId('u', 42), '42', '42-', `x${eventId('t', 42)}`, eventId('t', 42).slice(0, -1)])
    assert.equal(positionOf('t', wrong), undefined, wrong);
});
