import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { claimant, happenings, packetIn } from '../../support/life.ts';
import { createPacket, packetRequest, type TestAnswer, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const get = (service: TestService, id: string, headers: Record<string, string> = {}) => service.call('GET', `/packets/${id}`, { headers });

/** The operations with `If-Match`: the status of the packet in which each succeeds, and its status code. */
const operations = [
  { name: 'PATCH', method: 'PATCH', tail: '', from: 'created', body: { context: { summary: 'Found.' } }, success: 200 },
  { name: 'claim', method: 'POST', tail: '/claim', from: 'created', body: claimant, success: 200 },
  {
    name: 'respond',
    method: 'POST',
    tail: '/respond',
    from: 'awaiting_human',
    body: { response: 'Yes', responded_by: 'dana' },
    success: 200,
  },
  { name: 'DELETE', method: 'DELETE', tail: '', from: 'created', body: undefined, success: 204 },
  { name: 'hard DELETE', method: 'DELETE', tail: '?hard=true', from: 'created', body: undefined, success: 204 },
] as const;

type Operation = (typeof operations)[number];

const run = (service: TestService, { method, tail, body }: Operation, id: string, ifMatch: string): Promise<TestAnswer> =>
  service.call(method, `/packets/${id}${tail}`, { headers: { 'If-Match': ifMatch }, ...(body === undefined ? {} : { body }) });

for (const store of stores) {
  describe(`ETag on ${store.name}`, () => {
    test('is on every answer with a packet, and changes with the packet [H55]', async () => {
      const service = await shareService(store);
      const seen: (string | undefined)[] = [];
      const note = (answer: TestAnswer) => {
        assert.ok(answer.status < 300, answer.text);
        assert.equal(answer.headers.etag, `"${answer.body.revision}"`);
        seen.push(answer.headers.etag as string);
        return answer;
      };
      const { id } = note(
        await service.call('POST', '/packets', { body: packetRequest({ hitl: { required: true, reason: '', question: 'Q' } }) }),
      ).body;
      note(await get(service, id));
      note(await service.call('POST', `/packets/${id}/claim`, { body: claimant }));
      note(await service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human' } }));
      note(await service.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } }));
      note(await service.call('PATCH', `/packets/${id}`, { body: {} }));
      note(await get(service, id));
      assert.deepEqual(seen, ['"1"', '"1"', '"2"', '"3"', '"4"', '"4"', '"4"']);
      assert.equal((await service.call('POST', `/packets/${id}/chain`, { body: packetRequest() })).headers.etag, '"1"');
    });
  });

  describe(`If-Match on ${store.name}`, () => {
    for (const operation of operations) {
      const { name, from, success } = operation;

      test(`${name}: 412 with a stale or weak tag, and nothing changes; succeeds with the current one, or with * [H55, H268]`, async () => {
        const service = await shareService(store);
        const [{ id }, { id: other }] = [await packetIn(service, from), await packetIn(service, from)];
        await service.call('PATCH', `/packets/${id}`, { body: { context: { summary: 'Someone was here.' } } });
        const { body: before, headers } = await get(service, id);
        const tag = String(headers.etag);
        const history = await happenings(service, id);
        for (const stale of ['"1"', `W/${tag}`]) {
          const answer = await run(service, operation, id, stale);
          assert.equal(answer.status, 412, stale);
          assert.deepEqual([answer.body.code, answer.body.field, answer.body.status_code], ['PRECONDITION_FAILED', null, 412]);
        }
        assert.deepEqual((await get(service, id)).body, before);
        assert.deepEqual(await happenings(service, id), history);
        assert.equal((await run(service, operation, id, tag)).status, success);
        assert.equal((await run(service, operation, other, '*')).status, success);
      });
    }

    test('a stale tag takes precedence over the state: 412 where it would be 409, 410 or 400 [H55]', async () => {
      const service = await shareService(store);
      const claimed = await packetIn(service, 'claimed');
      const expired = await packetIn(service, 'expired');
      const stale = { 'If-Match': '"1"' };
      assert.equal((await service.call('POST', `/packets/${claimed.id}/claim`, { body: claimant, headers: stale })).status, 412);
      assert.equal((await service.call('POST', `/packets/${expired.id}/claim`, { body: claimant, headers: stale })).status, 412);
      assert.equal((await service.call('DELETE', `/packets/${expired.id}`, { headers: stale })).status, 412);
      assert.equal((await service.call('PATCH', `/packets/${claimed.id}`, { body: { status: 'created' }, headers: stale })).status, 412);
    });

    test('of 30 concurrent changes with the same tag, one is 200 and 29 are 412', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service, { decisions: [] });
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, index) =>
          service.call('PATCH', `/packets/${id}`, {
            body: { decisions: [{ id: `d${index}`, decision: 'D', rationale: '' }] },
            headers: { 'If-Match': '"1"' },
          }),
        ),
      );
      const done = answers.filter(({ status }) => status === 200);
      assert.deepEqual([done.length, answers.filter(({ status }) => status === 412).length], [1, 29]);
      assert.deepEqual((await get(service, id)).body, done[0]!.body);
    });
  });

  describe(`If-None-Match on ${store.name}`, () => {
    test('304 without a body while the packet is unchanged, and 200 once it has changed [H55]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const same = await get(service, id, { 'If-None-Match': '"1"' });
      assert.equal(same.status, 304);
      assert.deepEqual([same.text, same.headers.etag], ['', '"1"']);
      await service.call('POST', `/packets/${id}/claim`, { body: claimant });
      const changed = await get(service, id, { 'If-None-Match': '"1"' });
      assert.equal(changed.status, 200);
      assert.deepEqual([changed.body.status, changed.headers.etag], ['claimed', '"2"']);
    });
  });
}
