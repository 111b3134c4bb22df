import { statuses } from '../model/constants.ts';
import {
  actor,
  agent,
  claimant,
  claimLease,
  file,
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
  times,
  token,
} from './flags.ts';
import { done, list, shown } from './output/show.ts';
import * as view from './output/views.ts';
import { type Fields, type Flag, later, type Row, row, several, whole } from './rows.ts';
import { CliError } from './terminal.ts';

const packetId = [{ name: 'packet_id', text: 'its id' }];
const created: readonly Flag[] = [
  { flags: '--created-after <time>', text: 'only packets created at or after this time (ISO 8601)' },
  { flags: '--created-before <time>', text: 'only packets created at or before this time (ISO 8601)' },
];

/** The commands of packets. */
export const packets: readonly Row[] = [
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
