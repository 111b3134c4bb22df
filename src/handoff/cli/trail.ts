import type { Command } from 'commander';

import type { AuditEntry } from '../model/audit.ts';
import type { HistoryEvent } from '../model/packet.ts';
import { act, type Context } from './context.ts';
import { given, paged } from './options.ts';
import { sayNextPage, showJson, showList } from './output/show.ts';
import { type Column, tableLines } from './output/table.ts';
import type { Terminal } from './terminal.ts';

const details = (value: object) => (Object.keys(value).length === 0 ? null : JSON.stringify(value));

const historyColumns: readonly Column<HistoryEvent>[] = [
  { title: 'TIME', value: ({ timestamp }) => timestamp },
  { title: 'EVENT', value: ({ event_type }) => event_type },
  { title: 'ACTOR', value: ({ actor }) => actor, least: 12 },
  { title: 'DETAILS', value: (event) => details(event.details), least: 8 },
];

const auditColumns: readonly Column<AuditEntry>[] = [
  { title: 'TIME', value: ({ timestamp }) => timestamp },
  { title: 'ACTION', value: ({ action }) => action },
  { title: 'RESOURCE', value: ({ resource }) => resource },
  { title: 'PACKET', value: ({ packet_id }) => packet_id },
  { title: 'ACTOR', value: ({ actor }) => actor, least: 12 },
  { title: 'DETAILS', value: (entry) => details(entry.details), least: 8 },
];

interface AuditOptions {
  actor?: string;
  action?: string;
  packet?: string;
  createdAfter?: string;
  createdBefore?: string;
  limit: number;
  offset: number;
}

/** `history` and `audit`: who did what, and when. */
export function addTrailCommands(program: Command, terminal: Terminal): void {
  const history = program.command('history').description("show a packet's history, oldest first").argument('<packet_id>', 'its id');
  act(history, terminal, async (context, _, id) => {
    const answer = await (await context.client()).packetHistory.withResponse({ params: { id } });
    if (context.format === 'json') return showJson(context, answer);
    for (const line of tableLines(historyColumns, answer.body.events, terminal)) context.print(line);
  });
  const command = program
    .command('audit')
    .description("show the tenant's audit log, newest first")
    .option('--actor <actor>', 'only entries of this actor, for example agent:resolver')
    .option('--action <action>', 'only entries of this action, for example claimed')
    .option('--packet <packet_id>', 'only entries of this packet')
    .option('--created-after <time>', 'only at or after this time (ISO 8601)')
    .option('--created-before <time>', 'only at or before this time (ISO 8601)');
  act<AuditOptions>(paged(command), terminal, audit);
}

async function audit(context: Context, { actor, action, packet, createdAfter, createdBefore, limit, offset }: AuditOptions): Promise<void> {
  const query = given({ actor, action, packet_id: packet, created_after: createdAfter, created_before: createdBefore, limit, offset });
  const answer = await (await context.client()).listAudit.withResponse({ query });
  const { entries, total } = answer.body;
  showList(context, answer, entries, { columns: auditColumns, none: 'No entries.' });
  sayNextPage(context, entries.length, { total, offset, noun: 'entries' });
}
