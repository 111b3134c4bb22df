import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';

import { maintain } from '../../src/handoff/maintenance.ts';
import { createExample } from '../../src/handoff/model/examples.ts';
import { migrations } from '../../src/handoff/store/migrations/index.ts';
import { tablesOf } from '../../src/kit/sql/shape.ts';
import { a2a } from '../support/a2a.ts';
import { assertSound, looking } from '../support/consistency.ts';
import { temporaryFolder } from '../support/folder.ts';
import { openInstances } from '../support/instances.ts';
import { callTool } from '../support/mcp.ts';
import { startReceiver } from '../support/receiver.ts';
import type { TestService } from '../support/service.ts';
import { onDisk } from '../support/stores.ts';
import { startHooked } from '../support/webhooks.ts';

/** A word that nothing but the erased packets contains, in lower case as the search index has it. */
const word = 'quetzalcoatlus';
const subject = `customer:${word}`;

const said = (what: string) => `${what} ${word}`;

/** A packet that has the word wherever a caller may put words. */
const packet = {
  metadata: {
    ...createExample.metadata,
    source_agent: { id: 'frontline', name: said('Name'), framework: said('Framework') },
    tags: [word],
    subjects: [subject],
    own: said('Metadata'),
  },
  context: {
    summary: said('Summary'),
    conversation_state: [{ role: 'user', content: said('Content') }],
    artifacts: [{ key: said('Key'), value: { nested: said('Value') } }],
    custom: { own: said('Custom') },
  },
  decisions: [{ id: 'd1', decision: said('Decision'), rationale: said('Rationale') }],
  actions: {
    pending: [{ id: 'a1', description: said('Action'), assignee: 'resolver' }],
    completed: [{ id: 'a2', description: said('Done'), result: said('Result') }],
    failed: [{ id: 'a3', description: said('Failed'), error: said('Error') }],
  },
  dependencies: [{ id: 'x', type: 'system', description: said('Dependency') }],
};
const question = { question: said('Question?'), reason: said('Reason'), options: [said('Yes'), 'No'], required: true };

interface Filled {
  readonly ids: readonly string[];
  readonly hook: string;
  readonly channel: string;
  readonly receiver: Awaited<ReturnType<typeof startReceiver>>;
}

/** Fills every place where content may lie: by packets, questions, answers, executions, deliveries, answers to keys, and caches. */
async function fill(t: TestContext, service: TestService): Promise<Filled> {
  const ok = async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
    const answer = await service.call(method, path, { ...(body === undefined ? {} : { body }), headers });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.text}`);
    return answer.body;
  };
  // The first request is taken, later ones fail.
  const receiver = await startReceiver(t, 204, 500);
  const { id: hook } = await ok('POST', '/hooks', { url: receiver.url, secret: 'a-secret-for-tests-0123456789' });
  const { id: channel } = await ok('POST', '/channels', { kind: 'slack', target: receiver.url.replace('/hook', '/secret') });

  const first = await ok('POST', '/packets', packet, { 'idempotency-key': 'first' });
  await service.handoff.runOnce.deliver();
  const { lease } = await ok(
    'POST',
    `/packets/${first.id}/claim`,
    { agent_id: 'resolver', agent_name: said('Resolver'), lease_seconds: 60 },
    { 'idempotency-key': 'claim' },
  );
  const config = { taskId: first.id, id: 'mine', url: `${receiver.url}?push`, token: `token-${word}-0123456789` };
  assert.equal((await a2a(service, 'CreateTaskPushNotificationConfig', config)).status, 200);
  await ok('PATCH', `/packets/${first.id}`, { status: 'in_progress' }, { 'x-lease-token': lease.token });

  const asked = await ok('POST', '/packets', packet);
  await ok('POST', `/packets/${asked.id}/questions`, { ...question, key: word });
  await ok('POST', `/packets/${asked.id}/answer-links`, { responder: 'dana' });
  await ok('PATCH', `/packets/${asked.id}`, { context: { summary: said('Another') }, hitl: { question: said('Really?') } });
  await ok('POST', `/packets/${asked.id}/respond`, { response: said('Yes'), responded_by: 'dana', notes: said('Notes') });
  await ok('POST', `/packets/${asked.id}/questions`, { ...question, question: said('And now?') });

  const action = { tool: 'refund', arguments: { note: said('Argument') }, call_id: word };
  await ok('PUT', '/policies/all', { rules: [{ then: { approve: 'all' } }] });
  const { key } = await ok('POST', '/keys', { name: 'agent', scopes: ['work', 'read'], agents: ['refunds'] });
  const asking = { agent: { id: 'refunds' }, action, summary: said('Approval'), subjects: [subject] };
  const { body: approval } = await service.call('POST', '/approvals', { body: asking, key });
  await ok('POST', `/packets/${approval.id}/execution`, { arguments_digest: approval.hitl.decision.arguments_digest });
  await ok('PATCH', `/packets/${approval.id}/execution`, { status: 'succeeded', result: { said: said('Outcome') } });

  await service.handoff.runOnce.index();
  await service.handoff.runOnce.deliver();
  return { ids: [first.id, asked.id, approval.id], hook, channel, receiver };
}

/** All that an instance tells of the packets: over REST, MCP and A2A, in its metrics and in its log. */
async function told(service: TestService, { ids, hook, channel }: Filled): Promise<Record<string, string>> {
  const paths = [
    ...[
      '/packets?view=full',
      `/packets?tags=${word}`,
      `/packets/search?q=${word}`,
      `/packets/search?q="summary ${word}"`,
      '/packets/awaiting?view=full',
    ],
    ...['/audit?limit=200', '/audit/export', '/audit/export?format=csv', '/agents', '/stats', '/hooks/dlq', '//metrics'],
    ...[`/hooks/${hook}/deliveries?limit=200`, `/channels/${channel}/deliveries`],
    ...ids.flatMap((id) => ['', '/history', '/questions', '/brief', '/answer-links', '/execution'].map((tail) => `/packets/${id}${tail}`)),
  ];
  const texts: Record<string, string> = {};
  for (const path of paths) {
    const { status, text } = await service.call('GET', path);
    // What a search looked for is in no answer; an erased packet has no execution.
    assert.ok(status === 200 || (status === 404 && path.endsWith('/execution')), `${path}: ${status} ${text}`);
    texts[path] = text;
  }
  const { body: deliveries } = await service.call('GET', `/hooks/${hook}/deliveries?limit=200`);
  for (const { id } of deliveries) texts[`delivery ${id}`] = (await service.call('GET', `/hooks/${hook}/deliveries/${id}`)).text;
  for (const id of ids) {
    texts[`A2A ${id}`] = (await a2a(service, 'GetTask', { id })).text;
    texts[`MCP ${id}`] = JSON.stringify(await callTool(service, 'get_packet', { packet_id: id }));
  }
  texts['A2A list'] = (await a2a(service, 'ListTasks', { includeArtifacts: true })).text;
  texts.log = service.logs.join('');
  return texts;
}

const withWord = (texts: Record<string, string>) => Object.keys(texts).filter((name) => texts[name]!.toLowerCase().includes(word));

/** The tables with a row that has the word in any column. */
const tablesWithWord = (url: string): Promise<string[]> =>
  looking(url, async ({ query }) => {
    const found: string[] = [];
    for (const name of [...tablesOf(migrations).map((table) => table.name), 'search_index']) {
      const rows = await query(
        name === 'search_index' && url.startsWith('sqlite') ? 'select block as words from search_index_data' : `select * from ${name}`,
      );
      const texts = rows.flatMap((row) =>
        Object.values(row).map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value))),
      );
      if (texts.some((text) => text.toLowerCase().includes(word))) found.push(name);
    }
    return found;
  });

/** The tables that have the word before: the others have no content, or none that these packets put there. */
const filledTables = [
  ...[
    'packets',
    'contents',
    'questions',
    'packet_tags',
    'events',
    'idempotency',
    'calls',
    'executions',
    'webhooks',
    'messages',
    'search_index',
  ],
];

async function eraseAll(service: TestService): Promise<Record<string, never>> {
  const { status, body } = await service.call('POST', '/erasures', { body: { subject, reason: 'Request' } });
  assert.equal(status, 202);
  await service.handoff.runOnce.erase();
  return (await service.call('GET', `/erasures/${body.id}`)).body;
}

async function assertErased(services: readonly TestService[], filled: Filled): Promise<void> {
  const [one] = services as [TestService];
  for (const service of services) assert.ok(withWord(await told(service, filled)).length > 20);
  assert.deepEqual((await tablesWithWord(one.databaseUrl)).toSorted(), filledTables.toSorted());
  const { receiver, hook, channel } = filled;
  const before = receiver.posts.length;

  // biome-ignore lint/suspicious/noExplicitAny: a receipt.
  const receipt: any = await eraseAll(one);
  assert.equal(receipt.status, 'done');
  const sent = new Map(
    receipt.delivered.map(({ id, kind, target, count }: { id: string; kind: string; target: string; count: number }) => [
      id,
      { kind, target, count },
    ]),
  );
  assert.equal((sent.get(hook) as { kind: string }).kind, 'webhook');
  assert.equal((sent.get(hook) as { target: string }).target, receiver.url);
  assert.equal((sent.get(channel) as { target: string }).target, new URL(receiver.url).origin);
  assert.ok(receipt.delivered.some(({ kind }: { kind: string }) => kind === 'push'));
  for (const service of services) await service.handoff.runOnce.recheck();

  // What had failed is not sent again, and what tells of the erasure has no content.
  one.clock.turn(86_400);
  await one.handoff.runOnce.deliver();
  for (const { body } of receiver.posts.slice(before)) assert.ok(!body.includes(word), body);
  for (const service of services) assert.deepEqual(withWord(await told(service, filled)), []);
  for (const service of services) assert.equal((await service.call('GET', `/packets?subject=${subject}`)).body.total, 0);
  await assertSound(one.databaseUrl);
}

/** Whether the export of everything has the word. */
async function isExported(t: TestContext, url: string): Promise<boolean> {
  const file = join(temporaryFolder(t), 'export.jsonl');
  await maintain('export', file, { environment: { SERVICE_DATABASE_URL: url }, config: undefined, tenant: undefined }, () => undefined);
  return readFileSync(file, 'utf8').toLowerCase().includes(word);
}

/** The statements that the documents name for the unused places of a SQLite file. */
function documentedStatements(): string {
  const [, statements] =
    /sqlite3 data\/handoff\.db "([^"]+)"/.exec(readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8')) ?? [];
  assert.ok(statements);
  return statements;
}

describe('The words of erased packets', () => {
  test('are nowhere in what SQLite stores, in its files after the documented command, nor in what the service tells [H609]', async (t) => {
    const { url, drop } = await onDisk.open('handoff');
    t.after(drop);
    const stops: (() => Promise<void>)[] = [];
    const service = await startHooked({ after: (stop: unknown) => void stops.push(stop as () => Promise<void>) }, { databaseUrl: url });
    const filled = await fill(t, service);
    await assertErased([service], filled);
    assert.deepEqual(
      (await tablesWithWord(url)).filter((name) => name !== 'search_index'),
      [],
    );
    for (const stop of stops) await stop();
    assert.equal(await isExported(t, url), false);
    const path = url.slice('sqlite://'.length);
    const database = new DatabaseSync(path);
    database.exec(documentedStatements());
    assert.deepEqual(await tablesWithWord(url), []);
    database.close();
    for (const file of [path, `${path}-wal`]) {
      const bytes = readIf(file);
      assert.equal(bytes.toString('latin1').toLowerCase().includes(word), false, file);
    }
  });

  test('are in no table of PostgreSQL, nor in what a second instance tells [H609]', async (t) => {
    const { url, start } = await openInstances(t);
    const services = [await start({ SERVICE_WEBHOOK_ALLOW: '127.0.0.1' }), await start({ SERVICE_WEBHOOK_ALLOW: '127.0.0.1' })];
    const filled = await fill(t, services[0]!);
    assert.equal(await isExported(t, url), true);
    await assertErased(services, filled);
    assert.deepEqual(await tablesWithWord(url), []);
    assert.equal(await isExported(t, url), false);
  });
});

function readIf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}
