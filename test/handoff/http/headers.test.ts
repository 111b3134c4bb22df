import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { type CreateRequest, createFallbackClient, createHandoffClient } from '../../../src/client.ts';
import { nodeTransport } from '../../../src/handoff/cli/node-transport.ts';
import { fetchTransport } from '../../../src/kit/transport.ts';
import { callTool } from '../../support/mcp.ts';
import { createPacket, packetRequest } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const agent = `Zoë 🦊 ${'é'.repeat(240)}`;
const body = packetRequest() as unknown as CreateRequest;

for (const store of stores) {
  describe(`Headers beyond ASCII, on ${store.name}`, () => {
    for (const [name, transport] of Object.entries({ fetchTransport, nodeTransport }))
      test(`the client by ${name} sends agents and idempotency keys of 255 characters as UTF-8 [H260]`, async () => {
        const service = await shareService(store);
        const client = createHandoffClient({
          ...{ baseUrl: await service.listen(), apiKey: `${service.key}\n`, transport },
          headers: { 'x-agent-id': agent },
        });
        const request = { body, idempotencyKey: 'ü'.repeat(255) };
        const made = await client.createPacket(request);
        assert.deepEqual(await client.createPacket(request), made);
        const { entries } = (await service.call('GET', `/audit?packet_id=${made.id}`)).body;
        assert.deepEqual([entries.length, entries[0].actor], [1, `agent:${agent}`]);
      });

    test('tools of MCP take agents and idempotency keys of 255 characters [H260]', async () => {
      const service = await shareService(store);
      const args = { agent_id: agent, target_agent: 'resolver', summary: 'Refund', idempotency_key: 'ü'.repeat(255) };
      const made = (await callTool(service, 'hand_over', args, { agent: null })).structuredContent;
      assert.deepEqual((await callTool(service, 'hand_over', args, { agent: null })).structuredContent, made);
      const { entries } = (await service.call('GET', `/audit?packet_id=${made.id}`)).body;
      assert.deepEqual([entries.length, entries[0].actor], [1, `agent:${agent}`]);
    });

    test('tools of MCP take every agent that a body of the API takes [H770]', async () => {
      const service = await shareService(store);
      for (const agent_id of ['é'.repeat(130), 'é'.repeat(300)]) {
        const [one, other] = [await createPacket(service), await createPacket(service)];
        const byRest = await service.call('POST', `/packets/${one.id}/claim`, { body: { agent_id } });
        const byTool = await callTool(service, 'claim', { packet_id: other.id, agent_id }, { agent: null });
        assert.deepEqual([byRest.status, byTool.structuredContent?.claimed_by?.agent_id], [200, agent_id], JSON.stringify(byTool));
      }
    });
  });
}

test('The clients refuse an API key that no header can hold, without showing it', () => {
  for (const apiKey of ['secret\nkey', 'secret key', 'schlüssel', '', ' \n'])
    for (const create of [createHandoffClient, createFallbackClient])
      assert.throws(() => create({ baseUrl: 'http://127.0.0.1:9', apiKey }), {
        name: 'TypeError',
        message: 'The API key must be visible ASCII characters without spaces.',
      });
});
