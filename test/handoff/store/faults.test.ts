import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, describe, test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import { migrations } from '../../../src/handoff/store/migrations/index.ts';
import { nouns } from '../../../src/handoff/store/nouns.ts';
import { tablesOf } from '../../../src/kit/sql/shape.ts';
import { messageOf } from '../../support/a2a.ts';
import { bodies } from '../../support/bodies.ts';
import { type Contents, contentsOf, disagreements, type Inspector, inspect, orphans } from '../../support/consistency.ts';
import { type FaultKind, injectFault } from '../../support/faults.ts';
import { cookiesOf, publicUrl, dana as signedIn, signIn, signInSettings, startIssuer, type TestIssuer } from '../../support/issuer.ts';
import { claimant, packetIn, question } from '../../support/life.ts';
import { mcp } from '../../support/mcp.ts';
import { startReceiver } from '../../support/receiver.ts';
import { walksAll } from '../../support/runs.ts';
import {
  createPacket,
  newTenant,
  packetRequest,
  startService,
  type TestAnswer,
  TestClock,
  type TestService,
} from '../../support/service.ts';
import { endOfFile } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';
import { register } from '../../support/webhooks.ts';

/** A tenant of the service under test. */
interface Bench {
  readonly service: TestService;
  readonly inspector: Inspector;
  readonly issuer: TestIssuer;
  readonly tenant: { id: string; number: number; key: string };
  /** The address of its first webhook. */
  readonly hook: string;
  readonly call: (method: string, path: string, body?: unknown, headers?: Record<string, string>) => Promise<TestAnswer>;
}

type Act = () => Promise<Pick<TestAnswer, 'status' | 'text'>>;

/** Prepares what the operation needs, and returns the operation, or several that are started together. */
type Prepare = (bench: Bench) => Promise<Act | Act[]>;

/** A callback that answers challenges, for all tests of the file. */
let callback: ReturnType<typeof startReceiver> | undefined;

/** Calls a method of events of MCP for a subscription; a failure has the status that the API gives it. */
async function subscription({ service, tenant }: Bench, method: 'subscribe' | 'unsubscribe', name: string) {
  callback ??= startReceiver(endOfFile, (response, { body }) => void response.writeHead(200).end(body));
  const { url } = await callback;
  const secret = `whsec_${Buffer.alloc(32, 1).toString('base64')}`;
  const params = { name: 'packet.waiting', arguments: { agent_id: 'resolver' }, delivery: { url: `${url}?${name}`, secret } };
  const { status, body, text } = await mcp(service, `events/${method}`, params, { key: tenant.key });
  const statuses: Readonly<Record<string, number>> = { SERVER_ERROR: 500, SERVICE_UNAVAILABLE: 503 };
  return { status: body?.error === undefined ? status : (statuses[body.error.data?.code] ?? 409), text };
}

const freshKey = () => ({ 'idempotency-key': randomUUID() });
const agent = { agent_id: 'resolver' };
const onPacket =
  (status: Parameters<typeof packetIn>[1], method: string, tail: string, body?: unknown, headers?: () => Record<string, string>): Prepare =>
  async ({ service, tenant, call }) => {
    const { id } = await packetIn(service, status, {}, tenant.key);
    const given = headers?.();
    return () => call(method, `/packets/${id}${tail}`, body, given);
  };

async function several({ service, tenant }: Bench, count: number, changes = {}): Promise<string[]> {
  const ids = [];
  for (let index = 0; index < count; index += 1) ids.push((await createPacket(service, changes, tenant.key)).id);
  return ids;
}

/** A leased packet and the header with its token. */
async function leased({ service, tenant, call }: Bench) {
  const { id } = await createPacket(service, {}, tenant.key);
  const { body } = await call('POST', `/packets/${id}/claim`, { ...agent, lease_seconds: 60 });
  return { id, token: { 'x-lease-token': body.lease.token } };
}

const newHook = async ({ service, tenant }: Bench) => (await register(service, 'https://127.0.0.1:9/hook', {}, tenant.key)).id as string;

const slack = { kind: 'slack', target: 'https://127.0.0.1:9/hook' };

const push = { url: 'https://127.0.0.1:9/push', token: 'a-token-for-tests-0123456789' };

/** Sets a push notification configuration over A2A, under an id of its own unless it is given. */
const setPush = ({ call }: Bench, packet: string, id = randomUUID() as string) =>
  call('POST', `//a2a/tasks/${packet}/pushNotificationConfigs`, { ...push, id }, { 'a2a-version': '1.0' });

async function removeChannels({ call }: Bench): Promise<void> {
  for (const { id } of (await call('GET', '/channels')).body) await call('DELETE', `/channels/${id}`);
}

/** A new channel, in place of others when there are many. */
async function newChannel(bench: Bench, target = slack.target): Promise<string> {
  if ((await bench.call('GET', '/channels')).body.length > 15) await removeChannels(bench);
  return (await bench.call('POST', '/channels', { ...slack, target })).body.id;
}

/** A packet whose action a policy has approved, and the digest of its arguments. */
async function approvedIn({ call, service, tenant }: Bench): Promise<{ id: string; digest: string }> {
  const agent = randomUUID();
  const action = { tool: 'refund', arguments: {}, call_id: randomUUID() };
  const { key } = (await call('POST', '/keys', { name: 'agent', scopes: ['work', 'read'], agents: [agent] })).body;
  await call('PUT', '/policies/all', { rules: [{ then: { approve: 'all' } }] });
  const { body } = await service.call('POST', '/approvals', { body: { agent: { id: agent }, action }, key: key ?? tenant.key });
  return { id: body.id, digest: body.hitl.decision.arguments_digest };
}

/** Signs dana in to the tenant; the redirect to the console counts as an answer without content. */
async function signInTo({ service, issuer, tenant }: Bench): Promise<TestAnswer> {
  const answer = await signIn(service, issuer, { ...signedIn, tenant: tenant.id });
  return answer.status === 302 ? { ...answer, status: 204 } : answer;
}

/** A dead letter of a new webhook. */
async function deadLetter(bench: Bench): Promise<{ hook: string; id: string }> {
  const hook = await newHook(bench);
  const { body } = await bench.call('POST', `/hooks/${hook}/ping`);
  await bench.inspector.query(`update deliveries set status = 'dead_letter', due_at = null, attempts = 6 where id = '${body.id}'`);
  return { hook, id: body.id };
}

const operations: Record<string, Prepare> = {
  'create a packet': async ({ call }) => {
    const body = packetRequest({ hitl: question });
    return () => call('POST', '/packets', body);
  },
  'create a packet under an idempotency key': async ({ call }) => {
    const headers = freshKey();
    return () => call('POST', '/packets', packetRequest(), headers);
  },
  'chain a packet': onPacket('claimed', 'POST', '/chain', packetRequest()),
  'create a batch': async ({ call }) => {
    const headers = freshKey();
    return () => call('POST', '/packets/batch', { packets: [packetRequest(), packetRequest(), packetRequest()] }, headers);
  },
  'get a packet': onPacket('created', 'GET', ''),
  'list packets': async (bench) => () => bench.call('GET', '/packets?status=created&limit=3'),
  'search packets': async (bench) => {
    await several(bench, 1);
    return () => bench.call('GET', '/packets/search?q=refund');
  },
  'read the history': onPacket('claimed', 'GET', '/history'),
  'claim a packet': onPacket('created', 'POST', '/claim', claimant, freshKey),
  'claim with a lease': onPacket('created', 'POST', '/claim', { ...agent, lease_seconds: 60 }),
  'claim the next packet': async (bench) => {
    await several(bench, 1);
    const headers = freshKey();
    return () => bench.call('POST', '/packets/claim-next', agent, headers);
  },
  'patch the content': onPacket('claimed', 'PATCH', '', {
    metadata: { tags: ['one', 'two'], priority: 'low' },
    context: { summary: 'Different words' },
  }),
  'ask a person': onPacket('claimed', 'PATCH', '', { status: 'awaiting_human' }),
  'respond for a person': onPacket('awaiting_human', 'POST', '/respond', { response: 'Yes', responded_by: 'mia' }, freshKey),
  'respond to a question that excludes its source': async ({ service, tenant, call }) => {
    const { body: asker } = await service.call('POST', '/keys', { body: { name: 'asker', tenant_id: tenant.id } });
    const { id } = await packetIn(service, 'awaiting_human', { hitl: { ...question, exclude_source: true } }, asker.key);
    await service.call('DELETE', `/keys/${asker.id}`, { key: tenant.key });
    return () => call('POST', `/packets/${id}/respond`, { response: 'Yes', responded_by: 'mia' });
  },
  'make an answer link': onPacket('awaiting_human', 'POST', '/answer-links', {}),
  'revoke an answer link': async ({ service, tenant, call }) => {
    const { id } = await packetIn(service, 'awaiting_human', {}, tenant.key);
    const { body } = await call('POST', `/packets/${id}/answer-links`, {});
    return () => call('DELETE', `/answer-links/${body.id}`);
  },
  'answer by a link': async ({ service, tenant, call }) => {
    const { id } = await packetIn(service, 'awaiting_human', {}, tenant.key);
    const { body } = await call('POST', `/packets/${id}/answer-links`, { responder: 'mia' });
    service.clock.turn(2);
    const path = `/${new URL(body.url).pathname}`;
    const { hitl } = (await call('GET', `/packets/${id}`)).body;
    const raw = new URLSearchParams({ digest: hitl.digest, response: 'Yes' }).toString();
    return () => service.call('POST', path, { key: null, raw, headers: { 'content-type': 'application/x-www-form-urlencoded' } });
  },
  'complete a packet': onPacket('claimed', 'PATCH', '', { status: 'completed' }),
  'withdraw a question': onPacket('awaiting_human', 'DELETE', '/question'),
  'release a packet': onPacket('claimed', 'POST', '/release'),
  'delete a packet': onPacket('claimed', 'DELETE', ''),
  'delete a packet permanently': async (bench) => {
    const { body } = await bench.call('POST', '/packets', packetRequest(), freshKey());
    await bench.call('POST', `/packets/${body.id}/claim`, claimant);
    await setPush(bench, body.id);
    await bench.call('PATCH', `/packets/${body.id}`, { status: 'awaiting_human', hitl: question });
    await bench.call('POST', `/packets/${body.id}/answer-links`, {});
    return () => bench.call('DELETE', `/packets/${body.id}?hard=true`);
  },
  'ask for an erasure':
    async ({ call }) =>
    () =>
      call('POST', '/erasures', { subject: randomUUID(), reason: 'Request' }),
  'renew a lease': async (bench) => {
    const { id, token } = await leased(bench);
    return () => bench.call('POST', `/packets/${id}/lease`, {}, token);
  },
  'end a lease': async (bench) => {
    const { id, token } = await leased(bench);
    return () => bench.call('DELETE', `/packets/${id}/lease`, undefined, token);
  },
  'claim a batch': async (bench) => {
    const packet_ids = await several(bench, 3);
    return () => bench.call('POST', '/packets/batch/claim', { packet_ids, ...agent });
  },
  'complete a batch': async (bench) => {
    const packet_ids = await several(bench, 3);
    await bench.call('POST', '/packets/batch/claim', { packet_ids, ...agent });
    return () => bench.call('POST', '/packets/batch/complete', { packet_ids });
  },
  'register a webhook': async ({ call }) => {
    const headers = freshKey();
    return () => call('POST', '/hooks', { url: 'https://127.0.0.1:9/hook', secret: 'a-secret-for-tests-0123456789' }, headers);
  },
  'change a webhook': async (bench) => {
    const id = await newHook(bench);
    return () => bench.call('PATCH', `/hooks/${id}`, { active: false, secret: 'another-secret-0123456789' });
  },
  'remove a webhook': async (bench) => {
    const id = await newHook(bench);
    return () => bench.call('DELETE', `/hooks/${id}`);
  },
  'ping a webhook': async (bench) => {
    const id = await newHook(bench);
    return () => bench.call('POST', `/hooks/${id}/ping`);
  },
  'replay a dead letter': async (bench) => {
    const { id } = await deadLetter(bench);
    return () => bench.call('POST', `/hooks/dlq/${id}/replay`);
  },
  'retry all dead letters': async (bench) => {
    const { hook } = await deadLetter(bench);
    return () => bench.call('POST', '/hooks/dlq/retry-all', { webhook_id: hook, force: true });
  },
  'set a push configuration': async (bench) => {
    const { id } = await createPacket(bench.service, {}, bench.tenant.key);
    const config = randomUUID();
    return () => setPush(bench, id, config);
  },
  'replace a push configuration': async (bench) => {
    const { id } = await createPacket(bench.service, {}, bench.tenant.key);
    await setPush(bench, id, 'mine');
    return () => setPush(bench, id, 'mine');
  },
  'remove a push configuration': async (bench) => {
    const { id } = await createPacket(bench.service, {}, bench.tenant.key);
    await setPush(bench, id, 'mine');
    return () => bench.call('DELETE', `//a2a/tasks/${id}/pushNotificationConfigs/mine`, undefined, { 'a2a-version': '1.0' });
  },
  'subscribe to events': async (bench) => {
    const name = randomUUID();
    return () => subscription(bench, 'subscribe', name);
  },
  'refresh a subscription to events': async (bench) => {
    await subscription(bench, 'subscribe', 'mine');
    return () => subscription(bench, 'subscribe', 'mine');
  },
  'end a subscription to events': async (bench) => {
    const name = randomUUID();
    await subscription(bench, 'subscribe', name);
    return () => subscription(bench, 'unsubscribe', name);
  },
  'answer over A2A': async ({ service, tenant, call }) => {
    const { id } = await packetIn(service, 'awaiting_human', {}, tenant.key);
    const message = messageOf('Yes', { taskId: id });
    return () => call('POST', '//a2a/message:send', message, { 'a2a-version': '1.0' });
  },
  'create a channel': async ({ call }) => {
    const headers = freshKey();
    return () => call('POST', '/channels', slack, headers);
  },
  'change a channel': async (bench) => {
    const id = await newChannel(bench);
    return () => bench.call('PATCH', `/channels/${id}`, { name: randomUUID(), responder: 'dana' });
  },
  'remove a channel': async (bench) => {
    const id = await newChannel(bench);
    return () => bench.call('DELETE', `/channels/${id}`);
  },
  'ask, and tell a channel': async (bench) => {
    await removeChannels(bench);
    await newChannel(bench);
    const { id } = await createPacket(bench.service, { hitl: question }, bench.tenant.key);
    return () => bench.call('PATCH', `/packets/${id}`, { status: 'awaiting_human' });
  },
  'publish a contract': async ({ call }) => {
    const path = `/agents/${randomUUID()}/contract`;
    return () => call('PUT', path, { schema: { type: 'object' } });
  },
  'change a contract': async ({ call }) => {
    const path = `/agents/${randomUUID()}/contract`;
    await call('PUT', path, { schema: { type: 'object' } });
    return () => call('PUT', path, { schema: {} });
  },
  'remove a contract': async ({ call }) => {
    const path = `/agents/${randomUUID()}/contract`;
    await call('PUT', path, { schema: {} });
    return () => call('DELETE', path);
  },
  'write a schedule': async ({ call }) => {
    const path = `/schedules/${randomUUID()}`;
    return () => call('PUT', path, bodies.putSchedule);
  },
  'change a schedule': async ({ call }) => {
    const path = `/schedules/${randomUUID()}`;
    await call('PUT', path, bodies.putSchedule);
    return () => call('PUT', path, { ...bodies.putSchedule, active: false });
  },
  'remove a schedule': async ({ call }) => {
    const path = `/schedules/${randomUUID()}`;
    await call('PUT', path, bodies.putSchedule);
    return () => call('DELETE', path);
  },
  'ask about an action': async ({ call }) => {
    const body = { agent: { id: 'refunds' }, action: { tool: 'refund', arguments: {}, call_id: randomUUID() } };
    return () => call('POST', '/approvals', body);
  },
  'start an execution': async (bench) => {
    const { id, digest } = await approvedIn(bench);
    return () => bench.call('POST', `/packets/${id}/execution`, { arguments_digest: digest });
  },
  'end an execution': async (bench) => {
    const { id, digest } = await approvedIn(bench);
    await bench.call('POST', `/packets/${id}/execution`, { arguments_digest: digest });
    return () => bench.call('PATCH', `/packets/${id}/execution`, { status: 'succeeded', result: {} });
  },
  'publish a policy': async ({ call }) => {
    const path = `/policies/${randomUUID()}`;
    await call('PUT', path, { rules: [{ then: { reject: 'no' } }] });
    return () => call('PUT', path, { rules: [{ then: { reject: 'never' } }] });
  },
  'create a packet under a contract': async ({ call }) => {
    const id = randomUUID();
    await call('PUT', `/agents/${id}/contract`, { schema: { type: 'object' } });
    const body = packetRequest({ metadata: { source_agent: { id, name: id, framework: 'x' }, target_agent: { id, name: id } } });
    return () => call('POST', '/packets', body);
  },
  'create a key': async ({ call }) => {
    const headers = freshKey();
    return () => call('POST', '/keys', { name: 'another' }, headers);
  },
  'rotate a key': async ({ call }) => {
    const { body } = await call('POST', '/keys', { name: 'old' });
    return () => call('POST', `/keys/${body.id}/rotate`, { overlap_seconds: 60 });
  },
  'revoke a key': async ({ call }) => {
    const { body } = await call('POST', '/keys', { name: 'old' });
    return () => call('DELETE', `/keys/${body.id}`);
  },
  'revoke the last key of a person': async ({ call }) => {
    const { body } = await call('POST', '/keys', { name: 'old', responder: randomUUID() });
    return () => call('DELETE', `/keys/${body.id}`);
  },
  'suspend a person': async ({ call }) => {
    const name = randomUUID();
    return () => call('POST', `/people/${name}/suspend`);
  },
  'let a suspended person answer again': async ({ call }) => {
    const name = randomUUID();
    await call('POST', `/people/${name}/suspend`);
    return () => call('POST', `/people/${name}/resume`);
  },
  'sign in': async (bench) => {
    await signInTo(bench);
    return () => signInTo(bench);
  },
  'sign out': async (bench) => {
    const cookie = cookiesOf(await signInTo(bench));
    const headers = { cookie, origin: publicUrl, 'x-requested-with': 'baton' };
    return () => bench.service.call('POST', '//sign-out', { key: null, headers });
  },
  'create a tenant':
    async ({ service }) =>
    () =>
      service.call('POST', '/tenants', { body: { name: 'New' } }),
  'change a tenant':
    async ({ service, tenant }) =>
    () =>
      service.call('PATCH', `/tenants/${tenant.id}`, { body: { name: randomUUID() } }),
  'delete a tenant': async ({ service }) => {
    const { id } = await newTenant(service);
    return () => service.call('DELETE', `/tenants/${id}`);
  },
  'several at once': async (bench) => {
    const { call, tenant, service } = bench;
    const [first, second] = await several(bench, 2);
    const { id: third } = await packetIn(service, 'claimed', {}, tenant.key);
    const { body: key } = await call('POST', '/keys', { name: 'old' });
    const headers = freshKey();
    return [
      () => call('POST', '/packets', packetRequest(), headers),
      () => call('POST', `/packets/${first}/claim`, claimant),
      () => call('POST', '/packets', packetRequest({ hitl: question })),
      () => call('PATCH', `/packets/${third}`, { status: 'completed' }),
      () => call('DELETE', `/keys/${key.id}`),
      () => call('DELETE', `/packets/${second}`),
      () => call('POST', '/packets/claim-next', { ...agent, priorities: ['critical'] }),
    ];
  },
  'read the audit log': async (bench) => () => bench.call('GET', '/audit?limit=3'),
  'list agents': async (bench) => () => bench.call('GET', '/agents'),
};

/** What the database has of a tenant, with the keys and tenants that were made after it. */
async function snapshot({ inspector, tenant }: Bench): Promise<Contents> {
  const [contents, tenants, api_keys] = await Promise.all([
    contentsOf(inspector, tenant.number),
    inspector.query('select * from tenants where number >= $1 order by number', tenant.number),
    inspector.query('select * from api_keys where tenant_id in (select id from tenants where number >= $1) order by id', tenant.number),
  ]);
  return { ...contents, tenants, api_keys };
}

/** What an operation added: the number of rows by table, and to each counter. */
function added(before: Contents, now: Contents): Record<string, number> {
  const counts = (contents: Contents) => {
    const { counters = [], search_queue = [], search_index = [], deliveries = [], ...tables } = contents;
    const byStatus = [...Map.groupBy(deliveries, ({ status }) => `${status} deliveries`)];
    const rows = Object.entries(tables).map(([table, of]): [string, number] => [table, of.length]);
    // A packet may be indexed at any time.
    return [
      ...rows,
      ...byStatus.map(([name, of]) => [name, of.length]),
      ['findable', search_queue.length + search_index.length],
      ...counters.map(({ name, value }) => [name, Number(value)]),
    ];
  };
  const earlier = Object.fromEntries(counts(before));
  const difference = counts(now).map(([name, count]): [string, number] => [
    name as string,
    (count as number) - (earlier[name as string] ?? 0),
  ]);
  return Object.fromEntries(difference.filter(([, count]) => count !== 0));
}

async function openBench(
  { service, inspector, issuer }: Pick<Bench, 'service' | 'inspector' | 'issuer'>,
  hook = 'https://127.0.0.1:9/hook',
): Promise<Bench> {
  const { id } = await newTenant(service, { handoffs_per_day: 100_000, max_api_keys: 1000 });
  const { body: made } = await service.call('POST', '/keys', { body: { name: 'admin', tenant_id: id, admin: true } });
  const [row] = await inspector.query(`select number from tenants where id = '${id}'`);
  const { key } = made;
  await register(service, hook, {}, key);
  return {
    service,
    inspector,
    issuer,
    hook,
    tenant: { id, key, number: Number(row!.number) },
    call: (method, path, body, headers) =>
      service.call(method, path, { key, ...(body === undefined ? {} : { body }), headers: headers ?? {} }),
  };
}

interface Outcome {
  readonly statuses: readonly number[];
  readonly added: Record<string, number>;
  /** Its statements, in order. */
  readonly statements: readonly string[];
}

const together = (acts: readonly Act[]) => Promise.all(acts.map((act) => act()));
const withoutIndex = ({ search_queue: _, search_index: __, ...contents }: Contents): Contents => contents;

/** The number of a statement that fails, counted from 1, and how. */
interface Failing {
  readonly nth: number;
  readonly kind: FaultKind;
}

/** What the walks through all operations and jobs on a store have in common. */
class Walk {
  /** The kinds of writes that were made. */
  readonly made = new Set<string>();
  readonly #kinds: readonly FaultKind[];
  /** Whether a statement fails, by its number in the order in which they come. */
  readonly #isChosen: (came: number) => boolean;
  /** Statements with the writes before them, which have come. */
  readonly #came = new Set<string>();
  #failed = 0;

  constructor(kinds: readonly FaultKind[], isChosen: (came: number) => boolean) {
    this.#kinds = kinds;
    this.#isChosen = isChosen;
  }

  /**
   * The statements of an operation that fail in turn. What a failure undoes is what was written before it, so a statement after the
   * same writes fails in the first operation that has them only.
   */
  *faultsOf(statements: readonly string[]): Generator<Failing> {
    let writes = '';
    for (const [index, sql] of statements.entries()) {
      const isNew = !this.#came.has(writes + sql);
      this.#came.add(writes + sql);
      if (writesIn(sql).length > 0) writes += `${sql};`;
      if (!isNew || !this.#isChosen(this.#came.size)) continue;
      yield { nth: index + 1, kind: this.#kinds[this.#failed % this.#kinds.length]! };
      this.#failed += 1;
    }
  }
}

/** What the operation does without a fault. */
async function usualOutcome(bench: Bench, prepare: Prepare, { made }: Walk): Promise<Outcome> {
  const statements: string[] = [];
  const recorded = injectFault(Number.POSITIVE_INFINITY, { matching: (sql) => statements.push(sql) > 0 });
  try {
    const acts = [await prepare(bench)].flat();
    const before = await snapshot(bench);
    const first = statements.length;
    const answers = await together(acts);
    recorded.remove();
    for (const { status, text } of answers) assert.ok(status < 300, text);
    for (const sql of statements) for (const write of writesIn(sql)) made.add(write);
    const statuses = answers.map(({ status }) => status);
    return { statuses, added: added(before, await snapshot(bench)), statements: statements.slice(first) };
  } finally {
    recorded.remove();
  }
}

/**
 * Runs the operation with the `nth` statement failing. What answered with an error has changed nothing, and succeeds when
 * it is repeated; everything together then is as usual.
 */
async function runWithFault(bench: Bench, prepare: Prepare, { nth, kind }: Failing, usual: Outcome): Promise<void> {
  const acts = [await prepare(bench)].flat();
  const before = await snapshot(bench);
  const fault = injectFault(nth, { kind });
  const answers = await together(acts).finally(fault.remove);
  const about = `statement ${nth} of ${fault.statements()}, ${kind}: ${answers.map(({ status, text }) => `${status} ${text.slice(0, 100)}`).join('; ')}`;
  const failed = acts.filter((_, index) => answers[index]!.status !== usual.statuses[index]);
  for (const { status, text } of answers) {
    assert.ok(status < 300 || status === 503 || (status === 500 && kind === 'error'), about);
    assert.doesNotMatch(status < 300 ? '' : text, /inject|division|select .* from|insert into/i);
  }
  // After the commit, what fails is the reading of the answer; a repeated request then finds its change made.
  const isCommitted = nth - 1 > usual.statements.findLastIndex((sql) => /^commit/i.test(sql));
  if (failed.length === acts.length && !isCommitted) assert.deepEqual(withoutIndex(await snapshot(bench)), withoutIndex(before), about);
  for (const { status, text } of await together(failed)) assert.ok(status < 300, `${status} ${text} again after ${about}`);
  const now = await snapshot(bench);
  assert.deepEqual(added(before, now), usual.added, about);
  assert.deepEqual(disagreements(now), [], about);
}

/** Lets statements of an operation fail in turn. */
async function runWithFaults(newBench: () => Promise<Bench>, prepare: Prepare, walk: Walk): Promise<void> {
  let bench = await newBench();
  // The first run of an operation prepares statements and fills caches.
  await usualOutcome(bench, prepare, walk);
  const usual = await usualOutcome(bench, prepare, walk);
  let count = 0;
  for (const failing of walk.faultsOf(usual.statements)) {
    count += 1;
    // A new tenant has less to compare.
    if (count % 6 === 0) bench = await newBench();
    await runWithFault(bench, prepare, failing, usual);
  }
  assert.deepEqual(await orphans(bench.inspector), []);
}

/** A round of a job, as an operation: its failure is an answer. */
const round =
  (
    { service }: Bench,
    job: 'sweep' | 'schedule' | 'follow' | 'prune' | 'index' | 'deliver' | 'agents' | 'erase' | 'anchor',
    seconds: number,
  ): Act =>
  async () => {
    service.clock.turn(seconds);
    try {
      await service.handoff.runOnce[job]();
      return { status: 200, text: '' };
    } catch {
      return { status: 500, text: '' };
    }
  };

const day = 24 * 3600;

/** Rounds of jobs. What a round does in several transactions may be done in part, and the next round does the rest. */
const jobs: Record<string, Prepare> = {
  'end leases and time out questions': async (bench) => {
    const { service, tenant } = bench;
    await leased(bench);
    await packetIn(service, 'awaiting_human', { hitl: { ...question, timeout_seconds: 60, on_timeout: 'fail' } }, tenant.key);
    return round(bench, 'sweep', 61);
  },
  'remind of questions': async (bench) => {
    const { service, tenant } = bench;
    await packetIn(service, 'awaiting_human', { hitl: { ...question, remind_after_seconds: 60 } }, tenant.key);
    return round(bench, 'sweep', 61);
  },
  'index packets': async (bench) => {
    await several(bench, 2);
    return round(bench, 'index', 1);
  },
  'deliver events': async (bench) => {
    await several(bench, 2);
    return round(bench, 'deliver', 60);
  },
  'queue the events of a subscription': async (bench) => {
    const name = randomUUID();
    await subscription(bench, 'subscribe', name);
    await several(bench, 2);
    const act = round(bench, 'follow', 1);
    // The next case has no other.
    return async () => {
      const done = await act();
      if (done.status === 200) await subscription(bench, 'unsubscribe', name);
      return done;
    };
  },
  'run a schedule': async (bench) => {
    const path = `/schedules/${randomUUID()}`;
    const at = new Date(bench.service.clock.read().getTime() + 60_000);
    await bench.call('PUT', path, { ...bodies.putSchedule, timezone: 'UTC', cron: `${at.getUTCMinutes()} ${at.getUTCHours()} * * *` });
    const act = round(bench, 'schedule', 60);
    // The next case has no other.
    return async () => {
      const done = await act();
      if (done.status === 200) await bench.call('DELETE', path);
      return done;
    };
  },
  'disable the webhook of a receiver that is gone': async (bench) => {
    const { id } = await register(bench.service, bench.hook.replace(/hook$/, 'gone'), {}, bench.tenant.key);
    await bench.call('POST', `/hooks/${id}/ping`);
    return round(bench, 'deliver', 60);
  },
  'cancel deliveries of a removed webhook': async (bench) => {
    const id = await newHook(bench);
    await bench.call('POST', `/hooks/${id}/ping`);
    await bench.call('DELETE', `/hooks/${id}`);
    return round(bench, 'deliver', 60);
  },
  'drop a message to a channel that is over': async (bench) => {
    await removeChannels(bench);
    await newChannel(bench);
    const { id } = await packetIn(bench.service, 'awaiting_human', {}, bench.tenant.key);
    await bench.call('POST', `/packets/${id}/respond`, { response: 'Yes', responded_by: 'mia' });
    return round(bench, 'deliver', 60);
  },
  'record which agents were seen': async (bench) => {
    const { id } = await createPacket(bench.service, {}, bench.tenant.key);
    await bench.call('POST', `/packets/${id}/claim`, claimant);
    return round(bench, 'agents', 1);
  },
  'carry out an erasure': async (bench) => {
    const subject = randomUUID();
    const { service, tenant } = bench;
    const changes = { metadata: { ...createExample.metadata, tags: ['one'], subjects: [subject] } };
    await packetIn(service, 'awaiting_human', { ...changes, hitl: question }, tenant.key);
    await packetIn(service, 'completed', changes, tenant.key);
    await bench.call('POST', '/erasures', { subject, reason: 'Request' });
    return round(bench, 'erase', 1);
  },
  'erase what is kept long enough': async (bench) => {
    const { service, tenant } = bench;
    await service.call('PATCH', `/tenants/${tenant.id}`, { body: { retention_days: 1 } });
    await packetIn(service, 'completed', {}, tenant.key);
    return round(bench, 'erase', 2 * day);
  },
  'write heads to webhooks': async (bench) => {
    const { body: hooks } = await bench.call('GET', '/hooks');
    if (!hooks.some(({ events }: { events: string[] }) => events.includes('audit.head')))
      await register(bench.service, bench.hook, { events: ['audit.head'] }, bench.tenant.key);
    await several(bench, 1);
    return round(bench, 'anchor', 60);
  },
  'remove what is old': async (bench) => {
    const { body } = await bench.call('POST', '/packets', packetRequest(), freshKey());
    await bench.call('POST', `/packets/${body.id}/claim`, claimant);
    await bench.call('PATCH', `/packets/${body.id}`, { status: 'awaiting_human', hitl: question });
    await bench.call('POST', `/packets/${body.id}/answer-links`, {});
    await bench.call('DELETE', `/hooks/${await newHook(bench)}`);
    await signInTo(bench);
    await deadLetter(bench);
    await round(bench, 'agents', 1)();
    await round(bench, 'deliver', 60)();
    return round(bench, 'prune', 61 * day);
  },
};

/**
 * Without the counters of days and hours, since the clock moves, and without the position up to which stream events were removed,
 * since a failed round removes what its other steps can.
 */
const withoutTimes = (counts: Record<string, number>) =>
  Object.fromEntries(Object.entries(counts).filter(([name]) => !/^(created|hour):|^removed$/.test(name)));

/** Lets statements of a job fail in turn. After a later round, everything is as usual. */
async function runJobWithFaults(bench: Bench, prepare: Prepare, walk: Walk): Promise<void> {
  await usualOutcome(bench, prepare, walk);
  const usual = await usualOutcome(bench, prepare, walk);
  for (const { nth, kind } of walk.faultsOf(usual.statements)) {
    const [act] = [await prepare(bench)].flat();
    const before = await snapshot(bench);
    const fault = injectFault(nth, { kind });
    await act!().finally(fault.remove);
    const took = fault.statements();
    assert.deepEqual(disagreements(await snapshot(bench)), [], `statement ${nth} of ${took}`);
    assert.equal((await act!()).status, 200, `again after statement ${nth} of ${took}`);
    const now = await snapshot(bench);
    assert.deepEqual(withoutTimes(added(before, now)), withoutTimes(usual.added), `statement ${nth} of ${took}`);
    assert.deepEqual(disagreements(now), []);
  }
  assert.deepEqual(await orphans(bench.inspector), []);
}

/** What the units and jobs of each noun write. A new noun has to be added here, and its writes to the operations or jobs above. */
const writesOf: Readonly<Record<keyof typeof nouns, readonly string[]>> = {
  tenants: ['insert tenants', 'update tenants', 'insert versions'],
  keys: ['insert api_keys', 'update api_keys', 'insert versions'],
  documents: ['insert documents', 'update documents', 'insert versions'],
  schedules: ['insert schedules', 'update schedules', 'delete schedules'],
  people: ['insert people', 'update people', 'insert versions'],
  sessions: ['insert sessions', 'update sessions', 'delete sessions'],
  webhooks: ['insert webhooks', 'update webhooks', 'delete webhooks', 'update packets'],
  erasures: ['insert erasures', 'update erasures'],
  packets: [
    ...['insert packets', 'update packets', 'delete packets'],
    ...['insert contents', 'update contents', 'delete contents'],
    ...['insert packet_tags', 'delete packet_tags'],
    ...['insert packet_subjects', 'delete packet_subjects'],
    ...['insert search_queue', 'delete search_queue'],
  ],
  questions: ['insert questions', 'delete questions'],
  claimQueue: [],
  answerLinks: ['insert answer_links', 'update answer_links', 'delete answer_links'],
  deliveries: ['insert deliveries', 'update deliveries', 'delete deliveries', 'insert messages', 'delete messages'],
  executions: ['insert executions', 'update executions', 'delete executions', 'insert calls', 'delete calls'],
  idempotency: [
    'insert idempotency',
    'update idempotency',
    'delete idempotency',
    'insert idempotency_packets',
    'delete idempotency_packets',
  ],
  counters: ['insert counters', 'delete counters'],
  openPacketCounts: ['insert counters'],
  trail: ['insert events', 'update events', 'insert heads', 'update heads', 'insert counters', 'update counters'],
  agents: ['insert agents', 'delete agents'],
  ages: [],
  stats: [],
};

/** The kinds of writes in an SQL text, such as `insert packets`. */
function writesIn(sql: string): string[] {
  const found = sql.matchAll(/\b(?:insert(?: or ignore)? into|delete from|update) "?(\w+)"?/g);
  return [...found].flatMap(([text, table]) => {
    const verb = text.split(' ')[0]!;
    // Neither `for update of` nor `do update set`.
    return verb === 'update' && !sql.includes(`${text} set`) ? [] : [`${verb} ${table}`];
  });
}

for (const store of stores) {
  const isServer = store.name !== 'SQLite in memory';
  // On a server, every second statement fails by a broken connection.
  const kinds: readonly FaultKind[] = isServer ? ['error', 'broken', 'unavailable', 'broken'] : ['error', 'unavailable'];
  // Every third statement in memory, and every eighth on a server, which takes longer; `.ci/full` lets all fail.
  const walk = new Walk(kinds, (came) => walksAll || (isServer ? came % 8 === 1 : came % 3 === 0));

  describe(`When a statement fails, all of an operation happens or nothing, on ${store.name}`, () => {
    const stops: (() => unknown)[] = [];
    const t = { after: (stop: unknown) => void stops.unshift(stop as () => unknown) };
    after(async () => {
      for (const stop of stops) await stop();
    });
    const open = async () => {
      const clock = new TestClock();
      const issuer = await startIssuer(t, clock);
      const service = await startService(t, {
        store,
        clock,
        settings: {
          ...signInSettings(issuer),
          SERVICE_OIDC_TENANT_CLAIM: 'tenant',
          SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
          SERVICE_OPEN_PACKETS_PER_AGENT: '100000',
        },
        // The event loop runs after every row.
        dependencies: { charactersPerTurn: 1 },
      });
      const inspector = await inspect(service.databaseUrl);
      t.after(inspector.close);
      return { service, inspector, issuer };
    };

    let shared: ReturnType<typeof open> | undefined;
    const opened = () => {
      shared ??= open();
      return shared;
    };

    for (const [operation, prepare] of Object.entries(operations)) {
      test(operation, async () => {
        const running = await opened();
        await runWithFaults(() => openBench(running), prepare, walk);
      });
    }

    for (const [job, prepare] of Object.entries(jobs)) {
      test(job, async () => {
        // A job works on all tenants, so it gets a service of its own.
        const running = await open();
        const receiver = await startReceiver(t, (response, { path }) => response.writeHead(path === '/gone' ? 410 : 204).end());
        await runJobWithFaults(await openBench(running, receiver.url), prepare, walk);
      });
    }

    test('the operations and jobs above make every write of every noun', () => {
      const tables = new Set(tablesOf(migrations).map(({ name }) => name));
      const made = [...walk.made].filter((write) => tables.has(write.split(' ')[1]!));
      assert.deepEqual(Object.keys(writesOf), Object.keys(nouns));
      assert.deepEqual(made.sort(), [...new Set(Object.values(writesOf).flat())].sort());
    });
  });
}
