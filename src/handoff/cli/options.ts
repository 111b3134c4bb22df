import { type Command, InvalidArgumentError, Option } from 'commander';

import type { ClaimRequest } from '../model/packet.ts';
import { priorities, statuses } from '../model/words.ts';
import { CliError } from './terminal.ts';

/** How a value is completed: from fixed words, the ids of recent packets, or files. */
export type Completion = readonly string[] | 'packet' | 'file';

/** The completions of options and arguments, by the name of the attribute or argument. */
export const completions: Readonly<Record<string, Completion>> = {
  status: statuses,
  priority: priorities,
  packet_id: 'packet',
  packet: 'packet',
  file: 'file',
};

/** Makes a parser for a whole number from `least` to `most`. */
export const whole =
  (least: number, most: number) =>
  (text: string): number => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < least || value > most)
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
    return value;
  };

/** The parser of an option that can be repeated. */
export const several = (text: string, before: readonly string[] = []): string[] => [...before, text];

/** Adds the options of a paged list. */
export function paged(command: Command, limit = 20): Command {
  return command
    .addOption(new Option('--limit <n>', 'the most items to show, 1 to 200').argParser(whole(1, 200)).default(limit))
    .addOption(new Option('--offset <n>', 'how many items to skip').argParser(whole(0, 1_000_000_000)).default(0));
}

/** The option for one priority. */
export const priorityOption = () => new Option('--priority <priority>', 'the priority').choices(priorities);

/** The option for the duration of a lease. */
export const leaseOption = (text: string) => new Option('--lease <seconds>', text).argParser(whole(1, 86_400));

/** The option for a lease token. */
export const tokenOption = () => new Option('--token <token>', "the token of the packet's lease; required for a leased packet");

/** The option for a filter by priorities. */
export const prioritiesOption = () =>
  new Option('--priority <priorities>', `only packets of these priorities, comma-separated: ${priorities.join(', ')}`);

/** Splits a comma-separated list. */
export const wordsOf = (text: string): string[] =>
  text
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean);

/** The options that name the claiming agent. */
export interface AgentOptions {
  agent?: string;
  agentId?: string;
  agentName?: string;
  framework?: string;
}

/** Adds the options that name the claiming agent. */
export function agentOptions(command: Command): Command {
  return command
    .option('--agent <agent>', "the agent's id and name, if they are the same")
    .option('--agent-id <id>', "the agent's id; this or --agent is required")
    .option('--agent-name <name>', "the agent's name (default: the id)")
    .option('--framework <framework>', 'what the agent runs on');
}

/** The agent that the options name. @throws CliError when they name none */
export function claimantOf({ agent, agentId = agent, agentName, framework }: AgentOptions): ClaimRequest {
  if (agentId === undefined) throw new CliError('Name the agent that claims with --agent or --agent-id.');
  return given({ agent_id: agentId, agent_name: agentName ?? agent ?? agentId, framework });
}

/** Removes undefined values: a request may leave a field out, but not set it to undefined. */
export function given<T extends object>(values: T): { [Name in keyof T]: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}
