import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { newTenant, packetRequest, startService, type TestService } from '../../support/service.ts';
import { stores } from '../../support/stores.ts';

/** Stores packets of a summary, a batch at a time. */
async function fill(service: TestService, key: string, count: number, summary: string): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const answer = await service.call('POST', '/packets', { key, body: packetRequest({ context: { summary } }) });
    assert.equal(answer.status, 201, answer.text.slice(0, 200));
  }
}

for (const store of stores) {
  describe(`One tenant beside another on ${store.name}`, () => {
    test('searches and long lists are answered in turns: those of one tenant wait for a few of another at most', async (t) => {
      const service = await startService(t, { store });
      const hostile = await newTenant(service);
      const victim = await newTenant(service);
      await fill(service, hostile.key, 5, 'a '.repeat(31_500));
      await fill(service, victim.key, 1, 'charged twice');
      const answered: string[] = [];
      const ask = (path: string, name: string, key: string) =>
        service.call('GET', path, { key }).then(({ status, text }) => {
          assert.equal(status, 200, text.slice(0, 200));
          answered.push(name);
        });
      const q = encodeURIComponent('a '.repeat(32));
      const attack = Array.from({ length: 40 }, () => ask(`/packets/search?q=${q}`, 'hostile', hostile.key));
      const lists = Array.from({ length: 20 }, () => ask('/packets?tags=x&source_agent=a', 'hostile', hostile.key));
      await Promise.all([
        ask('/packets/search?q=charged', 'search', victim.key),
        ask('/packets?tags=x&source_agent=a', 'list', victim.key),
      ]);
      // In the order in which they came, all sixty would.
      assert.ok(answered.length <= 40, `${answered.length} answers came first`);
      await Promise.all([...attack, ...lists]);
    });

    test('what is searched for nobody is not begun: those who hang up while they wait cost nothing', async (t) => {
      const service = await startService(t, { store });
      const address = await service.handoff.start();
      const { key } = await newTenant(service);
      await fill(service, key, 3, 'a '.repeat(1000));
      const gone = new AbortController();
      const ask = (signal?: AbortSignal) =>
        fetch(`${address}/api/v1/packets/search?q=a`, { headers: { 'x-api-key': key }, ...(signal === undefined ? {} : { signal }) });
      const attack = Array.from({ length: 30 }, () => ask(gone.signal).catch(() => undefined));
      await new Promise(setImmediate);
      gone.abort();
      await Promise.all(attack);
      const answer = await ask();
      assert.equal(answer.status, 200);
      assert.equal(((await answer.json()) as { total: number }).total, 3);
    });
  });
}
