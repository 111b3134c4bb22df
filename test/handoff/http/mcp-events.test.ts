import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { describe, test } from 'node:test';

import { claimant } from '../../support/life.ts';
import { callTool, mcp } from '../../support/mcp.ts';
import { type Reply, startReceiver, type TestReceiver } from '../../support/receiver.ts';
import { createPacket, newTenant, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores, storesOfSeveral } from '../../support/stores.ts';
import { repeat } from '../../support/until.ts';
import { shareHooked, startHooked } from '../../support/webhooks.ts';

// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers of every shape.
type Any = any;

/** The result of a method of the extension. */
async function events(service: Pick<TestService, 'call'>, method: string, params: object, options: object = {}): Promise<Any> {
  const { body, text } = await mcp(service, `events/${method}`, params as Record<string, unknown>, options);
  assert.notEqual(body?.result, undefined, text);
  return body.result;
}

/** The error of a method of the extension. */
async function fault(service: Pick<TestService, 'call'>, method: string, params: object, options: object = {}): Promise<Any> {
  const { body, text } = await mcp(service, `events/${method}`, params as Record<string, unknown>, options);
  assert.notEqual(body?.error, undefined, text);
  return body.error;
}

const poll = (service: Pick<TestService, 'call'>, name: string, args: object, more: object = {}, options: object = {}) =>
  events(service, 'poll', { name, arguments: args, ...more }, options);

/** A poll that starts from now, then one that sees what `work` does; returns the packets and texts that it got. */
async function during(service: TestService, name: string, args: object, work: () => Promise<unknown>): Promise<Any[]> {
  const { cursor } = await poll(service, name, args);
  await work();
  return (await poll(service, name, args, { cursor })).events;
}

const idsOf = (found: Any[]): string[] => found.map(({ data }) => data.packet_id);
const post = async (service: TestService, path: string, body: object = {}, headers: Record<string, string> = {}) => {
  const answer = await service.call('POST', path, { body, headers });
  assert.ok(answer.status < 300, answer.text);
  return answer.body;
};
const sweepAll = (service: TestService) => repeat(service.handoff.runOnce.sweep, (nextMs) => nextMs > 0);

for (const store of stores) {
  describe(`Events of MCP on ${store.name}`, () => {
    test('are advertised in both places that clients read, with the types and the ways that work [H748]', async () => {
      const service = await shareService(store);
      const { body } = await mcp(service, 'server/discover');
      const { capabilities } = body.result;
      assert.deepEqual(capabilities.events, {});
      assert.deepEqual(capabilities.extensions['io.modelcontextprotocol/events'], {});
      const { events: types } = await events(service, 'list', {});
      assert.deepEqual(
        types.map(({ name }: Any) => name),
        ['packet.waiting', 'question.answered', 'question.asked', 'packet.ended', 'packet.overdue'],
      );
      for (const { inputSchema, payloadSchema, description } of types) {
        assert.deepEqual([inputSchema.type, payloadSchema.type, typeof description], ['object', 'object', 'string']);
      }
      const legacy = await mcp(service, 'events/list', {}, { revision: '2025-11-25' });
      assert.equal(legacy.body.error.code, -32601);
    });

    test('a poll without a cursor begins now, and one with a cursor gets each event once', async () => {
      const service = await shareService(store);
      await createPacket(service, {}, service.key);
      const first = await poll(service, 'packet.waiting', { agent_id: 'resolver' });
      assert.deepEqual([first.events, first.truncated, first.hasMore, first.nextPollMs], [[], false, false, 5000]);
      const { id } = await createPacket(service, {}, service.key);
      const second = await poll(service, 'packet.waiting', { agent_id: 'resolver' }, { cursor: first.cursor });
      assert.deepEqual(idsOf(second.events), [id]);
      const again = await poll(service, 'packet.waiting', { agent_id: 'resolver' }, { cursor: first.cursor });
      assert.deepEqual(again.events[0].eventId, second.events[0].eventId);
      const third = await poll(service, 'packet.waiting', { agent_id: 'resolver' }, { cursor: second.cursor });
      assert.deepEqual(third.events, []);
    });

    test('packet.waiting: a packet that is created, released, freed of its not_before or due to start can be claimed by its agent', async () => {
      const service = await shareService(store);
      const args = { agent_id: 'resolver' };
      const made: string[] = [];
      assert.deepEqual(
        idsOf(
          await during(service, 'packet.waiting', args, async () => {
            const later = await createPacket(service, { not_before: '2026-03-01T09:40:00.000Z' });
            const released = await createPacket(service);
            await post(service, `/packets/${released.id}/claim`, claimant);
            await post(service, `/packets/${released.id}/release`, {}, { 'x-agent-id': 'resolver' });
            const freed = await createPacket(service, { not_before: '2026-03-01T09:31:00.000Z' });
            await service.call('PATCH', `/packets/${freed.id}`, { body: { not_before: null } });
            service.clock.turn(600);
            await sweepAll(service);
            made.push(released.id, released.id, freed.id, later.id);
          }),
        ),
        made,
      );
    });

    test('packet.waiting names the agent, and may name tags and priorities', async () => {
      const service = await shareService(store);
      const base = (await createPacket(service)).metadata;
      const wanted: string[] = [];
      const found = await during(
        service,
        'packet.waiting',
        { agent_id: 'resolver', tags: ['vip', 'x'], priorities: ['high'] },
        async () => {
          const metadata = { ...base, tags: ['vip'], priority: 'high' };
          for (const more of [{ tags: [] }, { priority: 'low' }, { target_agent: { id: 'other', name: 'other' } }, {}])
            wanted.push((await createPacket(service, { metadata: { ...metadata, ...more } })).id);
        },
      );
      assert.deepEqual(idsOf(found), [wanted.at(-1)]);
      assert.equal((await fault(service, 'poll', { name: 'packet.waiting', arguments: {} })).code, -32602);
    });

    test('a packet that was claimed since, and a question that was answered since, wake nobody [H749]', async () => {
      const service = await shareService(store);
      const waiting = await during(service, 'packet.waiting', { agent_id: 'resolver' }, async () => {
        const { id } = await createPacket(service);
        await post(service, `/packets/${id}/claim`, claimant);
      });
      assert.deepEqual(waiting, []);
      const asked = await during(service, 'question.asked', {}, async () => {
        const { id } = await createPacket(service);
        await callTool(service, 'ask_human', { packet_id: id, question: 'Refund?', wait_seconds: 0 });
        await post(service, `/packets/${id}/respond`, { response: 'Yes', responded_by: 'dana' });
      });
      assert.deepEqual(asked, []);
    });

    test('question.asked and question.answered have the question, for its responder and its asker [H750]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      const ask = async () => {
        await post(service, `/packets/${id}/claim`, claimant);
        await callTool(service, 'ask_human', { packet_id: id, question: 'Refund?', responder: 'Dana', wait_seconds: 0 });
      };
      const { cursor } = await poll(service, 'question.asked', {});
      const [asked] = await during(service, 'question.asked', { responder: 'dana' }, ask);
      assert.deepEqual([asked.data.packet_id, asked.data.question.question], [id, 'Refund?']);
      const others = [{ responder: 'erik' }, { group: 'dana' }];
      for (const args of others) assert.deepEqual((await poll(service, 'question.asked', args, { cursor })).events, []);
      const answer = () => post(service, `/packets/${id}/respond`, { response: 'Yes', responded_by: 'dana' });
      const [answered] = await during(service, 'question.answered', { packet_id: id, agent_id: 'resolver' }, answer);
      assert.deepEqual(answered.data.question.response, 'Yes');
      assert.deepEqual((await poll(service, 'question.answered', { agent_id: 'someone' }, { cursor })).events, []);
    });

    test('packet.ended and packet.overdue tell of the end of a packet and of its due_at', async () => {
      const service = await shareService(store);
      const { id, metadata } = await createPacket(service, { due_at: '2026-03-01T09:40:00.000Z' });
      const overdue = await during(service, 'packet.overdue', { agent_id: 'resolver' }, async () => {
        service.clock.turn(600);
        await sweepAll(service);
      });
      assert.deepEqual(idsOf(overdue), [id]);
      const ended = await during(service, 'packet.ended', { source_agent: metadata.source_agent.id, packet_id: id }, async () => {
        await post(service, `/packets/${id}/claim`, claimant);
        await callTool(service, 'complete', { packet_id: id });
      });
      assert.deepEqual([idsOf(ended), ended[0].data.status], [[id], 'completed']);
    });

    test('a payload is a summary and a brief of at most 4,000 characters', async () => {
      const service = await shareService(store);
      const context = { summary: 'Refund. '.repeat(1200), conversation_history: [{ role: 'user', content: 'x'.repeat(20_000) }] };
      const [event] = await during(service, 'packet.waiting', { agent_id: 'resolver' }, () => createPacket(service, { context }));
      assert.equal(event.data.summary.length, 1000);
      assert.ok(event.data.brief.length > 1000 && [...event.data.brief].length <= 4000, String(event.data.brief.length));
    });

    test('rights are judged when an event is sent, and another tenant sees nothing', async () => {
      const service = await shareService(store);
      const { cursor } = await poll(service, 'packet.waiting', { agent_id: 'resolver' });
      await createPacket(service);
      const own = { name: 'n', agents: ['other'], sees: 'own', queues: ['other'] };
      const { body, text } = await service.call('POST', '/keys', { body: own });
      assert.ok(body.key, text);
      const unseen = await poll(service, 'packet.waiting', { agent_id: 'resolver' }, { cursor }, { key: body.key, agent: null });
      assert.deepEqual(unseen.events, []);
      const other = await newTenant(service);
      assert.deepEqual((await poll(service, 'packet.waiting', { agent_id: 'resolver' }, { cursor: '0' }, { key: other.key })).events, []);
    });

    test('what can not be read any more is left out and said: a cursor ahead, one that retention has passed, and maxAgeMs [H751]', async () => {
      const service = await shareService(store);
      const args = { agent_id: 'resolver' };
      const { cursor } = await poll(service, 'packet.waiting', args);
      const ahead = await poll(service, 'packet.waiting', args, { cursor: String(Number(cursor) + 1000) });
      assert.deepEqual([ahead.truncated, ahead.cursor], [true, cursor]);
      assert.match((await fault(service, 'poll', { name: 'packet.waiting', arguments: args, cursor: 'mine' })).message, /cursor/);
      await createPacket(service);
      service.clock.turn(60);
      const { id } = await createPacket(service);
      const recent = await poll(service, 'packet.waiting', args, { cursor, maxAgeMs: 30_000 });
      assert.deepEqual([idsOf(recent.events), recent.truncated], [[id], true]);
    });

    test('a poll has at most as many events as it asks for, and says whether there are more', async () => {
      const service = await shareService(store);
      const args = { agent_id: 'resolver' };
      let { cursor } = await poll(service, 'packet.waiting', args);
      const ids = [];
      for (let count = 0; count < 5; count += 1) ids.push((await createPacket(service)).id);
      const found: string[] = [];
      for (const more of [true, true, false]) {
        const answer = await poll(service, 'packet.waiting', args, { cursor, maxEvents: 2 });
        assert.equal(answer.hasMore, more);
        found.push(...idsOf(answer.events));
        cursor = answer.cursor;
      }
      assert.deepEqual(found, ids);
    });

    test('an unknown type and wrong arguments are refused with the codes of the extension', async () => {
      const service = await shareService(store);
      const unknown = await fault(service, 'poll', { name: 'packet.born' });
      assert.deepEqual([unknown.code, unknown.data.kind], [-32011, 'event']);
      for (const [params, about] of [
        [{ name: 'packet.ended', arguments: { agent: 'x' } }, /agent/],
        [{ name: 'packet.ended', arguments: [] }, /arguments/],
        [{ name: 'packet.ended', cursor: 7 }, /cursor/],
        [{ name: 'packet.ended', maxEvents: 0 }, /maxEvents/],
        [{ name: 'packet.ended', maxAgeMs: 'x' }, /maxAgeMs/],
      ] as const) {
        const { code, message } = await fault(service, 'poll', params);
        assert.equal(code, -32602, message);
        assert.match(message, about);
      }
    });
  });
}

/** A secret of a client, as Standard Webhooks has it. */
const secretOf = (byte: number): string => `whsec_${Buffer.alloc(32, byte).toString('base64')}`;
const secret = secretOf(1);

/** Answers challenges, and events with the replies in order; the last is repeated. */
const client =
  (...replies: number[]): Reply =>
  (response, { body }) => {
    const { challenge } = JSON.parse(body);
    if (challenge !== undefined) response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ challenge }));
    else response.writeHead((replies.length > 1 ? replies.shift() : replies[0]) ?? 204).end();
  };

interface Subscribing {
  readonly name?: string;
  readonly args?: object;
  readonly url: string;
  readonly more?: object;
  readonly secret?: string;
  readonly key?: string;
}

const params = ({ name = 'packet.waiting', args = { agent_id: 'resolver' }, url, more = {}, secret: own = secret }: Subscribing) => ({
  ...{ name, arguments: args, delivery: { mode: 'webhook', url, secret: own } },
  ...more,
});
const withKey = ({ key }: Subscribing) => (key === undefined ? {} : { key });
const subscribe = (service: TestService, given: Subscribing) => events(service, 'subscribe', params(given), withKey(given));

/** Queues and sends what subscriptions get. */
async function sendAll(service: TestService): Promise<void> {
  await service.handoff.runOnce.follow();
  await service.handoff.runOnce.deliver();
}

/** The events that a receiver got, with their headers. */
const eventsAt = ({ posts }: TestReceiver): { event: Any; headers: Any; body: string }[] =>
  posts.flatMap(({ body, headers }) => {
    const event = JSON.parse(body);
    return event.type === undefined ? [{ event, headers, body }] : [];
  });

/** Whether a message is signed with the secret, as Standard Webhooks has it. */
function isSigned({ headers, body }: { headers: Any; body: string }, by: string): boolean {
  const key = Buffer.from(by.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`).digest('base64');
  return headers['webhook-signature'].split(' ').includes(`v1,${signature}`);
}

for (const store of stores) {
  describe(`Subscriptions to events of MCP on ${store.name}`, () => {
    test('ask the callback, then send it each event once, signed with the secret of the client [H752]', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const { url } = receiver;
      const { id, refreshBefore, cursor, truncated } = await subscribe(service, { url });
      assert.match(id, /^sub_[0-9a-f]{32}$/);
      assert.deepEqual([refreshBefore, truncated], ['2026-03-01T10:30:00.000Z', false]);
      const [challenge] = receiver.posts;
      assert.match(challenge!.headers['webhook-id'] as string, /^msg_verification_/);
      assert.deepEqual([challenge!.headers['x-mcp-subscription-id'], isSigned(challenge!, secret)], [id, true]);
      const packet = await createPacket(service);
      await sendAll(service);
      await sendAll(service);
      const [sent, ...more] = eventsAt(receiver);
      assert.deepEqual(more, []);
      const { event, headers } = sent!;
      assert.deepEqual([event.name, event.data.packet_id, event.data.summary], ['packet.waiting', packet.id, packet.context.summary]);
      assert.deepEqual([headers['webhook-id'], headers['x-mcp-subscription-id'], isSigned(sent!, secret)], [event.eventId, id, true]);
      assert.equal(headers['content-type'].split(';')[0], 'application/json');
      const polled = await poll(service, 'packet.waiting', { agent_id: 'resolver' }, { cursor });
      assert.equal(polled.events[0].eventId, event.eventId);
      assert.deepEqual((await poll(service, 'packet.waiting', { agent_id: 'resolver' }, { cursor: event.cursor })).events, []);
      assert.equal((await service.call('GET', '/hooks')).body.length, 0, 'it is no webhook of the list');
    });

    test('the id follows from the caller, the address, the type and the arguments, and the same is refreshed', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const { url } = receiver;
      const args = { agent_id: 'resolver', tags: ['a'] };
      const first = await subscribe(service, { url, args });
      const again = await subscribe(service, { url, args: { tags: ['a'], agent_id: 'resolver' } });
      assert.equal(again.id, first.id);
      const others = [{ args: { agent_id: 'other' } }, { name: 'packet.ended', args: {} }, { args, url: `${url}?2` }];
      const ids = [];
      for (const other of others) ids.push((await subscribe(service, { url, ...other })).id);
      assert.equal(new Set([first.id, ...ids]).size, 4);
      assert.equal(receiver.posts.length, 2, 'an address is asked once');
      await Promise.all(Array.from({ length: 3 }, () => subscribe(service, { url, args: { agent_id: 'same' } })));
      await createPacket(service, { metadata: { ...(await createPacket(service)).metadata, target_agent: { id: 'same', name: 'x' } } });
      await sendAll(service);
      assert.equal(eventsAt(receiver).length, 1);
    });

    test('a callback that does not answer the challenge gets nothing [H753]', async (t) => {
      const service = await shareHooked(t, store);
      const closed = await startReceiver(t);
      await closed.close();
      const wrong: Reply = (response) => void response.writeHead(200).end('{"challenge":"guessed"}');
      for (const [reply, reason] of [
        [204, 'challenge_failed'],
        [wrong, 'challenge_failed'],
        [404, 'http_4xx'],
        [500, 'http_5xx'],
        [undefined, 'connection_refused'],
      ] as const) {
        const receiver = reply === undefined ? closed : await startReceiver(t, reply);
        const { code, data } = await fault(service, 'subscribe', params({ url: receiver.url }));
        assert.deepEqual([code, data.reason], [-32015, reason]);
        await createPacket(service);
        await sendAll(service);
        assert.deepEqual(eventsAt(receiver), []);
      }
    });

    test('what is no address, secret or way of delivery is refused with the codes of the extension', async (t) => {
      const service = await shareHooked(t, store);
      const url = 'https://127.0.0.1/hook';
      const delivery = { mode: 'webhook', url, secret };
      for (const [more, code, about] of [
        [{ delivery: { ...delivery, url: 'http://example.com/' } }, -32602, /delivery\.url/],
        [{ delivery: { ...delivery, url: 'https://a:b@127.0.0.1/' } }, -32602, /delivery\.url/],
        [{ delivery: { ...delivery, url: 'https://10.0.0.1/' } }, -32602, /not public/],
        [{ delivery: { ...delivery, secret: 'a-secret-for-tests-0123456789' } }, -32602, /secret/],
        [{ delivery: { ...delivery, secret: 'whsec_AAAA' } }, -32602, /secret/],
        [{ delivery: { mode: 'webhook', url } }, -32602, /secret/],
        [{ delivery: { ...delivery, mode: 'push' } }, -32014, /mode/],
        [{ ttlMs: 'x' }, -32602, /ttlMs/],
        [{ name: 'packet.born' }, -32011, /event type/],
      ] as const) {
        const { code: given, message } = await fault(service, 'subscribe', params({ url, more }));
        assert.deepEqual([given, about.test(message)], [code, true], message);
      }
    });

    test('last an hour, a minute to a day if the client says so, and end if they are not refreshed [H754]', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const { url } = receiver;
      for (const [ttlMs, end] of [
        [1, '2026-03-01T09:31:00.000Z'],
        [600_000, '2026-03-01T09:40:00.000Z'],
        [null, '2026-03-02T09:30:00.000Z'],
        [120_000, '2026-03-01T09:32:00.000Z'],
      ] as const)
        assert.equal((await subscribe(service, { url, more: { ttlMs } })).refreshBefore, end);
      service.clock.turn(119);
      await createPacket(service);
      await sendAll(service);
      assert.equal(eventsAt(receiver).length, 1);
      await createPacket(service);
      await service.handoff.runOnce.follow();
      service.clock.turn(1);
      await service.handoff.runOnce.deliver();
      await createPacket(service);
      await sendAll(service);
      assert.equal(eventsAt(receiver).length, 1);
      const { code, data } = await fault(service, 'unsubscribe', params({ url }));
      assert.deepEqual([code, data.kind], [-32011, 'subscription']);
    });

    test('a refresh may change the secret, and both sign for a while', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const { url } = receiver;
      await subscribe(service, { url, more: { ttlMs: null } });
      await subscribe(service, { url, secret: secretOf(2), more: { ttlMs: null } });
      await createPacket(service);
      await sendAll(service);
      const [sent] = eventsAt(receiver);
      assert.deepEqual([isSigned(sent!, secret), isSigned(sent!, secretOf(2))], [true, true]);
    });

    test('a receiver that was down for an hour gets what it missed, and cursors never pass what is pending [H755]', async (t) => {
      const service = await shareHooked(t, store);
      let isDown = true;
      const reply: Reply = (response, post, request) => {
        if (isDown && JSON.parse(post.body).challenge === undefined) response.writeHead(503).end();
        else (client() as Exclude<Reply, number>)(response, post, request);
      };
      const receiver = await startReceiver(t, reply);
      const { url } = receiver;
      const { cursor } = await subscribe(service, { url, more: { ttlMs: null } });
      const ids: string[] = [];
      for (let minute = 0; minute < 60; minute += 10) {
        ids.push((await createPacket(service)).id);
        await sendAll(service);
        service.clock.turn(600);
      }
      const kept = (await subscribe(service, { url, more: { ttlMs: null, cursor } })).cursor;
      const missed = await poll(service, 'packet.waiting', { agent_id: 'resolver' }, { cursor: kept });
      assert.deepEqual(idsOf(missed.events), ids, 'nothing was delivered yet');
      isDown = false;
      receiver.posts.length = 0;
      for (let round = 0; round < 12; round += 1) {
        service.clock.turn(3600);
        await sendAll(service);
      }
      const got = eventsAt(receiver);
      assert.deepEqual(new Set(idsOf(got.map(({ event }) => event))), new Set(ids));
      assert.equal(got.length, ids.length);
    });

    test('belong to the origin of the key: a rotation keeps them, and its revocation ends them', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const { url } = receiver;
      const { body: key } = await service.call('POST', '/keys', { body: { name: 'assistant', scopes: ['read', 'work'] } });
      const { id } = await subscribe(service, { url, key: key.key, more: { ttlMs: null } });
      const { body: next, text } = await service.call('POST', `/keys/${key.id}/rotate`, { body: { overlap_seconds: 0 } });
      assert.ok(next.key, text);
      service.clock.turn(60);
      await createPacket(service);
      await sendAll(service);
      assert.equal(eventsAt(receiver).length, 1);
      assert.equal((await subscribe(service, { url, key: next.key, more: { ttlMs: null } })).id, id);
      await service.call('DELETE', `/keys/${next.id}`);
      await createPacket(service);
      await sendAll(service);
      assert.equal(eventsAt(receiver).length, 1);
    });

    test('rights are judged when an event is sent: a packet that the key does not see is not', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const own = { name: 'n', agents: ['other'], sees: 'own', queues: ['other'] };
      const { body: key } = await service.call('POST', '/keys', { body: own });
      const given = params({ url: receiver.url });
      await events(service, 'subscribe', given, { key: key.key, agent: null });
      await createPacket(service);
      await sendAll(service);
      assert.deepEqual(eventsAt(receiver), []);
    });

    test('unsubscribing ends them at once, for their caller only', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const given = params({ url: receiver.url });
      await subscribe(service, { url: receiver.url });
      const other = await newTenant(service);
      assert.equal((await fault(service, 'unsubscribe', given, { key: other.key })).code, -32011);
      await createPacket(service);
      await service.handoff.runOnce.follow();
      await events(service, 'unsubscribe', given);
      await sendAll(service);
      assert.deepEqual(eventsAt(receiver), []);
      assert.equal((await fault(service, 'unsubscribe', given)).code, -32011);
      assert.match((await subscribe(service, { url: receiver.url })).id, /^sub_/);
    });

    test('a cursor has them begin earlier', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const { cursor } = await poll(service, 'packet.waiting', { agent_id: 'resolver' });
      const { id } = await createPacket(service);
      await subscribe(service, { url: receiver.url, more: { cursor } });
      await sendAll(service);
      assert.deepEqual(idsOf(eventsAt(receiver).map(({ event }) => event)), [id]);
    });

    test('410 and 413 end a delivery and no subscription [H756]', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client(410, 413, 204));
      await subscribe(service, { url: receiver.url, more: { ttlMs: null } });
      for (let count = 0; count < 3; count += 1) {
        await createPacket(service);
        await sendAll(service);
        service.clock.turn(3600);
        await sendAll(service);
      }
      assert.equal(eventsAt(receiver).length, 3);
    });

    test('a tenant has at most 100', async (t) => {
      const service = await shareHooked(t, store);
      const receiver = await startReceiver(t, client());
      const given = (index: number) => ({ url: receiver.url, args: { agent_id: `agent ${index}` } });
      for (let index = 0; index < 100; index += 1) await subscribe(service, given(index));
      const { code, data } = await fault(service, 'subscribe', params(given(100)));
      assert.deepEqual([code, data.limit, data.max], [-32013, 'subscriptions', 100]);
      await subscribe(service, given(7));
    });
  });
}

for (const store of storesOfSeveral) {
  test(`A subscription goes on after a restart, with what came before it was queued, on ${store.name}`, async (t) => {
    const first = await startHooked(t, { store });
    const receiver = await startReceiver(t, client());
    await subscribe(first, { url: receiver.url });
    const { id } = await createPacket(first);
    await first.handoff.stop();
    const second = await startHooked(t, { databaseUrl: first.databaseUrl, clock: first.clock });
    await sendAll(second);
    assert.deepEqual(idsOf(eventsAt(receiver).map(({ event }) => event)), [id]);
  });

  test(`Two instances queue each event of a subscription once, on ${store.name}`, async (t) => {
    const service = await startHooked(t, { store });
    const second = await startHooked(t, { store, databaseUrl: service.databaseUrl, clock: service.clock });
    const receiver = await startReceiver(t, client());
    await subscribe(service, { url: receiver.url });
    const ids = [];
    for (let count = 0; count < 5; count += 1) ids.push((await createPacket(service)).id);
    await Promise.all([service, second, service, second].map(({ handoff }) => handoff.runOnce.follow()));
    await sendAll(second);
    await sendAll(service);
    assert.deepEqual(idsOf(eventsAt(receiver).map(({ event }) => event)).toSorted(), ids.toSorted());
  });
}
