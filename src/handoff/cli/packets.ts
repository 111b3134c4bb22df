import type { Command } from 'commander';

import { act, type Context } from './context.ts';
import { addLeaseCommands, leaseOption, showClaimed } from './leases.ts';
import { addNextCommand } from './next.ts';
import { type AgentOptions, agentOptions, claimantOf, given, paged, priorityOption } from './options.ts';
import { awaitingColumns, hitColumns, packetColumns, packetLines } from './output/packets.ts';
import { sayNextPage, showList, showOne } from './output/show.ts';
import { addCreateCommands } from './packets-create.ts';
import { addUpdateCommands } from './packets-update.ts';
import type { Terminal } from './terminal.ts';
import { addWatchCommand } from './watch.ts';

interface Page {
  limit: number;
  offset: number;
}
interface ListOptions extends Page {
  status?: string;
  sourceAgent?: string;
  targetAgent?: string;
  tags?: string;
  priority?: 'low';
  createdAfter?: string;
  createdBefore?: string;
}

/** The commands of packets; the five that are used most stand at the top as well. */
export function addPacketCommands(program: Command, terminal: Terminal): void {
  const packets = program.command('packets').description('create, find and work on packets');
  for (const parent of [packets, program]) {
    if (parent === program) parent.commandsGroup('Shortcuts of packets:');
    addListCommand(parent, terminal);
    addCreateCommands(parent, terminal);
    addClaimCommand(parent, terminal);
    act(parent.command('get').description('show a packet').argument('<packet_id>', 'its id'), terminal, get);
    addSearchCommand(parent, terminal);
  }
  addNextCommand(packets, terminal);
  addUpdateCommands(packets, terminal);
  addLeaseCommands(packets, terminal);
  act(paged(packets.command('awaiting').description('list the questions that wait for a person')), terminal, awaiting);
  addWatchCommand(packets, terminal);
}

function addListCommand(parent: Command, terminal: Terminal): void {
  const command = parent
    .command('list')
    .description('list packets, newest first')
    .option('--status <status>', 'only these statuses, comma-separated')
    .option('--source-agent <id>', 'only from this agent')
    .option('--target-agent <id>', 'only for this agent')
    .option('--tags <tags>', 'only with all of these tags, comma-separated')
    .addOption(priorityOption())
    .option('--created-after <time>', 'only created at or after this time (ISO 8601)')
    .option('--created-before <time>', 'only created at or before this time (ISO 8601)');
  act<ListOptions>(paged(command), terminal, list);
}

async function list(context: Context, options: ListOptions): Promise<void> {
  const { status, sourceAgent, targetAgent, tags, priority, createdAfter, createdBefore, limit, offset } = options;
  const query = {
    status,
    source_agent: sourceAgent,
    target_agent: targetAgent,
    tags,
    priority,
    created_after: createdAfter,
    created_before: createdBefore,
    limit,
    offset,
  };
  const answer = await (await context.client()).listPackets.withResponse({ query: given(query) });
  const { packets, total } = answer.body;
  showList(context, answer, packets, { columns: packetColumns, none: 'No packets.' });
  sayNextPage(context, packets.length, { total, offset, noun: 'packets' });
}

function addSearchCommand(parent: Command, terminal: Terminal): void {
  const command = parent
    .command('search')
    .description('search packets by their words, best match first')
    .argument('<text>', 'words, and "phrases in quotes"')
    .option('--status <status>', 'only these statuses, comma-separated')
    .addOption(priorityOption());
  act<Page & { status?: string; priority?: 'low' }>(paged(command), terminal, search);
}

async function search(
  context: Context,
  { status, priority, limit, offset }: Page & { status?: string; priority?: 'low' },
  text: string,
): Promise<void> {
  const query = given({ status, priority, limit, offset });
  const answer = await (await context.client()).searchPackets.withResponse({ query: { q: text, ...query } });
  const { packets, total } = answer.body;
  showList(context, answer, packets, { columns: hitColumns, none: 'Nothing was found.' });
  sayNextPage(context, packets.length, { total, offset, noun: 'packets' });
}

async function awaiting(context: Context, { limit, offset }: Page): Promise<void> {
  const answer = await (await context.client()).listAwaiting.withResponse({ query: { limit, offset } });
  const { packets, total } = answer.body;
  showList(context, answer, packets, { columns: awaitingColumns, none: 'No question waits for a person.' });
  sayNextPage(context, packets.length, { total, offset, noun: 'questions' });
}

async function get(context: Context, _: object, id: string): Promise<void> {
  const answer = await (await context.client()).getPacket.withResponse({ params: { id } });
  if (answer.body !== undefined) showOne(context, { ...answer, body: answer.body }, packetLines);
}

interface ClaimOptions extends AgentOptions {
  lease?: number;
}

function addClaimCommand(parent: Command, terminal: Terminal): void {
  const command = parent.command('claim').description('claim a packet for an agent').argument('<packet_id>', 'its id');
  act<ClaimOptions>(
    agentOptions(command).addOption(leaseOption('how long the claim holds; without it the claim has no end')),
    terminal,
    claim,
  );
}

async function claim(context: Context, { lease, ...agent }: ClaimOptions, id: string): Promise<void> {
  const body = { ...claimantOf(agent), ...given({ lease_seconds: lease }) };
  showClaimed(context, await (await context.client()).claimPacket.withResponse({ params: { id }, body }));
}
