import assert from 'node:assert/strict';
import { test } from 'node:test';

import { makesSource } from '../../../src/handoff/rules/exclusion.ts';
import type { PacketEvent } from '../../../src/handoff/rules/packet.ts';

test('who creates or claims a packet, asks, or changes the question is a source of it, and nobody else [H197]', () => {
  const isMade = (event_type: string, details: object = {}) => makesSource({ event_type, details } as unknown as PacketEvent);
  for (const type of ['created', 'claimed', 'awaiting_human']) assert.equal(isMade(type), true, type);
  assert.equal(isMade('updated', { fields: ['metadata', 'hitl'] }), true);
  assert.equal(isMade('withdrawn', { replaced_question_id: 'q' }), true);
  for (const type of ['updated', 'released', 'completed', 'failed']) assert.equal(isMade(type), false, type);
  assert.equal(isMade('updated', { fields: ['metadata'] }), false);
});
