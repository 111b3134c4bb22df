import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createExample, packetExample, summaryExample } from '../../../src/handoff/model/examples.ts';
import type { PacketSummary } from '../../../src/handoff/model/packet.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { packetText, partsOf, stateOf, summaryText } from '../../../src/handoff/rules/text.ts';

const id = summaryExample.id;
const { packet } = newPacket(structuredClone(createExample) as never, { id, now: new Date(summaryExample.created_at), agentId: undefined });

test('the text of a packet has exactly the fields of the packet, in the same order', () => {
  assert.equal(packetText(partsOf(packet)), JSON.stringify(packet));
  assert.deepEqual(JSON.parse(packetText(partsOf(packet))), packetExample);
});

test('the text of a summary has the counts of what it leaves out', () => {
  assert.deepEqual(JSON.parse(summaryText(partsOf(packet))), summaryExample);
});

test('a summary and a whole packet have the same state', () => {
  assert.equal(stateOf(JSON.parse(summaryText(partsOf(packet))) as PacketSummary), partsOf(packet).state);
});
