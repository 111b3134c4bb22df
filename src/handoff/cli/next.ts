import { type Command, Option } from 'commander';

import type { ClaimNextRequest } from '../model/packet.ts';
import { act, type Context } from './context.ts';
import { showClaimed } from './leases.ts';
import { type AgentOptions, agentOptions, claimantOf, given, leaseOption, prioritiesOption, whole, wordsOf } from './options.ts';
import { CliError, type Terminal } from './terminal.ts';

interface NextOptions extends AgentOptions {
  targetAgent?: string;
  tags?: string;
  priority?: string;
  wait?: number;
  lease?: number;
}

/** `packets next`: claims the next packet for an agent; exit code 1 when there is none. */
export function addNextCommand(packets: Command, terminal: Terminal): void {
  const command = agentOptions(packets.command('next').description('claim the next packet: the highest priority first, then the oldest'))
    .option('--target-agent <id>', 'only packets for this agent (default: the agent itself); * for any')
    .option('--tags <tags>', 'only packets with all of these tags, comma-separated')
    .addOption(prioritiesOption())
    .addOption(new Option('--wait <seconds>', 'how long to wait for a packet, up to 60 (default: 0)').argParser(whole(0, 60)))
    .addOption(leaseOption('how long the claim lasts; without it the claim does not expire'));
  act<NextOptions>(command, terminal, next);
}

async function next(context: Context, { targetAgent, tags, priority, wait, lease, ...agent }: NextOptions): Promise<void> {
  const body = {
    ...claimantOf(agent),
    ...given({
      target_agent: targetAgent,
      tags: tags === undefined ? undefined : wordsOf(tags),
      priorities: priority === undefined ? undefined : (wordsOf(priority) as ClaimNextRequest['priorities']),
      wait_seconds: wait,
      lease_seconds: lease,
    }),
  };
  const answer = await (await context.client()).claimNext.withResponse({ body });
  if (answer.body === undefined) throw new CliError(noneFor(body), 1);
  showClaimed(context, { ...answer, body: answer.body });
}

function noneFor({ agent_id, target_agent = agent_id, tags, priorities, wait_seconds = 0 }: ClaimNextRequest): string {
  const whose = target_agent === '*' ? '' : ` for ${target_agent}`;
  const which = tags === undefined && priorities === undefined ? '' : ' with these tags and priorities';
  return wait_seconds === 0 ? `No packet is available${whose}${which}.` : `No packet${whose}${which} became available in time.`;
}
