import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createExample, summaryExample } from '../../../src/handoff/model/examples.ts';
import { newPacket } from '../../../src/handoff/rules/packet.ts';
import { packetText, summaryText } from '../../../src/handoff/rules/summary.ts';

const id = summaryExample.id;
const { packet } = newPacket(structuredClone(createExample) as never, { id, now: new Date(summaryExample.created_at), agentId: undefined });

test('the text of a packet says exactly what the packet holds, in the same order', () => {
  assert.equal(packetText(packet), JSON.stringify(packet));
});

test('the text of a summary counts what it leaves out', () => {
  assert.deepEqual(JSON.parse(summaryText(packet)), summaryExample);
});

test('a changed packet is printed anew', () => {
  const changed = { ...packet, revision: 2 };
  assert.equal(packetText(changed), JSON.stringify(changed));
  assert.equal(JSON.parse(summaryText(changed)).revision, 2);
});
