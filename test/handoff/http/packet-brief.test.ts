import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { question } from '../../support/life.ts';
import { createPacket, packetRequest, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

/** A chain of packets; returns their ids, the root first. */
async function chain(service: TestService, length: number): Promise<string[]> {
  const chained: string[] = [(await createPacket(service, { context: { summary: 'Step 0.' } })).id];
  while (chained.length < length) {
    const body = { ...packetRequest(), context: { summary: `Step ${chained.length}.` } };
    const answer = await service.call('POST', `/packets/${chained.at(-1)}/chain`, { body });
    assert.equal(answer.status, 201, answer.text);
    chained.push(answer.body.id);
  }
  return chained;
}

for (const store of stores) {
  describe(`GET /packets/{id}/brief on ${store.name}`, () => {
    test('200: the packet and its ancestors, the newest first, and the open question', async () => {
      const service = await shareService(store);
      const [root, middle, leaf] = await chain(service, 3);
      await service.call('PATCH', `/packets/${leaf}`, { body: { status: 'awaiting_human', hitl: question } });
      const { status, body, text } = await service.call('GET', `/packets/${leaf}/brief`);
      assert.equal(status, 200, text);
      assert.equal(body.packet_id, leaf);
      const summaries = body.sections.filter(({ kind }: { kind: string }) => kind === 'summary');
      assert.deepEqual(
        summaries.map(({ packet_id, text: one }: Record<string, string>) => [packet_id, one]),
        [
          [leaf, 'Step 2.'],
          [middle, 'Step 1.'],
          [root, 'Step 0.'],
        ],
      );
      assert.equal(body.sections[1].kind, 'question');
      assert.match(body.sections[1].text, /^Refund 59\.90\?/);
      assert.deepEqual(body.omitted, []);
    });

    test('depth limits the ancestors; those beyond it are one entry of omitted [H14]', async () => {
      const service = await shareService(store);
      const ids = await chain(service, 4);
      const { body } = await service.call('GET', `/packets/${ids[3]}/brief?depth=1`);
      assert.deepEqual(new Set(body.sections.map(({ packet_id }: { packet_id: string }) => packet_id)), new Set([ids[3], ids[2]]));
      assert.deepEqual(body.omitted, [{ packet_id: ids[1], kind: 'ancestors', count: 1, href: `/api/v1/packets/${ids[1]}` }]);
    });

    test('a permanently deleted ancestor ends the list of ancestors and is listed in omitted [H14]', async () => {
      const service = await shareService(store);
      const ids = await chain(service, 3);
      assert.equal((await service.call('DELETE', `/packets/${ids[1]}?hard=true`)).status, 204);
      const { body } = await service.call('GET', `/packets/${ids[2]}/brief`);
      assert.deepEqual(
        body.omitted.map(({ packet_id, kind }: Record<string, string>) => [packet_id, kind]),
        [[ids[1], 'ancestors']],
      );
    });

    test('format=markdown is one text, no longer than max_chars', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { context: { summary: 'word '.repeat(2000) } });
      const answer = await service.call('GET', `/packets/${id}/brief?format=markdown&max_chars=300`);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers['content-type'], 'text/markdown; charset=utf-8');
      assert.ok(answer.text.length <= 300 && answer.text.length > 200, String(answer.text.length));
      assert.ok(answer.text.startsWith(`## Packet ${id}\n\n### Summary\n\n> word`));
    });
  });
}

describe('GET /packets/{id}/brief', () => {
  for (const [query, field] of [
    ['max_chars=199', 'max_chars'],
    ['max_chars=100001', 'max_chars'],
    ['depth=51', 'depth'],
    ['depth=-1', 'depth'],
    ['format=html', 'format'],
    ['max=1', 'max'],
  ]) {
    test(`400 for ${query}, naming ${field}`, async () => {
      const service = await shareService(stores[0]!);
      const { id } = await createPacket(service);
      const answer = await service.call('GET', `/packets/${id}/brief?${query}`);
      assert.equal(answer.status, 400, answer.text);
      assert.equal(answer.body.field, field);
    });
  }
});
