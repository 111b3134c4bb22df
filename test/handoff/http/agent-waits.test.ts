import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { a2aRequest, messageOf } from '../../support/a2a.ts';
import { callTool, mcpRequest } from '../../support/mcp.ts';
import { createPacket, newTenant, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';
import { waiting } from '../../support/until.ts';

/** A request of an agent that waits: its path, headers and body. */
interface Waiting {
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: object;
}

const tool = (name: string, args: Record<string, unknown>): Waiting => ({
  path: '/mcp',
  ...mcpRequest('tools/call', { name, arguments: args }),
});
const message = (method: string, params: unknown): Waiting => ({ path: '/a2a', ...a2aRequest(method, params) });

/** The ways in which agents wait, each for a packet that is claimed and asks a question. */
const waits: Record<string, (id: string) => Waiting> = {
  'claim_next over MCP': () => tool('claim_next', { wait_seconds: 55 }),
  'get_answer over MCP': (id) => tool('get_answer', { packet_id: id }),
  'wait_for_packet over MCP': (id) => tool('wait_for_packet', { packet_id: id, statuses: ['completed'] }),
  'a blocking message over A2A': () =>
    message('SendMessage', messageOf('Refund order 4711', { metadata: { target_agent: 'other' } }, { returnImmediately: false })),
  'a stream over A2A': (id) => message('SubscribeToTask', { id }),
};

/** A packet that asks a question. */
async function asking(service: TestService, key?: string): Promise<string> {
  const { id } = await createPacket(service, {}, key);
  const by = key === undefined ? {} : { key };
  await callTool(service, 'claim', { packet_id: id }, by);
  await callTool(service, 'ask_human', { packet_id: id, question: 'Refund?', wait_seconds: 0 }, by);
  return id;
}

const send = (address: string, key: string, { path, headers, body }: Waiting, signal?: AbortSignal): Promise<Response> =>
  fetch(address + path, {
    method: 'POST',
    headers: { ...headers, 'x-api-key': key },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });

/** The whole text of an answer, also of a stream. */
const textOf = async (answer: Promise<Response>) => (await answer).text();

for (const store of stores) {
  describe(`An agent that waits on ${store.name}`, () => {
    for (const [name, waitFor] of Object.entries(waits)) {
      test(`by ${name} counts towards the connection quota until it hangs up`, async () => {
        const service = await shareService(store, { SERVICE_CONNECTIONS_FREE: '1' });
        const { key } = await newTenant(service, { tier: 'free' });
        const address = await service.listen();
        const id = await asking(service, key);
        const hangUp = new AbortController();
        const first = send(address, key, waitFor(id), hangUp.signal).then((answer) => answer.text());
        first.catch(() => undefined);
        await waiting(service, 1);
        const refused = await textOf(send(address, key, tool('wait_for_packet', { packet_id: id, statuses: ['completed'] })));
        assert.match(refused, /all of its 1 connections open.*RATE_LIMITED/);
        hangUp.abort();
        await assert.rejects(first);
        await waiting(service, 0);
        const second = new AbortController();
        const again = send(address, key, waitFor(id), second.signal).then((answer) => answer.text());
        again.catch(() => undefined);
        await waiting(service, 1);
        second.abort();
        await waiting(service, 0);
      });

      test(`by ${name} is answered when its key is revoked`, async () => {
        const service = await shareService(store);
        const { key, keyId } = await newTenant(service);
        const address = await service.listen();
        const id = await asking(service, key);
        const text = textOf(send(address, key, waitFor(id)));
        await waiting(service, 1);
        assert.equal((await service.call('DELETE', `/keys/${keyId}`)).status, 204);
        await service.handoff.runOnce.recheck();
        // A claim that took nothing is an ordinary result.
        assert.match(await text, name.startsWith('claim_next') ? /No packet waits/ : /became invalid/);
        assert.equal(service.handoff.waiting(), 0);
        assert.equal((await send(address, key, waitFor(id))).status, 401);
      });
    }

    test('gets 413 for a message above the limit of its tier, by MCP and by A2A', async () => {
      const service = await shareService(store);
      const { key } = await newTenant(service, { tier: 'free' });
      const address = await service.listen();
      const text = 'x'.repeat(65_536);
      const large = [tool('hand_over', { target_agent: 'a', summary: text }), message('SendMessage', messageOf(text))];
      for (const request of large) assert.equal((await send(address, key, request)).status, 413, request.path);
      assert.equal((await service.call('GET', '/packets', { key })).body.total, 0);
    });
  });
}

for (const store of storesOfSeveral) {
  test(`An agent that waits on ${store.name} is answered before its service stops, and goes on at the next, by every way`, async (t) => {
    const first = await startService(t, { store });
    const address = await first.handoff.start();
    // An agent of another tenant takes none of the packets.
    const agents = [];
    for (const [name, waitFor] of Object.entries(waits)) {
      const { key } = await newTenant(first);
      const id = await asking(first, key);
      agents.push({ name, id, key, request: waitFor(id) });
    }
    const texts = agents.map(({ key, request }) => textOf(send(address, key, request)));
    await waiting(first, agents.length);
    await first.handoff.stop();
    for (const text of await Promise.all(texts)) assert.doesNotMatch(text, /SERVER_ERROR|isError/);

    const second = await startService(t, { store, databaseUrl: first.databaseUrl, clock: first.clock });
    for (const { name, id, key } of agents) {
      const { structuredContent } = await callTool(second, 'get_answer', { packet_id: id, wait_seconds: 0 }, { key });
      assert.deepEqual([structuredContent.answered, structuredContent.status], [false, 'awaiting_human'], `${name} took or lost nothing`);
    }
    const nextAddress = await second.handoff.start();
    const again = agents.map(({ key, request }) => textOf(send(nextAddress, key, request)));
    await waiting(second, agents.length);
    const asked = agents.findIndex(({ name }) => name.startsWith('get_answer'));
    const { id, key } = agents[asked]!;
    await second.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' }, key });
    assert.match(await again[asked]!, /"response":"Yes"/);
    await second.handoff.stop();
    await Promise.allSettled(again);
  });
}
