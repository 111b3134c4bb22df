import type { Command } from 'commander';

import { act, type Context } from './context.ts';
import { type AgentOptions, agentOptions, claimantOf, given, leaseOption, paged, priorityOption } from './options.ts';
import { awaitingColumns, hitColumns, packetColumns, packetLines } from './output/packets.ts';
import { sayNextPage, showList, showOne } from './output/show.ts';
import type { Terminal } from './terminal.ts';

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

/** The commands for packets. The five most frequent ones are top-level commands as well. */
export async function addPacketCommands(program: Command, terminal: Terminal, name?: string): Promise<void> {
  if (name !== undefined && name !== 'packets') return addDailyCommands(program, terminal, name);
  const packets = program.command('packets').description('create, find and work on packets');
  await addDailyCommands(packets, terminal);
  if (name === undefined) await addDailyCommands(program.commandsGroup('Shortcuts of packets:'), terminal);
  const [{ addNextCommand }, { addUpdateCommands }, { addLeaseCommands }, { addWatchCommand }] = await Promise.all([
    import('./next.ts'),
    import('./packets-update.ts'),
    import('./leases.ts'),
    import('./watch.ts'),
  ]);
  addNextCommand(packets, terminal);
  addUpdateCommands(packets, terminal);
  addLeaseCommands(packets, terminal);
  act(paged(packets.command('awaiting').description('list the packets that await a person')), terminal, awaiting);
  addWatchCommand(packets, terminal);
}

/** The most frequent commands: all of them, or the one with this name. */
async function addDailyCommands(parent: Command, terminal: Terminal, name?: string): Promise<void> {
  const wants = (one: string) => name === undefined || name === one;
  if (wants('list')) addListCommand(parent, terminal);
  if (wants('create')) (await import('./packets-create.ts')).addCreateCommands(parent, terminal);
  if (wants('claim')) addClaimCommand(parent, terminal);
  if (wants('get')) act(parent.command('get').description('show a packet').argument('<packet_id>', 'its id'), terminal, get);
  if (wants('search')) addSearchCommand(parent, terminal);
}

function addListCommand(parent: Command, terminal: Terminal): void {
  const command = parent
    .command('list')
    .description('list packets, newest first')
    .option('--status <status>', 'only packets in these statuses, comma-separated')
    .option('--source-agent <id>', 'only packets from this agent')
    .option('--target-agent <id>', 'only packets for this agent')
    .option('--tags <tags>', 'only packets with all of these tags, comma-separated')
    .addOption(priorityOption())
    .option('--created-after <time>', 'only packets created at or after this time (ISO 8601)')
    .option('--created-before <time>', 'only packets created at or before this time (ISO 8601)');
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
    .description('search packets by words, best match first')
    .argument('<text>', 'words, and "phrases in quotes"')
    .option('--status <status>', 'only packets in these statuses, comma-separated')
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
  showList(context, answer, packets, { columns: hitColumns, none: 'No packets match.' });
  sayNextPage(context, packets.length, { total, offset, noun: 'packets' });
}

async function awaiting(context: Context, { limit, offset }: Page): Promise<void> {
  const answer = await (await context.client()).listAwaiting.withResponse({ query: { limit, offset } });
  const { packets, total } = answer.body;
  showList(context, answer, packets, { columns: awaitingColumns, none: 'No packet awaits a person.' });
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
    agentOptions(command).addOption(leaseOption('how long the claim lasts; without it the claim does not expire')),
    terminal,
    claim,
  );
}

async function claim(context: Context, { lease, ...agent }: ClaimOptions, id: string): Promise<void> {
  const body = { ...claimantOf(agent), ...given({ lease_seconds: lease }) };
  const { showClaimed } = await import('./leases.ts');
  showClaimed(context, await (await context.client()).claimPacket.withResponse({ params: { id }, body }));
}
