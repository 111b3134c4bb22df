import type { StreamEvent, StreamReset } from '../../client/client.ts';
import type { Agent } from '../../model/agent.ts';
import type { AnswerLink, NewAnswerLink } from '../../model/answer-link.ts';
import type { AuditEntry } from '../../model/audit.ts';
import type { Brief } from '../../model/brief.ts';
import type { Channel } from '../../model/channel.ts';
import type { Status } from '../../model/common.ts';
import type { Contract } from '../../model/contract.ts';
import type { ApiKey, NewApiKey } from '../../model/key.ts';
import { choicesOf } from '../../model/options.ts';
import type { HistoryEvent, Lease, Packet, PacketSummary } from '../../model/packet.ts';
import type { Schedule } from '../../model/schedule.ts';
import type { Stats, StatsHour } from '../../model/stats.ts';
import type { Tenant } from '../../model/tenant.ts';
import type { Delivery, DeliveryDetail, Webhook } from '../../model/webhook.ts';
import { questionAtChange } from '../../rules/question-state.ts';
import type { Context } from '../context.ts';
import { one, type Show, shown } from './show.ts';
import { type Column, pairLines, tableLines } from './table.ts';
import { type Colour, cut, oneLine } from './text.ts';
import type { Line } from './writer.ts';

const colours: Record<Status, Colour> = {
  created: 'blue',
  claimed: 'cyan',
  in_progress: 'cyan',
  awaiting_human: 'yellow',
  completed: 'green',
  failed: 'red',
  expired: 'grey',
};

type Listed = Packet | PacketSummary;
const minute = (moment: string) => `${moment.slice(0, 10)} ${moment.slice(11, 16)}`;
const details = (value: object) => (Object.keys(value).length === 0 ? null : JSON.stringify(value));
const id = { title: 'ID', value: (row: { id: string }) => row.id };
const created = { title: 'CREATED', value: (row: { created_at: string }) => row.created_at };

/** The columns of a list of packets, most important first. */
export const packetColumns: readonly Column<Listed>[] = [
  id,
  { title: 'STATUS', value: ({ status }) => status, colour: ({ status }) => colours[status] },
  { title: 'PRIORITY', value: ({ metadata }) => metadata.priority },
  { title: 'SUMMARY', value: ({ context }) => context.summary, least: 12 },
  { title: 'FROM', value: ({ metadata }) => metadata.source_agent.id, least: 8 },
  { title: 'TO', value: ({ metadata }) => metadata.target_agent.id, least: 8 },
  { title: 'CREATED', value: ({ created_at }) => minute(created_at) },
];

/** The columns of search results, with the snippet instead of the summary. */
export const hitColumns: readonly Column<Listed & { snippet: string }>[] = [
  ...packetColumns.slice(0, 3),
  { title: 'FOUND', value: ({ snippet }) => snippet, least: 12 },
  ...packetColumns.slice(4),
];

/** The columns of a list of open questions. */
export const awaitingColumns: readonly Column<Listed>[] = [
  id,
  { title: 'UNTIL', value: ({ hitl }) => (hitl?.expires_at ? minute(hitl.expires_at) : null) },
  { title: 'QUESTION', value: ({ hitl }) => hitl?.question, least: 12 },
  { title: 'HELD BY', value: ({ claimed_by }) => claimed_by?.agent_id, least: 8 },
];

export const agentColumns: readonly Column<Agent>[] = [
  { title: 'ID', value: ({ agent_id }) => agent_id },
  { title: 'LAST SEEN', value: ({ last_seen_at }) => last_seen_at },
  { title: 'HOLDING', value: ({ holding }) => holding },
  { title: 'WAITING', value: ({ waiting }) => waiting },
  { title: 'CONTRACT', value: ({ contract }) => contract },
];

const hourColumns: readonly Column<StatsHour>[] = [
  { title: 'HOUR', value: ({ hour }) => minute(hour) },
  ...(['created', 'completed', 'failed', 'expired', 'answered', 'waiting', 'held', 'asked'] as const).map((name) => ({
    title: name.toUpperCase(),
    value: (row: StatsHour) => row[name],
  })),
];

/** The totals, and each hour as a row. */
export const statsLines = ({ since, questions, work, deliveries, hours }: Stats, { out }: Context): Line[] => [
  ...pairLines([
    ['Since', since],
    ['Open questions', questions.open],
    ['Oldest question', questions.oldest_asked_at],
    ['Questions answered', questions.answered],
    ['Median time to an answer', questions.median_answer_seconds === null ? null : `${questions.median_answer_seconds} s`],
    ['Packets waiting', work.waiting],
    ['Oldest packet waiting', work.oldest_waiting_at],
    ['Packets held', work.held],
    ['Packets created', work.created],
    ['Packets completed', work.completed],
    ['Packets failed', work.failed],
    ['Packets expired', work.expired],
    ['Deliveries waiting', deliveries.waiting],
    ['Failing webhooks and channels', deliveries.failing],
    ['Dead letters', deliveries.dead_letters],
  ]),
  '',
  ...tableLines(hourColumns, hours, out.columns),
];

export const historyColumns: readonly Column<HistoryEvent>[] = [
  { title: 'TIME', value: ({ timestamp }) => timestamp },
  { title: 'EVENT', value: ({ event_type }) => event_type },
  { title: 'ACTOR', value: ({ actor }) => actor, least: 12 },
  { title: 'DETAILS', value: (event) => details(event.details), least: 8 },
];

export const auditColumns: readonly Column<AuditEntry>[] = [
  { title: 'TIME', value: ({ timestamp }) => timestamp },
  { title: 'ACTION', value: ({ action }) => action },
  { title: 'RESOURCE', value: ({ resource }) => resource },
  { title: 'PACKET', value: ({ packet_id }) => packet_id },
  { title: 'ACTOR', value: ({ actor }) => actor, least: 12 },
  { title: 'DETAILS', value: (entry) => details(entry.details), least: 8 },
];

export const hookColumns: readonly Column<Webhook>[] = [
  id,
  { title: 'ACTIVE', value: ({ active, disabled_reason }) => (active ? 'yes' : (disabled_reason ?? 'no')) },
  { title: 'URL', value: ({ url }) => url, least: 16 },
  { title: 'EVENTS', value: ({ events }) => events.join(','), least: 8 },
  created,
];

export const channelColumns: readonly Column<Channel>[] = [
  id,
  { title: 'ACTIVE', value: ({ active, disabled_reason }) => (active ? 'yes' : (disabled_reason ?? 'no')) },
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'TARGET', value: ({ target }) => target, least: 16 },
  { title: 'RESPONDER', value: ({ responder }) => responder },
  { title: 'EVENTS', value: ({ events }) => events.join(','), least: 8 },
  created,
];

export const deliveryColumns: readonly Column<Delivery>[] = [
  id,
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'EVENT', value: ({ event_type }) => event_type },
  { title: 'TRIES', value: ({ attempts }) => attempts },
  { title: 'ERROR', value: ({ last_error, last_status_code }) => last_status_code ?? last_error },
  { title: 'NEXT TRY', value: ({ next_retry_at }) => next_retry_at },
  { title: 'PACKET', value: ({ packet_id }) => packet_id },
];

export const keyColumns: readonly Column<ApiKey>[] = [
  id,
  { title: 'NAME', value: ({ name }) => name, least: 8 },
  { title: 'TIER', value: ({ tier }) => tier },
  { title: 'PREFIX', value: ({ prefix }) => prefix },
  { title: 'ADMIN', value: ({ admin }) => (admin ? 'yes' : 'no') },
  { title: 'SCOPES', value: ({ scopes }) => scopes.join(', ') },
  {
    title: 'ACTS AS',
    value: ({ agents, responder }) => [...(agents ?? []), ...(responder === null ? [] : [responder])].join(', ') || 'any',
  },
  created,
];

export const answerLinkColumns: readonly Column<AnswerLink>[] = [
  id,
  { title: 'STATUS', value: ({ status }) => status },
  { title: 'RESPONDER', value: ({ responder }) => responder ?? 'anyone' },
  { title: 'EXPIRES', value: ({ expires_at }) => expires_at },
];

export const tenantColumns: readonly Column<Tenant>[] = [
  id,
  { title: 'NAME', value: ({ name }) => name, least: 8 },
  { title: 'TIER', value: ({ tier }) => tier },
  { title: 'PER DAY', value: ({ handoffs_per_day }) => handoffs_per_day ?? 'by tier' },
  { title: 'PER HOUR', value: ({ requests_per_hour }) => requests_per_hour ?? 'by tier' },
  { title: 'KEYS', value: ({ max_api_keys }) => max_api_keys },
  created,
];

type Pair = readonly [string, string | number | null | undefined];

/** A packet as lines of names and values. */
const packetLines = (packet: Packet): string[] => pairLines([...headPairs(packet), ...workPairs(packet)]);

export const scheduleColumns: readonly Column<Schedule>[] = [
  { title: 'NAME', value: ({ name }) => name },
  { title: 'CRON', value: ({ cron }) => cron },
  { title: 'ZONE', value: ({ timezone }) => timezone, least: 8 },
  { title: 'NEXT', value: ({ next_at, disabled_reason }) => next_at ?? (disabled_reason === null ? 'off' : 'disabled') },
  { title: 'LAST', value: ({ last_at }) => last_at },
  { title: 'FAILED', value: ({ last_error }) => last_error?.detail, least: 12 },
];

/** Shows a contract. With --quiet: the id of its agent. */
export const oneContract = shown<Contract | undefined>((contract, { quiet }) => {
  if (contract === undefined) return [];
  const { agent_id, version, description, schema, examples, updated_at } = contract;
  if (quiet) return [agent_id];
  const pairs: readonly Pair[] = [
    ['Agent', agent_id],
    ['Version', version],
    ['Description', description],
    ['Updated', updated_at],
    ...examples.map((example) => ['Example', JSON.stringify(example)] as const),
  ];
  return [...pairLines(pairs), ...JSON.stringify(schema, null, 2).split('\n')];
});

/** Shows a packet. With --quiet: its id. */
export const onePacket: Show<Packet> = one(packetLines);

/** How many messages `packets get` shows without --full, and how much of each value. */
const shownMessages = 3;
const shownText = 500;

/** `packets get`: a packet with its question, decisions, actions and last messages; with --full everything in it, uncut. */
export const wholePacket: Show<Packet | undefined> = (context, answer, { full = false }) => {
  const { body } = answer;
  if (body === undefined) return;
  const { conversation_state: messages = [], artifacts = [], custom } = body.context;
  const brief = (value: unknown) => {
    const text = oneLine(typeof value === 'string' ? value : JSON.stringify(value));
    return full ? text : cut(text, shownText);
  };
  const shownTurns = full ? messages : messages.slice(-shownMessages);
  const pairs: readonly Pair[] = [
    ...headPairs(body),
    ...workPairs(body, full),
    ...artifacts.map(({ key, value }) => ['Artifact', full ? `${key}: ${brief(value)}` : key] as const),
    ['Custom', full && custom !== undefined ? brief(custom) : null],
    ['Messages', shownTurns.length < messages.length ? `the last ${shownTurns.length} of ${messages.length}; --full shows all` : null],
    ...shownTurns.map(({ role, content }) => ['Message', `${role}: ${brief(content)}`] as const),
  ];
  shown(() => (context.quiet ? [body.id] : pairLines(pairs)))(context, answer, {});
};

function headPairs(packet: Packet): Pair[] {
  const { metadata, context, claimed_by, lease } = packet;
  return [
    ['ID', packet.id],
    ['Status', packet.status],
    ['Priority', metadata.priority],
    ['From', `${metadata.source_agent.name} (${metadata.source_agent.id})`],
    ['To', `${metadata.target_agent.name} (${metadata.target_agent.id})`],
    ['Tags', metadata.tags.join(', ')],
    ['Parent', packet.parent_packet_id],
    ['Claimed by', claimed_by && `${claimed_by.agent_name} (${claimed_by.agent_id}) at ${packet.claimed_at}`],
    ['Lease', lease && (lease.expires_at === null ? suspended : `until ${lease.expires_at}`)],
    ['Token', lease?.token],
    ['Created', packet.created_at],
    ['Updated', packet.updated_at],
    ['Revision', packet.revision],
    ['Summary', context.summary],
  ];
}

function workPairs(packet: Packet, full = false): Pair[] {
  const { decisions, actions, dependencies } = packet;
  const latest = questionAtChange(packet);
  const question = latest.state === 'none' ? undefined : latest.question;
  const answer = latest.state === 'answered' ? latest.answer : undefined;
  const options = choicesOf(question?.options).map(({ value, label }) => (value === label ? value : `${label} (${value})`));
  return [
    ['Question', question?.question],
    ['Why', question?.reason],
    ...options.map((option, index) => [`Option ${index + 1}`, option] as const),
    ['Answer by', answer === undefined && latest.state !== 'none' && latest.state !== 'draft' ? latest.asked.expires_at : null],
    [
      'Answer',
      answer &&
        `${answer.response} (${[answer.responded_by, answer.answered_by?.verified === false ? 'typed, not verified' : '', answer.partial ? 'given on a part of the text' : ''].filter(Boolean).join(', ')})`,
    ],
    ['Notes', answer?.notes],
    ...decisions.flatMap(({ decision, rationale, alternatives }): Pair[] => [
      ['Decision', decision],
      ['Rationale', full ? rationale : null],
      ['Alternatives', full && alternatives !== undefined ? JSON.stringify(alternatives) : null],
    ]),
    ...actions.pending.map(({ description, assignee }) => ['Pending', `${description} (${assignee})`] as const),
    ...actions.completed.map(({ description, result }) => ['Completed', `${description}: ${result}`] as const),
    ...actions.failed.map(({ description, error }) => ['Failed', `${description}: ${error}`] as const),
    ...dependencies.map(({ description }) => ['Depends on', description] as const),
  ];
}

const suspended = 'suspended while the packet awaits a person';

/** Shows a claimed packet. With --quiet: its id, a space, and its lease token, which is not shown again. */
export const claimed: Show<Packet> = shown((packet, { quiet }) => {
  if (!quiet) return packetLines(packet);
  return [packet.lease?.token === undefined ? packet.id : `${packet.id} ${packet.lease.token}`];
});

/** Shows values that are shown only once, and warns of that. With --quiet: only the value of the first pair. */
function once<Body>(warning: string, pairsOf: (body: Body) => readonly [readonly [string, string], ...Pair[]]): Show<Body> {
  return (context, answer, options) => {
    const pairs = pairsOf(answer.body);
    shown(() => (context.quiet ? [pairs[0][1]] : pairLines(pairs)))(context, answer, options);
    if (context.format !== 'json') context.say(warning);
  };
}

/** Shows a new key. With --quiet only the key. */
export const newKey = once(
  'Store the key now: it is not shown again.',
  ({ id, key, name, tier, scopes, agents, responder, queues }: NewApiKey) => [
    ['Key', key],
    ['ID', id],
    ['Name', name],
    ['Tier', tier],
    ['Scopes', scopes.join(', ')],
    ['Agents', agents?.join(', ')],
    ['Responder', responder],
    ['Sees', queues === null ? null : `its own, and the queues ${queues.join(', ')}`],
  ],
);

/** A brief: the text as it is if Markdown was asked for, else a heading for each packet and each part. */
export const brief: Show<Brief | string> = (context, { body, text }) => {
  if (context.format === 'json') return context.out.json(typeof body === 'string' ? JSON.stringify(body) : text);
  if (typeof body === 'string') return context.out.block(body);
  let packet: string | undefined;
  for (const { packet_id, kind, text: part } of body.sections) {
    if (packet_id !== packet) context.out.line(`Packet ${packet_id}`);
    packet = packet_id;
    context.out.block(`  ${kind}: ${part.replaceAll('\n', '\n    ')}\n`);
  }
  for (const { packet_id, kind, count } of body.omitted) context.out.line(`Left out of packet ${packet_id}: ${kind} (${count})`);
};

/** Shows a new answer link. With --quiet only its address. */
export const newAnswerLink = once(
  'Anyone with this address can answer. It is not shown again.',
  ({ id, url, responder, expires_at }: NewAnswerLink) => [
    ['URL', url],
    ['ID', id],
    ['Responder', responder],
    ['Expires', expires_at],
  ],
);

export const leaseLines = ({ lease: { generation, expires_at } }: { lease: Lease }) =>
  pairLines([
    ['Generation', generation],
    ['Until', expires_at ?? suspended],
  ]);

export const hookLines = (hook: Webhook) =>
  pairLines([
    ['ID', hook.id],
    ['URL', hook.url],
    ['Active', hook.active ? 'yes' : `no ${hook.disabled_reason ?? ''}`],
    ['Events', hook.events.join(', ')],
    ['Created', hook.created_at],
  ]);

export const channelLines = (channel: Channel) =>
  pairLines([
    ['ID', channel.id],
    ['Kind', channel.kind],
    ['Target', channel.target],
    ['Name', channel.name ?? ''],
    ['Responder', channel.responder ?? 'anybody'],
    ['Active', channel.active ? 'yes' : `no ${channel.disabled_reason ?? ''}`],
    ['Events', channel.events.join(', ')],
    ...(channel.warnings ?? []).map((warning) => ['Warning', warning] as const),
    ['Created', channel.created_at],
  ]);

const deliveryPairs = (delivery: Delivery): [string, string][] => [
  ['ID', delivery.id],
  ['Webhook', delivery.webhook_id],
  ['Event', delivery.event_type],
  ['Status', delivery.status],
  ['Created', delivery.created_at],
];

export const deliveryLines = (delivery: Delivery) => pairLines(deliveryPairs(delivery));

export const deliveryDetailLines = (delivery: DeliveryDetail) =>
  pairLines([
    ...deliveryPairs(delivery),
    ['Event ID', delivery.event_id],
    ['Attempts', String(delivery.attempts)],
    ['Last status', String(delivery.last_status_code ?? 'none')],
    ['Last error', delivery.last_error ?? 'none'],
    ['Next retry', delivery.next_retry_at ?? 'none'],
    ['Body', delivery.body ?? 'made when it is sent'],
  ]);

export const tenantLines = (tenant: Tenant) =>
  pairLines([
    ['ID', tenant.id],
    ['Name', tenant.name],
    ['Tier', tenant.tier],
    ['Packets per day', tenant.handoffs_per_day ?? 'by tier'],
    ['Requests per hour', tenant.requests_per_hour ?? 'by tier'],
    ['API keys', `at most ${tenant.max_api_keys}`],
    ['Created', tenant.created_at],
    ['Updated', tenant.updated_at],
  ]);

/** An event of the stream as one line. */
export function eventLine(event: StreamEvent | StreamReset): string {
  if (!('packet_id' in event)) return `reset  ${oneLine(event.reason)}`;
  const { timestamp, type, packet_id, data } = event;
  const fields = [timestamp, type.padEnd(22), packet_id, data?.status ?? '-', oneLine(data?.context.summary ?? '')];
  return fields.join('  ').trimEnd();
}
