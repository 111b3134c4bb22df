// biome-ignore-all lint/style/noExcessiveLinesPerFile: the table of all commands, one row each, which is read as one.
import { deliveryStatuses, scopes, statuses, tiers, webhookEvents } from '../model/constants.ts';
import { answerLinks } from './answer-links.ts';
import { approvals } from './approvals.ts';
import { channels } from './channels.ts';
import {
  actor,
  agent,
  auditFilters,
  claimant,
  claimLease,
  configFile,
  file,
  hookFilter,
  lease,
  nextFilters,
  objectIn,
  packetFields,
  packetFilter,
  paged,
  priority,
  statusFilter,
  subject,
  subjectFilter,
  tag,
  tagsFilter,
  tenantFields,
  tierLimit,
  times,
  token,
} from './flags.ts';
import { maintenance } from './maintenance.ts';
import { done, json, list, one, shown } from './output/show.ts';
import { tableLines } from './output/table.ts';
import * as view from './output/views.ts';
import { type Fields, type Flag, type Row, row, several, whole } from './rows.ts';
import { CliError } from './terminal.ts';

/** A command whose module only that command loads: each module takes a millisecond of every start. */
const later =
  (load: () => Promise<Row['run']>): Row['run'] =>
  async (...given) =>
    (await load())(...given);

const agentId = { name: 'agent_id', text: 'its id' };
const packetId = [{ name: 'packet_id', text: 'its id' }];
const created: readonly Flag[] = [
  { flags: '--created-after <time>', text: 'only packets created at or after this time (ISO 8601)' },
  { flags: '--created-before <time>', text: 'only packets created at or before this time (ISO 8601)' },
];

const packets: readonly Row[] = [
  row('listPackets', {
    name: 'packets list',
    short: true,
    text: 'list packets, newest first by default',
    flags: [
      statusFilter,
      { flags: '--source-agent <id>', text: 'only packets from this agent' },
      { flags: '--target-agent <id>', text: 'only packets for this agent' },
      { flags: '--claimed-by <id>', text: 'only packets that this agent holds, or held last' },
      tagsFilter,
      subjectFilter,
      priority,
      { flags: '--scheduled', text: 'only packets whose not_before is still to come' },
      { flags: '--overdue', text: 'only packets that are open after their due_at' },
      { flags: '--due-before <time>', text: 'only packets with a due_at up to this time (ISO 8601)' },
      { flags: '--order <order>', text: 'newest first, oldest first, or the nearest due_at first', choices: ['desc', 'asc', 'due'] },
      ...created,
      ...paged,
    ],
    show: list(view.packetColumns, 'packets'),
  }),
  {
    name: 'packets create',
    short: true,
    text: 'create a packet from flags, or packets from a file',
    operands: [],
    flags: packetFields,
    run: later(async () => (await import('./create.ts')).createPacket),
  },
  row('claimPacket', {
    name: 'packets claim',
    short: true,
    text: 'claim a packet for an agent',
    flags: [...agent, claimLease],
    prepare: claimant,
    show: view.claimed,
  }),
  row('getPacket', {
    name: 'packets get',
    short: true,
    text: 'show a packet: its question, decisions, actions and last messages',
    flags: [{ flags: '--full', text: 'show everything in it, uncut', field: null }],
    show: view.wholePacket,
  }),
  row('packetBrief', {
    name: 'packets brief',
    text: 'show what the next agent needs to know of a packet and its ancestors',
    flags: [
      { flags: '--max-chars <n>', text: 'the maximum number of characters, 200 to 100000 (default: 4000)', parse: whole(200, 100_000) },
      { flags: '--depth <n>', text: 'the maximum number of ancestors, 0 to 50 (default: 10)', parse: whole(0, 50) },
      { flags: '--markdown', text: 'as Markdown, as an agent would get it', field: 'format' },
    ],
    prepare: ({ format, ...fields }) => (format === undefined ? fields : { ...fields, format: 'markdown' }),
    show: view.brief,
  }),
  row('searchPackets', {
    name: 'packets search',
    short: true,
    text: 'search packets by words, best match first',
    operand: { name: 'text', text: 'words, and "phrases in quotes"', field: 'q' },
    flags: [statusFilter, priority, subjectFilter, ...paged],
    show: list(view.hitColumns, 'packets', { none: 'No packets match.' }),
  }),
  {
    name: 'packets chain',
    text: 'continue a packet with a new one',
    operands: [{ name: 'packet_id', text: 'the id of the parent' }],
    flags: packetFields,
    run: later(async () => (await import('./create.ts')).chainPacket),
  },
  row('claimNext', {
    name: 'packets next',
    text: 'claim the next packet: the highest priority first, then the oldest',
    flags: [
      ...agent,
      ...nextFilters,
      { flags: '--order <order>', text: 'within a priority, the oldest first, or the nearest due_at', choices: ['priority', 'due'] },
      claimLease,
    ],
    prepare: claimant,
    show: (context, answer, options) => {
      if (answer.body === undefined) throw new CliError(noneFor(options as Fields), 1);
      view.claimed(context, { ...answer, body: answer.body }, options);
    },
  }),
  {
    name: 'packets update',
    text: 'change a packet by flags or a file',
    operands: packetId,
    flags: [
      file('a JSON or YAML file with the changes to merge into it; - reads standard input'),
      { flags: '--status <status>', text: 'the status to move to', choices: statuses },
      { flags: '--summary <text>', text: 'the new summary' },
      priority,
      { ...tag, text: 'the new tags (repeatable)' },
      { ...subject, text: 'the new ids of people whose data it holds (repeatable)' },
      ...times('; none removes it'),
      { flags: '--if-match <etag>', text: 'change it only if this is still its ETag' },
      token,
    ],
    run: later(async () => (await import('./create.ts')).updatePacket),
  },
  row('patchPacket', {
    name: 'packets complete',
    text: 'complete a packet',
    flags: [token],
    body: { status: 'completed' },
    show: view.onePacket,
  }),
  row('patchPacket', {
    name: 'packets fail',
    text: 'mark a packet as failed',
    flags: [token],
    body: { status: 'failed' },
    show: view.onePacket,
  }),
  row('askQuestion', {
    name: 'packets ask',
    text: 'ask a person a question; the packet awaits the answer',
    flags: [
      { flags: '--question <text>', text: 'the question; with --action it may be left out' },
      { flags: '--reason <text>', text: 'why a person must answer it' },
      { flags: '--option <text>', text: 'a possible answer (repeatable)', field: 'options', parse: several },
      { flags: '--strict-options', text: 'the answer must be one of the options' },
      { flags: '--schema <json>', text: 'the form to fill in: a JSON Schema of a flat object', parse: objectIn },
      { flags: '--action <json>', text: 'the tool call to approve: {"tool": "refund", "arguments": {...}}', parse: objectIn },
      { flags: '--responder <name>', text: 'who is asked: a name or a mail address' },
      { flags: '--exclude-source', text: 'the key that asks may not answer' },
      { flags: '--require-verified', text: 'only a person whose name is verified may answer' },
      {
        flags: '--timeout <seconds>',
        text: 'how long to wait for the answer (default: no limit)',
        field: 'timeout_seconds',
        parse: whole(1, 1_000_000_000),
      },
      { flags: '--on-timeout <end>', text: 'what happens then (default: keep)', choices: ['keep', 'fail', 'expire'] },
      {
        flags: '--remind-after <seconds>',
        text: 'when to remind the channels once',
        field: 'remind_after_seconds',
        parse: whole(1, 1_000_000_000),
      },
      { flags: '--key <name>', text: 'your own name of the question; asked again with it, it is the same question' },
      token,
    ],
    show: view.onePacket,
  }),
  row('deletePacket', {
    name: 'packets delete',
    text: 'expire a packet, or remove it with --hard',
    flags: [{ flags: '--hard', text: 'remove the packet and its history permanently' }, actor, token],
    show: done('The packet is deleted.'),
  }),
  row('releasePacket', {
    name: 'packets release',
    text: 'return a packet to created, so that others can claim it',
    flags: [actor, token],
    show: view.onePacket,
  }),
  row('renewLease', {
    name: 'packets renew',
    text: 'renew the lease of a packet from now',
    flags: [
      { ...token, text: "the token of the packet's lease", required: true },
      lease('the duration from now (default: the previous duration)'),
    ],
    show: shown((body, { quiet }) => (quiet ? [] : view.leaseLines(body))),
  }),
  row('listAwaiting', {
    name: 'packets awaiting',
    text: 'list the packets that await a person',
    flags: paged,
    show: list(view.awaitingColumns, 'questions', { none: 'No packet awaits a person.' }),
  }),
  {
    name: 'packets watch',
    text: 'show events of packets as they happen; reconnects and resumes when the connection breaks',
    operands: [],
    flags: [
      { ...statusFilter, text: 'only events after which a packet has one of these statuses, comma-separated' },
      { ...packetFilter('only events of this packet (repeatable)'), parse: several },
      { flags: '--agent <id>', text: 'only events of this agent (repeatable)', parse: several },
      { flags: '--since <event_id>', text: 'start after this event' },
    ],
    run: later(async () => (await import('./watch.ts')).watch),
  },
];

function noneFor({ agentId, agent = agentId, targetAgent = agent, tags, priority, wait = 0 }: Fields): string {
  const whose = targetAgent === '*' ? '' : ` for ${targetAgent}`;
  const which = tags === undefined && priority === undefined ? '' : ' with these tags and priorities';
  return wait === 0 ? `No packet is available${whose}${which}.` : `No packet${whose}${which} became available in time.`;
}

const trail: readonly Row[] = [
  row('packetHistory', {
    name: 'history',
    text: "show a packet's history, oldest first",
    show: shown((body, { out }) => tableLines(view.historyColumns, body.events, out.columns)),
  }),
  row('listAudit', {
    name: 'audit',
    text: "show the tenant's audit log, newest first",
    flags: [...auditFilters, { flags: '--cursor <cursor>', text: 'the next_cursor of the page before, instead of --offset' }, ...paged],
    show: list(view.auditColumns, 'entries'),
  }),
  {
    name: 'audit export',
    text: 'print the audit log with its chain of digests, oldest first',
    operands: [],
    flags: [
      { flags: '--from <position>', text: 'the first position (default: 1)' },
      { flags: '--to <position>', text: 'the last position (default: that of the head)' },
      { flags: '--as <format>', text: 'jsonl (default), or csv for spreadsheets, without digests', choices: ['jsonl', 'csv'] },
      ...auditFilters,
    ],
    run: later(async () => (await import('./audit.ts')).exportAudit),
  },
  {
    name: 'audit verify',
    text: 'check an exported audit log, or those in a database, without a service: every digest, gaps, order, and with a key the signature',
    operands: [{ name: 'file', text: 'a file that audit export or GET /audit/export wrote', optional: true }],
    flags: [
      { flags: '--head <head>', text: 'a head that was kept elsewhere: POSITION:DIGEST, or a file with the answer of GET /audit/head' },
      { flags: '--key <file>', text: 'the public key of the signature, as PEM', completion: 'file' },
      { flags: '--database', text: 'check the audit logs of all tenants in the database of the settings, instead of a file' },
      { flags: '--tenant <id>', text: 'with --database: only this tenant' },
      configFile,
    ],
    run: later(async () => (await import('./audit.ts')).verifyAudit),
  },
  {
    name: 'respond',
    text: "answer a packet's question; without --response it shows the question and prompts for the answer",
    operands: packetId,
    flags: [
      { flags: '--response <text>', text: 'the answer' },
      { flags: '--by, --responded-by <name>', text: 'the person who answers (default: the responder of the key; asked for on a terminal)' },
      { flags: '--notes <text>', text: 'additional remarks' },
    ],
    run: later(async () => (await import('./respond.ts')).respond),
  },
  row('listAgents', {
    name: 'agents',
    text: 'list the agents, most recently seen first, with the packets they hold and that wait for them',
    flags: paged,
    show: list(view.agentColumns, 'agents', { id: 'agent_id' }),
  }),
  {
    name: 'agents contract set',
    text: 'publish what packets for an agent must contain; the service refuses other new ones',
    operands: [agentId, { name: 'file', text: 'a JSON or YAML file with {schema, description, examples}; - reads standard input' }],
    flags: [{ flags: '--if-match <etag>', text: 'change it only if this is still its ETag' }],
    run: later(async () => (await import('./contracts.ts')).setContract),
  },
  row('getContract', { name: 'agents contract get', text: 'show what packets for an agent must contain', show: view.oneContract }),
  row('deleteContract', {
    name: 'agents contract remove',
    text: 'remove the contract of an agent: new packets for it are no longer checked',
    show: done('The contract is removed.'),
  }),
  {
    name: 'agents contract check',
    text: 'say whether a packet would be created or why not, and create nothing',
    operands: [{ name: 'file', text: 'a JSON or YAML file with the packet; - reads standard input' }],
    run: later(async () => (await import('./contracts.ts')).checkPacket),
  },
  row('getStats', {
    name: 'stats',
    text: 'show how many packets wait, are held and ended, by hour',
    flags: [{ flags: '--since <time>', text: 'since this time (ISO 8601; default: a day ago)' }],
    show: shown(view.statsLines),
  }),
];

const events = (text: string): Flag => ({
  flags: '--event <event>',
  text: `an event type to subscribe to (${text}): ${webhookEvents.join(', ')}`,
  field: 'events',
  completion: webhookEvents,
  parse: several,
});

const hooks: readonly Row[] = [
  row('listWebhooks', { name: 'hooks list', text: 'list the webhooks', show: list(view.hookColumns, 'hooks', { none: 'No webhooks.' }) }),
  row('createWebhook', {
    name: 'hooks create',
    text: 'register a webhook',
    flags: [
      { flags: '--url <url>', text: 'where deliveries go: an https URL with a public address', required: true },
      events('repeatable; default: all but packet.overdue and audit.head'),
      {
        flags: '--secret <text>',
        text: 'signs every delivery, at least 16 characters; SERVICE_WEBHOOK_SECRET keeps it out of the process list',
        required: true,
        secret: { what: 'a secret', variable: 'SERVICE_WEBHOOK_SECRET' },
      },
    ],
    show: one(view.hookLines),
  }),
  row('patchWebhook', {
    name: 'hooks update',
    text: 'change a webhook',
    flags: [
      { flags: '--url <url>', text: 'where to send deliveries from now on' },
      events('repeatable; replaces the whole list'),
      {
        flags: '--secret [text]',
        text: 'the new secret (without a value: SERVICE_WEBHOOK_SECRET); the old one remains valid for a day',
        secret: { what: 'a secret', variable: 'SERVICE_WEBHOOK_SECRET' },
      },
      { flags: '--active', text: 'activate it' },
      { flags: '--no-active', text: 'deactivate it' },
    ],
    prepare: (fields) => {
      if (Object.keys(fields).length === 0) throw new CliError('Nothing to change: use --url, --event, --secret, --active or --no-active.');
      return fields;
    },
    show: one(view.hookLines),
  }),
  row('pingWebhook', { name: 'hooks ping', text: 'send a test delivery', show: one(view.deliveryLines) }),
  row('deleteWebhook', { name: 'hooks delete', text: 'remove a webhook', show: done('The webhook is removed.') }),
  row('listDeliveries', {
    name: 'hooks deliveries',
    text: "list a webhook's deliveries, newest first",
    flags: [{ flags: '--status <status>', text: 'only deliveries of this status', choices: deliveryStatuses }, ...paged],
    show: list(view.deliveryColumns, 'deliveries'),
  }),
  row('getDelivery', { name: 'hooks delivery', text: 'show a delivery and what it sends', show: one(view.deliveryDetailLines) }),
  row('listDeadLetters', {
    name: 'hooks dlq',
    text: 'list the dead letters: deliveries that used up their attempts',
    flags: [hookFilter, ...paged],
    show: list(view.deliveryColumns, 'dead letters'),
  }),
  row('replayDeadLetter', { name: 'hooks replay', text: 'send a dead letter again', show: done('The delivery is queued again.') }),
  row('retryAll', {
    name: 'hooks retry-all',
    text: 'retry the failed deliveries and dead letters that are due',
    flags: [
      hookFilter,
      { flags: '--since <time>', text: 'only events at or after this time (ISO 8601)' },
      { flags: '--until <time>', text: 'only events at or before this time (ISO 8601)' },
      { flags: '--force', text: 'include deliveries that are not yet due' },
    ],
    show: shown(({ retried, skipped, remaining }) => [`${retried} retried, ${skipped} skipped (webhook inactive), ${remaining} remaining`]),
  }),
];

const keys: readonly Row[] = [
  row('createKey', {
    name: 'keys create',
    text: 'create an API key; it is shown only once',
    flags: [
      { flags: '--name <name>', text: 'what the key is for', required: true },
      { flags: '--tenant-id <id>', text: 'the tenant to create it for (default: your own); needs an admin key' },
      { flags: '--tier <tier>', text: "at most the tenant's tier, which is the default", choices: tiers },
      { flags: '--admin', text: 'create an admin key; needs an admin key' },
      {
        flags: '--scope <scope>',
        text: `what it may do (repeatable; default: all): ${scopes.join(', ')}`,
        field: 'scopes',
        completion: scopes,
        parse: several,
      },
      { flags: '--agent <agent>', text: 'an agent that it may act as (repeatable; default: any)', field: 'agents', parse: several },
      { flags: '--responder <name>', text: 'the person in whose name it answers (default: any)' },
      {
        flags: '--sees <what>',
        text: 'which packets it sees: all, or those of its agents and queues (recommended for agents)',
        choices: ['all', 'own'],
      },
      {
        flags: '--queue <agent>',
        text: 'with --sees own, a target agent whose packets it also sees and claims (repeatable; default: its agents)',
        field: 'queues',
        parse: several,
      },
    ],
    show: view.newKey,
  }),
  row('listKeys', { name: 'keys list', text: 'list the API keys', show: list(view.keyColumns, 'keys') }),
  row('rotateKey', {
    name: 'keys rotate',
    text: 'create a key that replaces this one; it is shown only once',
    flags: [
      {
        flags: '--overlap <seconds>',
        text: 'how long the old key remains valid (default: 3600)',
        field: 'overlap_seconds',
        parse: whole(0, 604_800),
      },
    ],
    show: view.newKey,
  }),
  row('deleteKey', { name: 'keys delete', text: 'revoke an API key immediately', show: done('The key is revoked.') }),
];

const tenantName: Flag = { flags: '--name <name>', text: 'the name of the tenant' };
const tenantOptions: readonly Flag[] = [
  { flags: '--tier <tier>', text: 'its tier', choices: tiers },
  { flags: '--handoffs-per-day <n>', text: "the maximum number of packets per UTC day; tier for the tier's default", parse: tierLimit },
  {
    flags: '--requests-per-hour <n>',
    text: "the maximum number of requests per hour; tier for the tier's default",
    parse: tierLimit,
  },
  { flags: '--max-api-keys <n>', text: 'the maximum number of API keys it may have', parse: whole(0, 100_000) },
];

const tenants: readonly Row[] = [
  row('listTenants', { name: 'tenants list', text: 'list the tenants', show: list(view.tenantColumns, 'tenants') }),
  row('createTenant', {
    name: 'tenants create',
    text: 'create a tenant',
    flags: [...tenantOptions, { ...tenantName, required: true }],
    prepare: tenantFields,
    show: one(view.tenantLines),
  }),
  row('getTenant', { name: 'tenants get', text: 'show a tenant', show: one(view.tenantLines) }),
  row('patchTenant', {
    name: 'tenants update',
    text: 'change a tenant',
    flags: [...tenantOptions, tenantName],
    prepare: tenantFields,
    show: one(view.tenantLines),
  }),
  row('deleteTenant', {
    name: 'tenants delete',
    text: 'delete a tenant: its data stays, its keys are refused immediately',
    show: done('The tenant is deleted.'),
  }),
  row('listTenantKeys', { name: 'tenants keys', text: "list a tenant's API keys", show: list(view.keyColumns, 'keys') }),
];

const local: readonly Row[] = [
  {
    name: 'approve-hook',
    text: "answer a hook of Claude Code or Codex: ask about the tool call on standard input, wait, and print the hook's decision",
    operands: [],
    flags: [
      { flags: '--agent <id>', text: 'the agent that asks (default: claude-code or codex)' },
      {
        flags: '--only <glob>',
        text: 'ask only about tools with such names, such as mcp__* (repeatable); others are left to the program',
        parse: several,
      },
      {
        flags: '--timeout <seconds>',
        text: 'how long to wait for a decision; below the timeout of the hook',
        parse: whole(1, 86_400),
        value: 590,
      },
      { flags: '--defer', text: 'with PreToolUse: do not wait, but let claude -p end, which asks again when it is resumed' },
    ],
    help: '\nWithout a decision the exit code is 2, at which both programs block the call. See docs/approvals.md.',
    run: later(async () => (await import('./approve-hook.ts')).approveHook),
  },
  {
    name: 'serve',
    text: 'run the service',
    operands: [],
    flags: [
      { flags: '--host <host>', text: 'the address to listen on (default 0.0.0.0)' },
      { flags: '--port <port>', text: 'the port to listen on; 0 picks a free one (default 8080)' },
      configFile,
      { flags: '--reload', text: 'restart whenever a source file changes; for development' },
    ],
    run: later(async () => (await import('./serve.ts')).serve),
  },
  {
    name: 'mcp',
    text: 'serve the tools of the service to an agent (MCP over standard input and output)',
    operands: [],
    flags: [{ flags: '--agent <id>', text: 'the id of the agent; without it each tool asks for agent_id' }],
    run: later(async () => (await import('./mcp.ts')).mcp),
  },
  {
    name: 'admin-key',
    text: 'create an admin key directly in the database of the settings, which must exist, even while the service runs',
    operands: [],
    flags: [configFile],
    run: later(async () => (await import('./serve.ts')).adminKey),
  },
  ...maintenance,
  {
    name: 'open',
    text: "print the address of the service's interactive documentation",
    operands: [],
    run: async ({ config, out }) => out.line(`${(await config()).serverUrl.replace(/\/api\/v1$/, '')}/docs`),
  },
];

const scheduleName = { name: 'name', text: 'its name' };
const schedules: readonly Row[] = [
  row('listSchedules', {
    name: 'schedules list',
    text: 'list the schedules, by name',
    flags: paged,
    show: list(view.scheduleColumns, 'schedules', { none: 'No schedules.', id: 'name' }),
  }),
  row('getSchedule', { name: 'schedules get', text: 'show a schedule', show: json }),
  {
    name: 'schedules set',
    text: 'write a schedule, which makes its packets in the name of your key',
    operands: [scheduleName, { name: 'file', text: 'a JSON or YAML file with {cron, timezone, packet, ...}; - reads standard input' }],
    flags: [{ flags: '--if-match <etag>', text: 'change it only if this is still its ETag' }],
    run: later(async () => (await import('./schedules.ts')).setSchedule),
  },
  row('deleteSchedule', { name: 'schedules remove', text: 'remove a schedule; its packets stay', show: done('The schedule is removed.') }),
  row('runSchedule', { name: 'schedules run', text: 'make the packet of a schedule now', show: view.onePacket }),
  row('nextTimes', {
    name: 'schedules next',
    text: 'show the next times of a schedule',
    flags: [{ flags: '--count <n>', text: 'how many (default: 5)', parse: whole(1, 100) }],
    show: shown(({ times }) => times),
  }),
];

/** Every command, in the order of help. */
export const commands: readonly Row[] = [
  ...packets,
  ...answerLinks,
  ...approvals,
  ...schedules,
  ...trail,
  ...hooks,
  ...channels,
  ...keys,
  ...tenants,
  ...local,
];

/** The groups of commands: the names of their commands without the last word. */
export const groups: Readonly<Record<string, string>> = {
  approvals: 'ask about tool calls, and decide about them',
  policies: 'say who must be asked before an agent calls a tool',
  groups: 'name people together, for policies',
  delegations: 'say who approves in whose place',
  schedules: 'make packets again and again',
  standing: 'list and revoke what people have approved for later',
  'agents contract': 'publish what packets for an agent must contain, and check packets',
  packets: 'create, find and work on packets',
  hooks: 'register webhooks, and retry failed deliveries',
  channels: 'notify people of questions by mail or Slack',
  keys: 'create, list, rotate and revoke API keys',
  tenants: 'manage tenants; needs an admin key',
};
