import type { Command } from 'commander';

import type { Answer } from '../../kit/client.ts';
import type { Lease, Packet } from '../model/packet.ts';
import { act, type Context } from './context.ts';
import { given, leaseOption, tokenOption } from './options.ts';
import { packetLines } from './output/packets.ts';
import { showJson, showOne } from './output/show.ts';
import { pairLines } from './output/table.ts';
import type { Terminal } from './terminal.ts';

/** Shows a claimed packet. With --quiet: its id, a space, and its lease token, which is not shown again. */
export function showClaimed(context: Context, answer: Answer<Packet>): void {
  const { id, lease } = answer.body;
  if (context.quiet && context.format !== 'json' && lease?.token !== undefined) context.print(`${id} ${lease.token}`);
  else showOne(context, answer, packetLines);
}

/** The commands for the holder of a packet: `release` and `renew`. */
export function addLeaseCommands(packets: Command, terminal: Terminal): void {
  const release = packets
    .command('release')
    .description('return a packet to created, so that others can claim it')
    .argument('<packet_id>', 'its id')
    .option('--agent <agent>', 'the id of the agent that holds it; not needed with an admin key')
    .addOption(tokenOption());
  act<{ agent?: string; token?: string }>(release, terminal, async (context, { agent, token }, id) => {
    const headers = given({ 'x-agent-id': agent, 'x-lease-token': token });
    showOne(context, await (await context.client()).releasePacket.withResponse({ params: { id }, headers }), packetLines);
  });
  const renew = packets
    .command('renew')
    .description('renew the lease of a packet from now')
    .argument('<packet_id>', 'its id')
    .addOption(tokenOption().makeOptionMandatory())
    .addOption(leaseOption('the duration from now (default: the previous duration)'));
  act<{ token: string; lease?: number }>(renew, terminal, renewLease);
}

async function renewLease(context: Context, { token, lease }: { token: string; lease?: number }, id: string): Promise<void> {
  const body = given({ lease_seconds: lease });
  const answer = await (await context.client()).renewLease.withResponse({ params: { id }, body, headers: { 'x-lease-token': token } });
  if (context.format === 'json') return showJson(context, answer);
  if (!context.quiet) for (const line of leaseLines(answer.body.lease)) context.print(line);
}

const leaseLines = ({ generation, expires_at }: Lease) =>
  pairLines([
    ['Generation', generation],
    ['Until', expires_at ?? 'suspended while the packet awaits a person'],
  ]);
