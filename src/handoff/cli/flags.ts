import { InvalidArgumentError } from 'commander';

import { commaList, quotedList } from '../../kit/comma-list.ts';
import { readJson } from '../../kit/json.ts';
import { maxWaitSeconds, priorities, statuses } from '../model/constants.ts';
import { type Fields, type Flag, several, whole } from './rows.ts';
import { CliError } from './terminal.ts';

/** A JSON object in an option. */
export function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = readJson(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // The sentence below says what is expected.
  }
  throw new InvalidArgumentError('It must be a JSON object, such as {"amount": 500}.');
}

/** The options of a paged list. */
export const paged: readonly Flag[] = [
  { flags: '--limit <n>', text: 'the maximum number of items to show, 1 to 200', parse: whole(1, 200), value: 20 },
  { flags: '--offset <n>', text: 'how many items to skip', parse: whole(0, 1_000_000_000), value: 0 },
];

export const priority: Flag = { flags: '--priority <priority>', text: 'the priority', choices: priorities };
export const statusFilter: Flag = {
  flags: '--status <status>',
  text: 'only packets in these statuses, comma-separated',
  completion: statuses,
};
export const tagsFilter: Flag = {
  flags: '--tags <tags>',
  text: 'only packets with all of these tags, comma-separated; one with a comma in quotation marks',
};
export const tag: Flag = { flags: '--tag <tag>', text: 'a tag (repeatable)', parse: several };
export const subject: Flag = {
  flags: '--subject <id>',
  text: 'the opaque id of a person whose data it holds (repeatable)',
  parse: several,
};
export const subjectFilter: Flag = { flags: '--subject <id>', text: 'only packets that hold data of this person' };
export const file = (text: string): Flag => ({ flags: '-f, --file <file>', text, completion: 'file' });
export const configFile: Flag = { flags: '--config <file>', text: 'a TOML file of settings', completion: 'file' };
export const packetFilter = (text: string): Flag => ({ flags: '--packet <packet_id>', text, field: 'packet_id', completion: 'packet' });
/** The filters of the audit log. */
export const auditFilters: readonly Flag[] = [
  { flags: '--actor <actor>', text: 'only entries of this actor, for example agent:resolver' },
  { flags: '--action <action>', text: 'only entries of this action, for example claimed' },
  packetFilter('only entries of this packet'),
  { flags: '--key <key_id>', text: 'only entries with this API key', field: 'key_id' },
  { flags: '--person <name>', text: 'only entries of this person, who signed in' },
  { flags: '--subject <id>', text: 'only entries of packets that hold data of this person' },
  { flags: '--created-after <time>', text: 'only at or after this time (ISO 8601)' },
  { flags: '--created-before <time>', text: 'only at or before this time (ISO 8601)' },
];
export const lease = (text: string): Flag => ({ flags: '--lease <seconds>', text, field: 'lease_seconds', parse: whole(1, 86_400) });
export const claimLease = lease('how long the claim lasts; without it the claim does not expire');
export const token: Flag = {
  flags: '--token <token>',
  text: "the token of the packet's lease; required for a leased packet. SERVICE_LEASE_TOKEN keeps it out of the process list",
  header: 'x-lease-token',
  secret: { what: "the lease's token", variable: 'SERVICE_LEASE_TOKEN' },
};
export const actor: Flag = {
  flags: '--agent <agent>',
  text: 'the id of the agent that holds it; not needed with an admin key',
  header: 'x-agent-id',
};
export const hookFilter: Flag = { flags: '--hook <hook_id>', text: 'only deliveries to this webhook', field: 'webhook_id' };

/** The filter for next: several tags and priorities as lists. */
export const nextFilters: readonly Flag[] = [
  { flags: '--target-agent <id>', text: 'only packets for this agent (default: the agent itself); * for any' },
  { ...tagsFilter, parse: quotedList },
  {
    flags: '--priority <priorities>',
    text: `only packets of these priorities, comma-separated: ${priorities.join(', ')}`,
    field: 'priorities',
    completion: priorities,
    parse: commaList,
  },
  {
    flags: '--wait <seconds>',
    text: `how long to wait for a packet, up to ${maxWaitSeconds} (default: 0)`,
    field: 'wait_seconds',
    parse: whole(0, maxWaitSeconds),
  },
];

/** The options that name the claiming agent; `claimant` makes the fields of them. */
export const agent: readonly Flag[] = [
  { flags: '--agent <agent>', text: "the agent's id and name, if they are the same" },
  { flags: '--agent-id <id>', text: "the agent's id; this or --agent is required" },
  { flags: '--agent-name <name>', text: "the agent's name (default: the id)" },
  { flags: '--framework <framework>', text: 'what the agent runs on' },
];

/** The fields of a claim. @throws CliError when no option names the agent */
export function claimant({ agent, agent_id = agent, agent_name, ...rest }: Fields): Fields {
  if (agent_id === undefined) throw new CliError('Name the agent that claims with --agent or --agent-id.');
  return { agent_id, agent_name: agent_name ?? agent ?? agent_id, ...rest };
}

/** The flags for the times of a packet. */
export function times(more = ''): readonly Flag[] {
  return [
    { flags: '--not-before <time>', text: `it can be claimed from this time on (ISO 8601)${more}` },
    { flags: '--due-at <time>', text: `it should have ended by this time (ISO 8601)${more}` },
  ];
}

/** The fields that a packet is created from; `create.ts` makes the request of them. */
export const packetFields: readonly Flag[] = [
  file('JSON, YAML or JSON Lines; - reads standard input'),
  { flags: '--source-id <id>', text: 'the id of the agent that hands over' },
  { flags: '--source-name <name>', text: 'its name (default: the id)' },
  { flags: '--target-id <id>', text: 'the id of the agent that should continue the work' },
  { flags: '--target-name <name>', text: 'its name (default: the id)' },
  { flags: '--summary <text>', text: 'a summary of the work so far' },
  priority,
  tag,
  subject,
  ...times(),
];

/** Parses a limit of a tenant that its tier may set. */
export function tierLimit(text: string): string {
  if (text !== 'tier' && !/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('It must be a whole number, or tier.');
  return text;
}

/** The fields of a tenant; the limit `tier` is null. */
export function tenantFields(fields: Fields): Fields {
  const limits = ['handoffs_per_day', 'requests_per_hour'].filter((name) => fields[name] !== undefined);
  return { ...fields, ...Object.fromEntries(limits.map((name) => [name, fields[name] === 'tier' ? null : Number(fields[name])])) };
}
