import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createExample, packetExample, summaryExample } from '../../../src/handoff/model/examples.ts';
import type { PacketSummary } from '../../../src/handoff/model/packet.ts';
import { newPacket } from '../../../src/handoff/rules/packet.ts';
import { packetText, partsOf, stateOf, summaryText } from '../../../src/handoff/rules/text.ts';

const id = summaryExample.id;
const { packet } = newPacket(structuredClone(createExample) as never, { id, now: new Date(summaryExample.created_at), agentId: undefined });

test('the text of a packet says exactly what the packet holds, in the same order', () => {
  assert.equal(packetText(partsOf(packet)), JSON.stringify(packet));
  assert.deepEqual(JSON.parse(packetText(partsOf(packet))), packetExample);
});

test('the text of a summary counts what it leaves out', () => {
  assert.deepEqual(JSON.parse(summaryText(partsOf(packet))), summaryExample);
});

test('what a packet in short says of its state is what the whole packet says', () => {
  assert.equal(stateOf(JSON.parse(summaryText(partsOf(packet))) as PacketSummary), partsOf(packet).state);
});
