import { type Command, InvalidArgumentError, Option } from 'commander';

import type { ClaimRequest } from '../model/packet.ts';
import { priorities, statuses } from '../model/words.ts';
import { CliError } from './terminal.ts';

/** What a value may be completed with: words that are known, ids of recent packets, or files. */
export type Completion = readonly string[] | 'packet' | 'file';

/** What options and arguments are completed with, by their attribute's or argument's name. */
export const completions: Readonly<Record<string, Completion>> = {
  status: statuses,
  priority: priorities,
  packet_id: 'packet',
  packet: 'packet',
  file: 'file',
};

/** A whole number from `least` to `most`; anything else is wrong usage. */
export const whole =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    return value;
  };

/** An option that may be given several times. */
export const several = (text: string, before: readonly string[] = []): string[] => [...before, text];

/** The options of a list that is read page by page. */
export function paged(command: Command, limit = 20): Command {
  return command
    .addOption(new Option('--limit <n>', 'the most items to show, 1 to 200').argParser(whole(1, 200)).default(limit))
    .addOption(new Option('--offset <n>', 'how many items to pass over').argParser(whole(0, 1_000_000_000)).default(0));
}

/** One of the priorities. */
export const priorityOption = () => new Option('--priority <priority>', 'how urgent it is').choices(priorities);

/** How long a lease runs. */
export const leaseOption = (text: string) => new Option('--lease <seconds>', text).argParser(whole(1, 86_400));

/** The token of a leased packet. */
export const tokenOption = () => new Option('--token <token>', "the token of the packet's lease, which a leased packet needs");

/** Some of the priorities. */
export const prioritiesOption = () =>
  new Option('--priority <priorities>', `only of these priorities, comma-separated: ${priorities.join(', ')}`);

/** The words of a comma-separated list. */
export const wordsOf = (text: string): string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean);

/** How a command was told who claims. */
export interface AgentOptions {
  agent?: string;
  agentId?: string;
  agentName?: string;
  framework?: string;
}

/** Who claims. */
export function agentOptions(command: Command): Command {
  return command
    .option('--agent <agent>', "the agent's id and name in one")
    .option('--agent-id <id>', "the agent's id; this or --agent is required")
    .option('--agent-name <name>', "the agent's name (default: the id)")
    .option('--framework <framework>', 'what the agent runs on');
}

/** The claimant that was named. @throws CliError when none was */
export function claimantOf({ agent, agentId = agent, agentName, framework }: AgentOptions): ClaimRequest {
  if (agentId === undefined) throw new CliError('Name the agent that claims: --agent, or --agent-id.');
  return given({ agent_id: agentId, agent_name: agentName ?? agent ?? agentId, framework });
}

/** The values that are there: a request may leave a value out, but not send an undefined one. */
export function given<T extends object>(values: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}
