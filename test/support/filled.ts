import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';

import { eventId } from '../../src/handoff/rules/channels.ts';
import { defaultTenantId } from '../../src/handoff/service/keys.ts';
import { looking, type Row } from './consistency.ts';
import { packetIn, question } from './life.ts';
import { adminKey, createPacket, newTenant, packetRequest, type TestAnswer, type TestService } from './service.ts';
import { openEvents } from './streams.ts';
import { secret } from './webhooks.ts';

/** Settings of a service that `fill` fills. */
export const fillSettings = {
  SERVICE_PUBLIC_URL: 'https://baton.example.com',
  SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
  SERVICE_WEBHOOK_RETRY_SECONDS: '60,3600',
};

/** What `fill` made, and a request that was answered. */
export interface Filled {
  /** A key of a second tenant. */
  readonly key: string;
  /** A key that only reads. */
  readonly reader: string;
  /** A packet with a lease and the lease's token. */
  readonly leased: { readonly id: string; readonly token: string };
  /** The path of the page of an answer link. */
  readonly page: string;
  /** Paths that `answersTo` reads. */
  readonly paths: readonly string[];
  /** A request that was answered, with its idempotency key, and the answer. */
  readonly repeatable: { readonly body: unknown; readonly text: string };
}

export const repeatedKey = 'filled-1';

/**
 * Stores something of every kind: two tenants, restricted and rotated keys, packets in every status with leases, questions and
 * answer links, a chain, webhooks with deliveries, dead letters and bodies, a channel, idempotency answers, agents, a packet that
 * was deleted for good, and packets that are indexed, queued, or both.
 * @param unreachable the address of a receiver that refuses everything
 */
export async function fill(service: TestService, unreachable: string): Promise<Filled> {
  const must = async (status: number, ...request: Parameters<TestService['call']>): Promise<TestAnswer> => {
    const answer = await service.call(...request);
    assert.equal(answer.status, status, answer.text);
    return answer;
  };
  const { key, keyId } = await newTenant(service, { max_api_keys: 10 });
  await must(201, 'POST', `/keys/${keyId}/rotate`, { key, body: { overlap_seconds: 86_400 } });
  const reader = (await must(201, 'POST', '/keys', { body: { name: 'reader', scopes: ['read'], agents: ['resolver'] } })).body.key;
  const hook = (await must(201, 'POST', '/hooks', { body: { url: unreachable, secret } })).body;
  await must(200, 'PATCH', `/hooks/${hook.id}`, { body: { secret: `${secret}-new` } });

  const ids: string[] = [];
  const keep = (id: string) => {
    ids.push(id);
    return id;
  };
  for (const status of ['created', 'claimed', 'in_progress', 'completed', 'failed', 'expired'] as const)
    keep((await packetIn(service, status)).id);
  await createPacket(service, { context: { summary: 'Théirs: the badger 🦡\u2028 said "no"' } }, key);
  await service.handoff.runOnce.deliver();
  service.clock.turn(61);
  // The second attempts: dead letters.
  await service.handoff.runOnce.deliver();
  await service.handoff.runOnce.index();

  const body = packetRequest({ context: { summary: 'Once: the walrus' } });
  const first = await must(201, 'POST', '/packets', { body, headers: { 'Idempotency-Key': repeatedKey } });
  keep(first.body.id);
  const chained = await must(201, 'POST', `/packets/${first.body.id}/chain`, { body: packetRequest() });
  keep(chained.body.id);
  const leased = keep((await createPacket(service)).id);
  const claimed = await must(200, 'POST', `/packets/${leased}/claim`, { body: { agent_id: 'resolver', lease_seconds: 3600 } });
  const options = ['Approve', { value: 'refuse', label: 'Refuse it', style: 'danger' }];
  const asking = keep((await packetIn(service, 'awaiting_human', { hitl: { ...question, options } })).id);
  const link = await must(201, 'POST', `/packets/${asking}/answer-links`, { body: { responder: 'dana', expires_in: 86_400 } });
  // Indexed before, and changed since.
  await must(200, 'PATCH', `/packets/${ids[0]}`, { body: { context: { summary: 'Now: the heron' } } });
  const gone = (await createPacket(service)).id;
  await must(204, 'DELETE', `/packets/${gone}?hard=true`);
  await must(201, 'POST', '/channels', { body: { kind: 'slack', target: unreachable, name: 'desk', responder: 'dana' } });
  await must(200, 'GET', '/agents');

  return {
    key,
    reader,
    leased: { id: leased, token: claimed.body.lease.token },
    page: `/${new URL(link.body.url).pathname}`,
    repeatable: { body, text: first.text },
    paths: [
      '/packets?limit=200',
      '/packets/search?q=walrus',
      '/packets/search?q=heron',
      '/packets/search?q=refund',
      '/packets/awaiting',
      '/audit?limit=200',
      '/keys',
      '/tenants',
      '/hooks',
      `/hooks/${hook.id}/deliveries`,
      '/hooks/dlq',
      '/channels',
      '/agents',
      `/packets/${asking}/answer-links`,
      ...ids.flatMap((id) => [`/packets/${id}`, `/packets/${id}/history`]),
    ],
  };
}

/** The answers to all reads of what `fill` made, by both tenants: status, version and text by path. */
export async function answersTo(service: TestService, { paths, key }: Pick<Filled, 'paths' | 'key'>): Promise<Record<string, string>> {
  const answers: Record<string, string> = {};
  for (const path of paths) {
    for (const as of [adminKey, key]) {
      const { status, headers, text, body } = await service.call('GET', path, { key: as });
      // A refusal has the id of its request.
      const shown = status < 300 ? text : body.code;
      answers[`${as === key ? 'theirs' : 'ours'} ${path}`] = `${status} ${headers.etag ?? ''} ${shown}`;
    }
  }
  return answers;
}

/** Asserts that a service continues exactly where the one that was filled stopped. */
export async function continues(t: TestContext, service: TestService, before: Filled): Promise<void> {
  const { repeatable, leased, page, reader } = before;
  const repeated = await service.call('POST', '/packets', { body: repeatable.body, headers: { 'Idempotency-Key': repeatedKey } });
  assert.deepEqual([repeated.status, repeated.text], [201, repeatable.text]);
  const held = await service.call('POST', `/packets/${leased.id}/claim`, { body: { agent_id: 'other' } });
  assert.equal(held.status, 409);
  const token = { 'x-lease-token': leased.token };
  const done = await service.call('PATCH', `/packets/${leased.id}`, { body: { status: 'in_progress' }, headers: token });
  assert.equal(done.status, 200, done.text);
  assert.equal((await service.call('GET', page, { key: null })).status, 200);
  assert.equal((await service.call('POST', '/packets', { key: reader, body: packetRequest() })).status, 403);
  const address = await service.handoff.start();
  const counter = `select position from heads where tenant = 1`;
  const [{ position: last }] = (await looking(service.databaseUrl, ({ query }) => query(counter))) as [Row];
  const stream = await openEvents(address, `?last_event_id=${eventId(defaultTenantId, Number(last))}`, { 'x-api-key': adminKey });
  t.after(() => stream.close());
  const { id } = await createPacket(service);
  const events = await stream.events.take(2);
  assert.deepEqual(
    events.map(({ event, data }) => [event, data.packet_id]),
    [
      ['connected', undefined],
      ['packet.created', id],
    ],
  );
}
