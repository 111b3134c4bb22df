import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { constants, DatabaseSync, StatementSync } from 'node:sqlite';
import { type TestContext, test } from 'node:test';
import pg from 'pg';

import { migrations as ofFallback } from '../../../src/fallback/store/migrations/index.ts';
import { migrations } from '../../../src/handoff/store/migrations/index.ts';
import { openStore } from '../../../src/handoff/store/store.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { createIds } from '../../../src/kit/id.ts';
import { looking } from '../../support/consistency.ts';
import { connectTo } from '../../support/databases.ts';
import { createPacket, packetRequest, startService, type TestService } from '../../support/service.ts';
import { postgresql } from '../../support/stores.ts';

/**
 * The tables that grow with the stored data: a query that scans one of them gets slower every day. The queues of the search
 * index and of deliveries grow too, but their counts stop at a limit.
 */
const growing = [
  ...['packets', 'contents', 'packet_tags', 'events', 'idempotency', 'idempotency_packets'],
  ...['counters', 'agents', 'webhooks', 'documents', 'deliveries', 'messages', 'answer_links', 'questions', 'people', 'sessions'],
  ...['packet_subjects', 'schedules'],
];

/** The statements that read or change rows of tables with a tenant without naming one, each with its reason. */
const withoutTenant: readonly [RegExp, string][] = [
  [/^select count\(\*\) as count from "\w+"$/, 'the sizes of tables'],
  [/limit \?\) as "some"$/, 'the queues in metrics'],
  [/"hash" = \?/, 'admission: the key names the tenant'],
  [/^select ("packet"|"search_queue"\."tenant", .+) from "search_queue"/, 'the indexer, which works on all tenants in turn'],
  [
    /\("api_keys"\."id" = \? or "rotated_from" = \?\)/,
    'the key of an answer link, a channel or a push configuration, which may be of an admin',
  ],
  [/ from "erasures" where "done_at" is null /, 'erasures of all tenants that are not done, for a job'],
  [
    /^select ("seq"|("seq", )?"tenant", .+) from "\w+" where .+ <=? \?( and "due_at" >= \?)?( and (1 = 1|\([^)]+\) > \([?, ]+\)))?( order by "\w+"(, "(id|tenant|name)")*)? limit \?$/,
    'due rows of all tenants, for jobs',
  ],
];

/** Whether a statement restricts the rows of each tenant's table to one tenant or to pairs of a tenant and a key. */
function namesTenant(sql: string): boolean {
  const conditions = sql.slice(sql.search(/\b(where|on)\b/));
  return /\btenant(_id)?"?\s*\)?\s*(=|in\b|,[^()]*\)\s*(=|in\b))/.test(conditions);
}

/** The joins of a statement with one of the tables whose condition doesn't compare the tenant. */
function joinsWithoutTenant(sql: string, tables: readonly string[]): string[] {
  const joins = [...sql.matchAll(/(?:(left|inner|cross) )?join "?(\w+)[\s\S]*?(?=(?:(?:left|inner|cross) )?join |$)/g)];
  return joins.flatMap(([join, kind, table]) => {
    const [condition = ''] = join.split(/ where | order by | group by /);
    // The conditions of a cross join are among those of the statement.
    return tables.includes(table!) && !/\btenant"? = /.test(kind === 'cross' ? sql : condition) ? [join] : [];
  });
}

/** Asserts that each join with one of the tables, and each change of one, names the tenant. */
function assertTenantOf(sql: string, tables: readonly string[]): void {
  assert.deepEqual(joinsWithoutTenant(sql, tables), [], sql);
  const [, changed] = /^(?:update|delete from) "?(\w+)/.exec(sql) ?? [];
  if (tables.includes(changed!) && changed !== 'api_keys') assert.match(sql, /\btenant"? (=|in) /, sql);
}

/** The names of the tables with a column for the tenant. */
function tablesOfTenants(t: TestContext): string[] {
  const named = `select m.name from sqlite_master m join pragma_table_info(m.name) c where m.type = 'table' and c.name in ('tenant', 'tenant_id')`;
  return emptyDatabase(t)
    .prepare(named)
    .all()
    .map(({ name }) => String(name));
}

/** Records every statement that is prepared during the test. */
function recordStatements(t: TestContext): Set<string> {
  const statements = new Set<string>();
  const { prepare } = DatabaseSync.prototype;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string, ...rest) {
    statements.add(sql);
    return prepare.call(this, sql, ...rest);
  };
  t.after(() => {
    DatabaseSync.prototype.prepare = prepare;
  });
  return statements;
}

/** A statement without what hides the values of its parameters from the planner. */
const withPlainParameters = (sql: string): string => sql.replaceAll('+?', '?').replaceAll('cast(? as integer)', '?');

/** Records every statement that SQLite plans anew when it runs, since its plan depends on the value of a parameter. */
function recordReplanned(t: TestContext): Set<string> {
  const replanned = new Set<string>();
  const { prepare } = DatabaseSync.prototype;
  const { run, get, all } = StatementSync.prototype;
  const watched = new WeakSet<DatabaseSync>();
  let running: string | undefined;
  DatabaseSync.prototype.prepare = function (this: DatabaseSync, sql: string, ...rest) {
    // SQLite asks for authorization while it plans a statement. A new authorizer makes it plan all statements anew.
    if (!watched.has(this)) {
      watched.add(this);
      this.setAuthorizer(() => {
        if (running !== undefined) replanned.add(running);
        return constants.SQLITE_OK;
      });
    }
    return prepare.call(this, sql, ...rest);
  };
  for (const [name, method] of Object.entries({ run, get, all }))
    Object.assign(StatementSync.prototype, {
      [name](this: StatementSync, ...parameters: unknown[]) {
        running = this.sourceSQL;
        try {
          return Reflect.apply(method, this, parameters);
        } finally {
          running = undefined;
        }
      },
    });
  t.after(() => {
    DatabaseSync.prototype.prepare = prepare;
    Object.assign(StatementSync.prototype, { run, get, all });
  });
  return replanned;
}

/** A database with the schema in docs/schema.sqlite.sql. */
function emptyDatabase(t: TestContext): DatabaseSync {
  const database = new DatabaseSync(':memory:');
  t.after(() => database.close());
  database.exec(readFileSync(new URL('../../../docs/schema.sqlite.sql', import.meta.url), 'utf8'));
  return database;
}

/** SQLite's query plan of a statement, one line per step. */
function planner(t: TestContext): (sql: string) => string[] {
  const database = emptyDatabase(t);
  return (sql) =>
    database
      .prepare(`explain query plan ${sql}`)
      .all()
      .map(({ detail }) => String(detail));
}

// In memory nothing runs on another thread, so every statement is recorded.
const databaseUrl = 'sqlite::memory:';

/** Settings with which `useEverything` works. */
const settings = {
  SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
  SERVICE_UNCLAIMED_TTL_SECONDS: '86400',
  SERVICE_DEAD_LETTER_RETENTION_SECONDS: '60',
};

/** Makes requests of every kind, and runs every job. */
async function useEverything(service: TestService): Promise<void> {
  const ok = async (method: string, path: string, body?: unknown, headers = {}) => {
    const { status, text } = await service.call(method, path, { ...(body === undefined ? {} : { body }), headers });
    assert.ok(status < 300, `${method} ${path}: ${text}`);
  };

  await ok('POST', '/channels', { kind: 'slack', target: 'http://127.0.0.1:9/x', events: ['asked', 'reminded', 'answered'] });
  const [channel] = (await service.call('GET', '/channels')).body;
  const body = packetRequest();
  const { id } = await createPacket(service, body);
  await ok('POST', '/packets', body, { 'idempotency-key': 'once' });
  const times = ['scheduled=true', 'overdue=true', 'due_before=2027-01-01', 'order=due', 'order=due&view=full&offset=1&limit=2'];
  for (const query of [
    '',
    'view=full',
    'offset=3',
    'offset=2000',
    'tags=a,b',
    'hitl_required=true',
    'priority=high&status=failed,created',
    ...times,
  ])
    await ok('GET', `/packets?${query}`);
  await ok('GET', '/packets?created_after=2026-01-01&created_before=2026-12-31&target_agent=a');
  for (const path of ['/packets/awaiting', '/audit', `/audit?packet_id=${id}`, '/keys', '/tenants', '/metrics']) await ok('GET', path);
  for (const query of ['q=charged', 'q=%22charged twice%22', 'q=charged&status=created&offset=9'])
    await ok('GET', `/packets/search?${query}`);
  await ok('GET', `/packets/${id}`);
  await ok('GET', `/packets/${id}/history`);
  await ok('POST', `/packets/${id}/claim`, { agent_id: 'worker' });
  await ok('PATCH', `/packets/${id}`, { metadata: { tags: ['c'] }, context: { summary: 'Changed' } });
  await ok('PATCH', `/packets/${id}`, {
    status: 'awaiting_human',
    hitl: { required: true, reason: '', question: 'q?' },
  });
  const { body: link } = await service.call('POST', `/packets/${id}/answer-links`, { body: {} });
  await ok('GET', `/packets/${id}/answer-links`);
  await service.handoff.runOnce.deliver();
  await ok('GET', `/channels/${channel.id}/deliveries`);
  const page = await service.call('GET', `/${new URL(link.url).pathname}`, { key: null });
  assert.equal(page.status, 200);
  await ok('DELETE', `/answer-links/${link.id}`);
  await ok('DELETE', `/packets/${id}/question`);
  await ok('POST', `/packets/${id}/questions`, { question: 'q?', key: 'k' });
  await ok('POST', `/packets/${id}/respond`, { response: 'Yes', responded_by: 'dana' });
  const { body: asked } = await service.call('GET', `/packets/${id}/questions?limit=1`);
  await ok('GET', `/packets/${id}/questions?cursor=${asked.next_cursor}`);
  await ok('GET', `/packets/${id}/questions/${asked.questions[0].question_id}`);
  await ok('POST', `/packets/${id}/chain`, body);
  await ok('POST', '/erasures', { subject: 'customer:4711', reason: 'Request' });
  await ok('POST', '/erasures', { packet_ids: [id], reason: 'Request' });
  for (const path of ['/erasures?limit=1', '/packets?subject=customer:4711', '/packets/search?q=charged&subject=customer:4711'])
    await ok('GET', path);
  await service.handoff.runOnce.erase();
  await ok('DELETE', `/packets/${id}?hard=true`);
  await ok('POST', '/packets/claim-next', { agent_id: 'worker' });
  await ok('POST', '/packets/claim-next', { agent_id: 'worker', order: 'due' });
  await ok('GET', '/people');
  await ok('POST', '/people/dana/suspend');
  await ok('GET', '/agents');
  await ok('GET', '/stats');
  for (const job of Object.values(service.handoff.runOnce)) await job();
}

test("no query of the service scans a growing table, or reaches a tenant's rows without naming the tenant", async (t) => {
  const planOf = planner(t);
  const replanned = recordReplanned(t);
  const statements = recordStatements(t);
  const service = await startService(t, { databaseUrl, settings });
  // A migration may scan a table, because it runs once.
  statements.clear();
  replanned.clear();
  await useEverything(service);

  // The full-text index and the tables of pragmas run statements of their own.
  const planned = [...replanned].filter((sql) => !/ (search_index|"search_index"|pragma_\w+)\b/.test(sql));
  assert.deepEqual(planned, [], 'SQLite plans these statements at each run');

  const plans = [...statements]
    .filter((sql) => /^(select|update|delete|insert)\b/.test(sql))
    .map((sql) => ({ sql: withPlainParameters(sql), plan: planOf(sql) }));
  assert.ok(plans.length > 50, `${plans.length} statements were recorded`);
  for (const { sql, plan } of plans) {
    if (sql.endsWith('limit ?) as "some"')) continue;
    // The measurer counts tables, rarely and on a thread of its own.
    if (sql.startsWith('select count(*) as count from')) continue;
    const walked = plan.filter((step) => growing.some((table) => new RegExp(`^SCAN ${table}\\b`).test(step)));
    assert.deepEqual(walked, [], `${sql}\n${plan.join('\n')}`);
  }

  const tables = tablesOfTenants(t);
  const ofTenants = plans.filter(({ sql }) => new RegExp(`\\b(from|join|update) "?(${tables.join('|')})\\b`).test(sql));
  assert.ok(ofTenants.length > 50, `${ofTenants.length} statements reach tenants' rows`);
  for (const { sql } of ofTenants) assertTenantOf(sql, tables);
  const unbound = ofTenants.filter(({ sql }) => !sql.startsWith('insert') && !namesTenant(sql)).map(({ sql }) => sql);
  assert.deepEqual(
    unbound.filter((sql) => !withoutTenant.some(([pattern]) => pattern.test(sql))),
    [],
  );
  const unused = withoutTenant.filter(([pattern]) => !unbound.some((sql) => pattern.test(sql)));
  assert.deepEqual(unused, [], 'every exception is still needed');
});

test('on PostgreSQL every join with a table of tenants and every change of one names the tenant, and the keys begin with it', async (t) => {
  const { url, drop } = await postgresql.open('handoff');
  const query = t.mock.method(pg.Client.prototype, 'query');
  const service = await startService(t, { databaseUrl: url, settings });
  t.after(drop);
  await useEverything(service);
  const given = query.mock.calls.map(({ arguments: [one] }) => one as unknown as string | { text: string });
  query.mock.restore();
  const statements = new Set(given.map((one) => (typeof one === 'string' ? one : one.text).replaceAll(/\s+/g, ' ')));
  const tables = [...tablesOfTenants(t), 'search_index'];
  const ofTenants = [...statements].filter((sql) => new RegExp(`\\b(from|join|update|into) "?(${tables.join('|')})\\b`).test(sql));
  assert.ok(ofTenants.length > 70, `${ofTenants.length} statements reach tenants' rows`);
  for (const sql of ofTenants) assertTenantOf(sql, tables);

  const keys = await looking(url, ({ query }) =>
    query(`select indrelid::regclass::text as table, attname as first from pg_index join pg_attribute on attrelid = indrelid and attnum = indkey[0]
      where indisunique and indrelid::regclass::text in (${tables.map((name) => `'${name}'`)})`),
  );
  assert.deepEqual([...new Set(keys.map(({ table }) => table))].sort(), tables.toSorted());
  for (const { table, first } of keys) if (table !== 'api_keys') assert.equal(first, 'tenant', table);
});

test('no condition of an index has a list of more than two constants, for which SQLite fills a temporary table at each write', () => {
  const statements = [...migrations, ...ofFallback].flatMap(({ up }) => [...up('sqlite'), ...up('postgres')]);
  const indexes = statements.filter((statement) => /^create (unique )?index .* where /is.test(statement));
  assert.ok(indexes.length > 20, `${indexes.length} indexes have a condition`);
  for (const index of indexes) assert.doesNotMatch(index, /\bin\s*\([^,)]*,[^,)]*,/i);
});

test("a list filtered by one column uses that column's index", async (t) => {
  const planOf = planner(t);
  const statements = recordStatements(t);
  for (const [query, index] of [
    ['', 'packets_by_id'],
    ['status=failed', 'packets_by_status'],
    ['priority=high', 'packets_by_priority'],
    ['source_agent=a', 'packets_by_source'],
    ['target_agent=a', 'packets_by_target'],
    ['hitl_required=true', 'packets_hitl'],
    // The ids with the tag drive the query, not all of the tenant's packets.
    ['tags=a', 'packets_by_id (tenant=? AND id=?)'],
  ] as const) {
    // A new service prepares the statement again.
    const service = await startService(t, { databaseUrl });
    statements.clear();
    assert.equal((await service.call('GET', `/packets?${query}`)).status, 200, query);
    const listing = [...statements].find((sql) => sql.includes('string_agg'));
    assert.ok(listing !== undefined, query);
    const plan = planOf(listing);
    assert.ok(
      plan.some((step) => step.includes(`INDEX ${index}${index.endsWith(')') ? '' : ' ('}`)),
      `${query}: ${plan.join('\n')}`,
    );
  }
});

test('a list of a key that sees its own follows the indexes of agents, page and total, and never walks all packets of the tenant [H574]', async (t) => {
  const planOf = planner(t);
  const statements = recordStatements(t);
  const service = await startService(t, { databaseUrl });
  const { body: own } = await service.call('POST', '/keys', { body: { name: 'own', agents: ['a', 'b'], sees: 'own', queues: ['desk'] } });
  for (const query of ['', '?status=failed', '?order=asc', '?offset=3']) {
    statements.clear();
    assert.equal((await service.call('GET', `/packets${query}`, { key: own.key })).status, 200, query);
    const [page, counting] = ['string_agg', 'select count(*)'].map((part) => [...statements].filter((sql) => sql.includes(part)));
    // What was prepared for an earlier query is not prepared again.
    if (query === '') assert.deepEqual([page!.length, counting!.length], [1, 1]);
    for (const sql of [...page!, ...counting!]) {
      const steps = planOf(withPlainParameters(sql)).filter((step) => /\bpackets\b/.test(step) && /^(SCAN|SEARCH)/.test(step));
      const walked = steps.filter((step) => /^SCAN packets|packets_by_id \(tenant=\?( AND id[<>]\?)?\)/.test(step));
      assert.deepEqual(walked, [], `${query}: ${sql}`);
      if (query === '')
        for (const index of ['source', 'target', 'claimant'])
          assert.ok(
            steps.some((step) => step.includes(`packets_by_${index} (`)),
            `${index}: ${steps.join('\n')}`,
          );
    }
  }
});

test('a page of the audit log follows an index in its order, whatever the filter, and counting reads nothing else', async (t) => {
  const planOf = planner(t);
  const statements = recordStatements(t);
  for (const [query, index] of [
    ['', 'events_by_time (tenant=?)'],
    ['actor=a', 'events_by_actor (tenant=? AND actor=?)'],
    ['action=created', 'events_by_action (tenant=? AND event_type=?)'],
    ['created_after=2026-01-01', 'events_by_time (tenant=? AND timestamp>?)'],
    ['created_before=2026-01-01', 'events_by_time (tenant=? AND timestamp<?)'],
    ['actor=a&created_after=2026-01-01', 'events_by_actor (tenant=? AND actor=? AND timestamp>?)'],
    ['actor=a&action=created', 'events_by_actor (tenant=? AND actor=?)'],
  ] as const) {
    const service = await startService(t, { databaseUrl });
    statements.clear();
    assert.equal((await service.call('GET', `/audit?${query}`)).status, 200, query);
    const [page, counting] = ['"details"', 'count(*)'].map((part) =>
      [...statements].find((sql) => sql.includes(part) && sql.includes('from "events"')),
    );
    assert.deepEqual(planOf(page!), [`SEARCH events USING INDEX ${index}`], query);
    if (query !== '')
      assert.ok(planOf(counting!).includes(`SEARCH events USING COVERING INDEX ${index}`), `${query}: ${planOf(counting!)}`);
  }
});

test('the packets that agents hold are counted by an index of held packets, whatever else the agents have claimed', async (t) => {
  const planOf = planner(t);
  const statements = recordStatements(t);
  const service = await startService(t, { databaseUrl });
  const { id } = await createPacket(service);
  assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' } })).status, 200);
  assert.equal((await service.call('GET', '/agents')).body.agents.length, 2);
  const counting = [...statements].find((sql) => sql.includes('"claimed_by" as "agent_id"'))!;
  assert.match(planOf(counting).join(), /INDEX packets_held \(tenant=\? AND claimed_by=\?\)/);
});

test('the open packets of a source agent are counted by their index, which only a packet that ends or is created changes', async (t) => {
  const planOf = planner(t);
  const statements = recordStatements(t);
  const service = await startService(t, { databaseUrl, settings: { SERVICE_OPEN_PACKETS_PER_AGENT: '2' } });
  const { id } = await createPacket(service);
  const counting = [...statements].find((sql) => sql.startsWith('select count(*) from packets'))!;
  assert.match(planOf(counting).join(), /COVERING INDEX packets_open \(tenant=\? AND open_source=\?\)/);

  const updates = () => [...statements].filter((sql) => sql.startsWith('update packets ')).map((sql) => sql.includes('open_source'));
  assert.equal((await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' } })).status, 200);
  assert.deepEqual(updates(), [false]);
  assert.equal((await service.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } })).status, 200);
  assert.deepEqual(updates(), [false, true]);
});

/** A service on PostgreSQL, and a connection to its database. */
async function startOnPostgres(t: TestContext) {
  const { url, drop } = await postgresql.open('handoff');
  const client = await connectTo(t, url);
  t.after(() => drop());
  return { client, service: await startService(t, { databaseUrl: url }) };
}

for (const order of ['age', 'due'] as const)
  test(`on PostgreSQL claim-next by ${order} reads only the packets that wait for its agent, with or without statistics of the table`, async (t) => {
    const { client, service } = await startOnPostgres(t);
    const isByDue = order === 'due';
    const packetDue = (due_at: string) => packetRequest(isByDue ? { due_at } : {});
    const packets = Array.from({ length: 100 }, () => packetDue('2030-01-01T00:00:00Z'));
    for (let batch = 0; batch < 5; batch += 1)
      assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
    const claim = async (target_agent: string) => {
      const body = { agent_id: 'worker', target_agent, ...(isByDue ? { order } : {}) };
      const claimed = await service.call('POST', '/packets/claim-next', { body });
      assert.equal(claimed.status, 200);
      return claimed.body;
    };

    const query = t.mock.method(pg.Client.prototype, 'query');
    const { metadata } = await claim('*');
    // The second search begins where the look before the first one ended, and has one below.
    const released = await claim(metadata.target_agent.id);
    const early = isByDue
      ? await createPacket(service, packetDue('2029-01-01T00:00:00Z'))
      : (await service.call('POST', `/packets/${released.id}/release`)).body;
    assert.equal((await claim(metadata.target_agent.id)).id, early.id);
    const sent = query.mock.calls.map(({ arguments: [given] }) => {
      const one = given as unknown as string | { text: string; values: unknown[] };
      return typeof one === 'string' ? { text: one, values: [] } : one;
    });
    query.mock.restore();
    const isOfOrder = ({ text }: { text: string }) => text.includes('floor_by') === isByDue;
    const first = sent.findLastIndex((given) => given.text.startsWith('select free.') && isOfOrder(given));
    const second = sent.findLastIndex((given) => given.text.startsWith('with returned') && isOfOrder(given));
    for (const [begin, end] of [
      [first - 2, first + 1],
      [second - 1, second + 1],
    ] as const) {
      assert.equal(sent[begin]!.text, 'set local enable_sort = off');
      assert.equal(sent[end]!.text, 'set local enable_sort = on');
    }

    await client.query('set enable_sort = off');
    const index = isByDue ? 'packets_waiting_due_for' : 'packets_waiting_for';
    for (const statistics of ['', 'analyze packets', "update packets set status = 'completed'; vacuum analyze packets"]) {
      for (const statement of statistics.split('; ')) await client.query(statement);
      for (const [place, byId] of [
        [first - 1, 0],
        [first, 0],
        [second, 2],
      ] as const) {
        const { text, values } = sent[place]!;
        const { rows } = await client.query({ text: `explain ${text}`, values, rowMode: 'array' });
        const plan = rows.flat().join('\n');
        const used = [...plan.matchAll(/(?:Scan (?:Backward )?using|Index Scan on) (packets_\w+?)(?:_\d+)?(?: on packets| +\()/g)].map(
          ([, name]) => name,
        );
        const expected = [
          ...(place === first - 1 ? [isByDue ? 'packets_by_deadline' : 'packets_by_id'] : []),
          ...Array(byId).fill('packets_by_id'),
          index,
        ];
        assert.deepEqual(used.toSorted(), expected.toSorted(), `${statistics}: ${plan}`);
        assert.doesNotMatch(plan, /Seq Scan on (packets|events)|events_by_packet/);
        // Only the few that have become free since are sorted.
        assert.doesNotMatch(plan.replace(/Sort .*\n(\s+Disabled: true\n)?\s+Sort Key: returned\..*\n/, ''), /Sort/, plan);
      }
    }
  });

test('on PostgreSQL a list of a key that sees its own reads the packets of its agents by their indexes, page and total [H574]', async (t) => {
  const { client, service } = await startOnPostgres(t);
  const { body: own } = await service.call('POST', '/keys', { body: { name: 'own', agents: ['a', 'b'], sees: 'own', queues: ['desk'] } });
  const { metadata } = packetRequest() as { metadata: Record<string, object> };
  const agent = (id: string) => ({ id, name: id, framework: 'test' });
  const between = (source: string, target: string) =>
    packetRequest({ metadata: { ...metadata, source_agent: agent(source), target_agent: agent(target) } });
  const packets = Array.from({ length: 60 }, (_, index) => between(index % 3 === 0 ? 'x' : 'a', index % 2 === 0 ? 'b' : 'desk'));
  assert.equal((await service.call('POST', '/packets/batch', { body: { packets } })).status, 201);
  await createPacket(service, between('others', 'many'));
  // Rows of the table alone: what the plans depend on.
  const { rows: found } = await client.query(
    "select column_name as name from information_schema.columns where table_name = 'packets' order by ordinal_position",
  );
  const columns = found.map(({ name }) => String(name));
  const values = columns.map((name) =>
    name === 'id' ? "overlay(id placing lpad(to_hex(i), 12, '0') from 25)" : name === 'seq' ? 'seq + i' : name,
  );
  await client.query(`insert into packets (${columns}) overriding system value
    select ${values} from packets, generate_series(1, 20000) i where source_agent = 'others'`);
  await client.query('vacuum analyze packets');

  const query = t.mock.method(pg.Client.prototype, 'query');
  for (const search of ['', '?status=created', '?order=asc', '?limit=10&offset=20']) {
    const begun = query.mock.callCount();
    const { status, body } = await service.call('GET', `/packets${search}`, { key: own.key });
    assert.deepEqual([status, body.total], [200, 60]);
    const sent = query.mock.calls.slice(begun).map(({ arguments: [one, given] }) => {
      const { text = String(one), values: own = given } = one as { text?: string; values?: unknown };
      return { text, values: own as unknown[] };
    });
    const listing = sent.filter(({ text }) => /"packets"/.test(text));
    assert.ok(listing.length > 0, search);
    for (const { text, values } of listing) {
      const { rows } = await client.query({ text: `explain (analyze, buffers, costs off, timing off) ${text}`, values });
      const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
      for (const index of ['source', 'target', 'claimant']) assert.match(plan, new RegExp(`using packets_by_${index} on packets`), plan);
      assert.doesNotMatch(plan, /Seq Scan on packets/, plan);
      const most = Math.max(...[...plan.matchAll(/on packets\w*(?: \w+)? \(actual rows=([\d.]+)/g)].map(([, read]) => Number(read)));
      assert.ok(most <= 60, plan);
    }
  }
  query.mock.restore();
});

test('statistics read counters and the ends of indexes: on PostgreSQL not more rows of packets, however many there are', async (t) => {
  const { client, service } = await startOnPostgres(t);
  for (let batch = 0; batch < 3; batch += 1)
    await service.call('POST', '/packets/batch', { body: { packets: Array.from({ length: 100 }, () => packetRequest()) } });
  const read = async () => {
    await client.query('select pg_stat_force_next_flush()');
    const { rows } = await client.query(
      `select coalesce(sum(idx_tup_read), 0) as read from pg_stat_user_indexes where relname = 'packets'`,
    );
    return Number(rows[0].read);
  };
  const query = t.mock.method(pg.Client.prototype, 'query');
  assert.equal((await service.call('GET', '/stats')).body.work.waiting, 300);
  const statements = query.mock.calls
    .map(({ arguments: [one] }) => one as unknown as { text?: string; values?: unknown[] })
    .filter(({ text }) => /from "packets" .*order by "(status|asked_at)"/.test(text ?? ''));
  query.mock.restore();
  assert.equal(statements.length, 2);
  const before = await read();
  for (const { text, values } of statements) {
    const { rows } = await client.query({ text: `explain (analyze, costs off, timing off) ${text}`, values: values ?? [] });
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    assert.match(plan, /Index (Only )?Scan using packets_\w+ on packets \(actual rows=[01](\.00)? /, plan);
    assert.doesNotMatch(plan, /Sort|Aggregate|Seq Scan/, plan);
  }
  assert.ok((await read()) - before <= 4);
});

test('statistics read counters and the ends of indexes: on SQLite without sorting', async (t) => {
  const planOf = planner(t);
  const statements = recordStatements(t);
  const service = await startService(t, { databaseUrl });
  assert.equal((await service.call('GET', '/stats')).status, 200);
  const ofPackets = [...statements].filter((sql) => / from "packets" .* order by "(status|asked_at|available_at)".* limit /.test(sql));
  assert.deepEqual(
    ofPackets.map((sql) => planOf(withPlainParameters(sql)).join()),
    [
      'SEARCH packets USING INDEX packets_by_status (tenant=? AND status>? AND status<?)',
      'SEARCH packets USING COVERING INDEX packets_available (tenant=? AND available_at>?)',
      'SEARCH packets USING COVERING INDEX packets_asked (tenant=? AND asked_at>?)',
    ],
  );
  const waiting = [...statements].find((sql) => sql.includes('"deliveries"."webhook" = "webhooks"."seq"'))!;
  assert.match(planOf(withPlainParameters(waiting)).join(), /USING INDEX deliveries_due \(webhook=\? AND due_at>\?\)/);
  const counting = [...statements].find((sql) => sql.includes('union all') && sql.includes('"counters"'))!;
  assert.match(planOf(withPlainParameters(counting)).join(), /(USING PRIMARY KEY \(tenant=\? AND name>\? AND name<\?\).*){2}/);
});

test('the cursor of a subscription to events reads one pending delivery, however many there are', async (t) => {
  const planOf = planner(t);
  const statements = recordStatements(t);
  const newId = createIds();
  const store = await openStore({ databaseUrl, clock: systemClock, newId });
  t.after(() => store.close());
  statements.clear();
  assert.equal(await store.deliveries.settledUpTo(1, 1), undefined);
  assert.deepEqual(
    [...statements].map((sql) => planOf(withPlainParameters(sql)).join()),
    ['SEARCH deliveries USING INDEX deliveries_pending (webhook=? AND position>?)'],
  );
});
