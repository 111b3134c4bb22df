import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import pg from 'pg';
import { priorities, statuses } from '../../src/handoff/model/common.ts';
import { canonicalJson } from '../../src/handoff/rules/canonical-json.ts';
import { detailsDigest, noDigest } from '../../src/handoff/rules/chain.ts';
import { finalStatuses } from '../../src/handoff/rules/packet-life.ts';
import { subjectDigests } from '../../src/handoff/rules/subjects.ts';
import { summaryText } from '../../src/handoff/rules/text.ts';
import { databaseInMemory } from './faults.ts';

// biome-ignore lint/suspicious/noExplicitAny: rows of every table.
export type Row = Record<string, any>;

/** A connection to the database of a service, beside the service's own. */
export interface Inspector {
  /** Runs a query; one with a value, which is `$1` in it, is prepared once. */
  query: (sql: string, value?: number) => Promise<Row[]>;
  close: () => Promise<void>;
}

/** Opens a connection to look into the database at the URL; in memory it is the service's own. */
export async function inspect(url: string): Promise<Inspector> {
  if (url.startsWith('sqlite')) {
    const isInMemory = url === 'sqlite::memory:';
    const database = isInMemory ? databaseInMemory() : new DatabaseSync(url.slice('sqlite://'.length), { timeout: 5000 });
    const prepared = new Map<string, StatementSync>();
    return {
      async query(sql, value) {
        const statement = prepared.get(sql) ?? database.prepare(sql.replaceAll('$1', '?1'));
        prepared.set(sql, statement);
        return (value === undefined ? statement.all() : statement.all(value)) as Row[];
      },
      close: async () => (isInMemory ? undefined : database.close()),
    };
  }
  const types = { getTypeParser: (oid: number, format: 'text') => (oid === 20 ? Number : pg.types.getTypeParser(oid, format)) };
  const client = new pg.Client({ connectionString: url, types, pipeline: true } as pg.ClientConfig);
  await client.connect();
  const names = new Map<string, string>();
  return {
    async query(text, value) {
      if (value === undefined) return (await client.query(text)).rows;
      const name = names.get(text) ?? `inspect ${names.size}`;
      names.set(text, name);
      return (await client.query({ name, text, values: [value] })).rows;
    },
    close: () => client.end(),
  };
}

/** Looks into the database at the URL. */
export async function looking<T>(url: string, look: (inspector: Inspector) => Promise<T>): Promise<T> {
  const inspector = await inspect(url);
  try {
    return await look(inspector);
  } finally {
    await inspector.close();
  }
}

/** The rows of one tenant, by table, in a fixed order. When agents were last seen is left out, since it is written later. */
export type Contents = Record<string, Row[]>;

/** Reads all rows of the tenant with this number. */
export async function contentsOf({ query }: Inspector, tenant: number): Promise<Contents> {
  const own = (columns: string, table: string, order: string) =>
    query(`select ${columns} from ${table} where tenant = $1 order by ${order}`, tenant);
  const ofPacket = (columns: string, table: string, column: string) =>
    // Not joined, since the index has no tenant on SQLite, and a cluster joins by tenant only.
    query(`select ${columns} from ${table} where ${column} in (select seq from packets where tenant = $1) order by ${column}`, tenant);
  const reads = {
    tenants: query('select * from tenants where number = $1', tenant),
    api_keys: query(
      'select api_keys.* from api_keys join tenants on tenants.id = tenant_id where number = $1 order by api_keys.id',
      tenant,
    ),
    packets: own('*', 'packets', 'seq'),
    contents: ofPacket('*', 'contents', 'packet'),
    packet_tags: own('*', 'packet_tags', 'packet_id, tag'),
    packet_subjects: own('*', 'packet_subjects', 'packet_id, subject_digest'),
    erasures: own('*', 'erasures', 'id'),
    events: own('*', 'events', 'position'),
    heads: own('*', 'heads', 'tenant'),
    webhooks: own('*', 'webhooks', 'seq'),
    documents: own('*', 'documents', 'kind, name'),
    schedules: own('*', 'schedules', 'name'),
    people: own('*', 'people', 'name_key'),
    sessions: own('*', 'sessions', 'id'),
    answer_links: own('*', 'answer_links', 'seq'),
    questions: own('*', 'questions', 'seq'),
    deliveries: own('*', 'deliveries', 'seq'),
    messages: query(
      'select * from messages where event_id in (select event_id from deliveries where tenant = $1) order by event_id',
      tenant,
    ),
    counters: own('*', 'counters', 'name'),
    idempotency: own('*', 'idempotency', 'key'),
    idempotency_packets: own('*', 'idempotency_packets', 'key, packet_id'),
    search_queue: own('*', 'search_queue', 'packet'),
    search_index: ofPacket('rowid', 'search_index', 'rowid'),
  };
  return Object.fromEntries(await Promise.all(Object.entries(reads).map(async ([table, rows]) => [table, await rows])));
}

/** Asserts that the rows of each tenant agree with one another, and that no row is an orphan. */
export const assertSound = (url: string): Promise<void> =>
  looking(url, async (inspector) => {
    const found = await orphans(inspector);
    for (const { number } of await inspector.query('select number from tenants order by number'))
      found.push(...disagreements(await contentsOf(inspector, Number(number))));
    assert.deepEqual(found, []);
  });

/** Everything in which the rows of a tenant disagree with one another, one sentence each. */
export function disagreements(tenant: Contents): string[] {
  return [
    ...countersOf(tenant),
    ...packetsOf(tenant),
    ...chainOf(tenant),
    ...trailOf(tenant),
    ...deliveriesOf(tenant),
    ...answersOf(tenant),
    ...questionsOf(tenant),
  ];
}

/** Rows without the row that they belong to, of all tenants: these tables are only reached through another one. */
export async function orphans({ query }: Inspector): Promise<string[]> {
  const found = async (name: string, sql: string) => ((await query(sql)).length === 0 ? [] : [`${name} belong to nothing`]);
  return [
    ...(await found('contents', 'select packet from contents where packet not in (select seq from packets)')),
    ...(await found('index entries', 'select rowid from search_index where rowid not in (select seq from packets)')),
    ...(await found('bodies of deliveries', 'select event_id from messages where event_id not in (select event_id from deliveries)')),
    ...(await found('keys', 'select id from api_keys where tenant_id not in (select id from tenants)')),
  ];
}

const differ = (name: string, stored: unknown, expected: unknown): string[] =>
  JSON.stringify(stored) === JSON.stringify(expected) ? [] : [`${name}: ${JSON.stringify(stored)}, but ${JSON.stringify(expected)}`];

function countersOf({ counters = [], packets = [], events = [] }: Contents): string[] {
  const value = (name: string) => Number(counters.find((counter) => counter.name === name)?.value ?? 0);
  const count = (name: string, counted: number) => differ(`the counter ${name}`, value(name), counted);
  const days = Map.groupBy(packets, ({ state, digest }) => JSON.parse(summaryText({ state, summaryEnd: digest })).created_at.slice(0, 10));
  return [
    ...statuses.flatMap((status) => count(`packets:${status}`, packets.filter((packet) => packet.status === status).length)),
    ...priorities.flatMap((priority) => count(`priority:${priority}`, packets.filter((packet) => packet.priority === priority).length)),
    ...levelsOf(counters, packets),
    ...differ(
      'the times of open questions',
      packets.filter(({ asked_at }) => asked_at !== null).length,
      packets.filter(({ status }) => status === 'awaiting_human').length,
    ),
    ...count('hitl:required', packets.filter((packet) => packet.hitl_required === 1).length),
    ...count('events', events.length),
    // Packets that were deleted permanently count until their day is over; then its counter is removed.
    ...[...days].flatMap(([day, created]) =>
      counters.some(({ name }) => name === `created:${day}`) && value(`created:${day}`) < created.length
        ? [`the day ${day} counts fewer packets than it has`]
        : [],
    ),
  ];
}

/** Each change of a packet was added to the counters of its hour. Those of old packets may have been removed. */
function levelsOf(counters: readonly Row[], packets: readonly Row[]): string[] {
  const hours = counters.filter(({ name }) => name.startsWith('hour:'));
  const first = hours.map(({ name }) => name.slice('hour:'.length, 'hour:2026-03-01T09'.length)).sort()[0] ?? '';
  const isOld = ({ state, digest }: Row) => JSON.parse(summaryText({ state, summaryEnd: digest } as never)).created_at < first;
  if (first === '' || packets.some(isOld)) return [];
  return Object.entries({ waiting: ['created'], held: ['claimed', 'in_progress'], asked: ['awaiting_human'] }).flatMap(([level, own]) =>
    differ(
      `the counters ${level} by hour`,
      hours.filter(({ name }) => name.endsWith(`:${level}`)).reduce((sum, { value }) => sum + Number(value), 0),
      packets.filter(({ status }) => own.includes(status)).length,
    ),
  );
}

function packetsOf({
  packets = [],
  contents = [],
  packet_tags = [],
  packet_subjects = [],
  search_queue = [],
  search_index = [],
}: Contents): string[] {
  const stored = new Set(contents.map(({ packet }) => packet));
  const findable = new Set([...search_queue.map(({ packet }) => packet), ...search_index.map(({ rowid }) => rowid)]);
  const tagsOf = Map.groupBy(packet_tags, ({ packet_id }) => packet_id);
  const subjectsOf = Map.groupBy(packet_subjects, ({ packet_id }) => packet_id);
  return packets.flatMap((row) => {
    const packet = JSON.parse(summaryText({ state: row.state, summaryEnd: row.digest }));
    const name = `packet ${packet.id}`;
    const columns = {
      id: packet.id,
      status: packet.status,
      revision: packet.revision,
      source_agent: packet.metadata.source_agent.id,
      target_agent: packet.metadata.target_agent.id,
      priority: packet.metadata.priority,
      hitl_required: packet.hitl?.required === true ? 1 : 0,
      parent: packet.parent_packet_id,
      claimed_by: packet.claimed_by?.agent_id ?? null,
      updated_at: packet.updated_at,
      ended_at: finalStatuses.includes(packet.status) && packet.erased !== true ? packet.updated_at : null,
    };
    const isFindable = findable.has(row.seq);
    const tags = (tagsOf.get(row.id) ?? []).map(({ tag }) => tag);
    return [
      ...Object.entries(columns).flatMap(([column, value]) => differ(`${name}, ${column}`, row[column], value)),
      ...differ(`${name}, tags`, tags, [...new Set<string>(packet.metadata.tags)].toSorted()),
      ...(stored.has(row.seq) ? [] : [`${name} has no content`]),
      ...differ(
        `${name}, subjects`,
        (subjectsOf.get(row.id) ?? []).map(({ subject_digest }) => subject_digest),
        subjectDigests(packet).toSorted(),
      ),
      ...(isFindable || packet.erased === true ? [] : [`${name} is neither indexed nor queued`]),
      ...(isFindable && packet.erased === true ? [`${name} is erased and indexed`] : []),
    ];
  });
}

/** The entries are a chain of digests without gaps, which ends with the head. */
function chainOf({ events = [], heads = [] }: Contents): string[] {
  let previous = noDigest;
  for (const [index, { digest, details, salt, details_digest, person, id, ...entry }] of events.entries()) {
    const position = index + 1;
    if (entry.position !== position) return [`the entry ${id}: its position is ${entry.position}, but ${position} comes next`];
    if (details !== null && detailsDigest(salt, details) !== details_digest) return [`the details of the entry ${id} do not hold`];
    const { event_type: type, resource, packet_id, actor, key_id, timestamp } = entry;
    const who = person === null ? null : JSON.parse(person);
    const covered = { position, previous, event_id: id, type, resource, packet_id, actor, key_id, person: who, timestamp, details_digest };
    previous = hash('sha256', canonicalJson(covered));
    if (previous !== digest) return [`the digest of the entry ${id} does not hold`];
  }
  const last = events.at(-1);
  const [head] = heads;
  return last === undefined
    ? []
    : differ('the head', [head?.position, head?.digest, head?.at], [last.position, last.digest, last.timestamp]);
}

function trailOf({ packets = [], events = [] }: Contents): string[] {
  const positions = events.map(({ position }) => position);
  const trails = Map.groupBy(events, ({ packet_id }) => packet_id);
  return [
    ...differ('positions', new Set(positions).size, positions.length),
    ...packets.flatMap(({ id, status, state }) => {
      const own = trails.get(id) ?? [];
      // Its entries tell nothing but what happened.
      if (state.includes('"erased":true')) return differ(`the first event of ${id}`, own[0]?.event_type, 'created');
      return [
        ...differ(`the first event of ${id}`, own[0]?.event_type, 'created'),
        ...differ(`the last status in the trail of ${id}`, own.findLast(({ type }) => type !== null)?.status, status),
      ];
    }),
  ];
}

function deliveriesOf({ deliveries = [], messages = [], webhooks = [], events = [] }: Contents): string[] {
  const bodies = new Set(messages.map(({ event_id }) => event_id));
  const known = new Set(events.map(({ id }) => id));
  return deliveries.flatMap(({ id, event_id, webhook, packet_id }) => [
    // A message to a channel is made when it is sent.
    ...(bodies.has(event_id) || webhooks.some(({ seq, kind }) => seq === webhook && kind !== 'webhook')
      ? []
      : [`delivery ${id} has no body`]),
    ...(webhooks.some(({ seq }) => seq === webhook) ? [] : [`delivery ${id} has no webhook`]),
    ...(packet_id === null || known.has(event_id) ? [] : [`delivery ${id} has no event`]),
  ]);
}

/** Each question that has ended is kept once, and the latest one with the answer that its packet shows. */
function questionsOf({ packets = [], questions = [] }: Contents): string[] {
  const ids = questions.map(({ question_id }) => question_id);
  return [
    ...differ('ended questions', new Set(ids).size, ids.length),
    ...questions.flatMap(({ question_id, packet_id }) =>
      packets.some(({ id }) => id === packet_id) ? [] : [`the question ${question_id} has no packet`],
    ),
    ...packets.flatMap(({ state, digest, status }) => {
      const { hitl } = JSON.parse(summaryText({ state, summaryEnd: digest } as never));
      if (!hitl?.question_id) return [];
      const kept = questions.find(({ question_id }) => question_id === hitl.question_id);
      if (status === 'awaiting_human') return kept === undefined ? [] : [`the open question ${hitl.question_id} has ended`];
      return differ(`the answer to ${hitl.question_id}`, kept && JSON.parse(kept.record).answer?.response, hitl.response ?? undefined);
    }),
  ];
}

function answersOf({ idempotency = [], idempotency_packets = [], packets = [] }: Contents): string[] {
  return idempotency_packets.flatMap(({ key, packet_id }) => [
    ...(idempotency.some((answer) => answer.key === key) ? [] : [`the answer ${key} is missing`]),
    ...(packets.some(({ id }) => id === packet_id) ? [] : [`the answer ${key} has a packet that does not exist`]),
  ]);
}
