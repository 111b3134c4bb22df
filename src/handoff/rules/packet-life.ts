import type { Status } from '../model/common.ts';
// Not from common.ts: the console loads this file, and should not load the schema library with it.
import { statuses } from '../model/constants.ts';

/**
 * The state machine of a packet: for each status, the verbs allowed and the status each leads to. `decide` applies it for
 * commands, `rules/execution.ts` for executions of approved actions. `docs/packet-life.md` is generated from this table.
 */
export const transitions = {
  created: {
    claim: 'claimed',
    ask: 'awaiting_human',
    fail: 'failed',
    expire: 'expired',
    time_out: 'expired',
    delete: 'expired',
    erase: 'expired',
  },
  claimed: {
    start: 'in_progress',
    ask: 'awaiting_human',
    complete: 'completed',
    fail: 'failed',
    expire: 'expired',
    release: 'created',
    lose: 'created',
    delete: 'expired',
    erase: 'expired',
  },
  in_progress: {
    ask: 'awaiting_human',
    complete: 'completed',
    fail: 'failed',
    expire: 'expired',
    release: 'created',
    lose: 'created',
    delete: 'expired',
    erase: 'expired',
  },
  awaiting_human: {
    respond: 'claimed',
    ask_again: 'awaiting_human',
    withdraw: 'claimed',
    reopen: 'created',
    fail: 'failed',
    expire: 'expired',
    time_out_fail: 'failed',
    time_out_expire: 'expired',
    delete: 'expired',
    erase: 'expired',
  },
  completed: { delete: 'expired' },
  failed: { expire: 'expired', delete: 'expired' },
  expired: {},
} as const satisfies Record<Status, Partial<Record<string, Status>>>;

/** What can be done to a packet, as the columns of `transitions`. */
export type Verb = { [From in Status]: keyof (typeof transitions)[From] }[Status];

/** The status that a verb leads to from a status; undefined when the verb is refused. */
function targetOf(status: Status, verb: Verb): Status | undefined {
  return (transitions[status] as Partial<Record<Verb, Status>>)[verb];
}

const statusesWith = (verb: Verb) => statuses.filter((status) => targetOf(status, verb) !== undefined);

/** The statuses of packets that are not finished: from these a packet may fail. */
export const openStatuses = statusesWith('fail');

/** The statuses of packets that are finished. */
export const finalStatuses = statuses.filter((status) => !openStatuses.includes(status));

/** The status of packets that an agent may claim. */
export const [claimableStatus] = statusesWith('claim') as [Status];

/** The status of packets with an open question. */
export const [askedStatus] = statusesWith('respond') as [Status];

/** The statuses of packets that an agent may hold. */
export const heldStatuses = openStatuses.filter((status) => status !== claimableStatus);

/** The statuses of held packets that do not wait for a person. */
export const workingStatuses = heldStatuses.filter((status) => status !== askedStatus);

/** The verb for a PATCH to each status. A PATCH can't set `created` or `claimed`. */
export const verbTo: Partial<Record<Status, Verb>> = {
  in_progress: 'start',
  awaiting_human: 'ask',
  completed: 'complete',
  failed: 'fail',
  expired: 'expire',
};

/** The fields of a packet that its life reads and changes. */
type HasStatus = { readonly status: Status };
type Moving = HasStatus & { readonly revision: number; readonly updated_at: string };

/** Whether the verb is allowed in the packet's status. */
export const allows = ({ status }: HasStatus, verb: Verb): boolean => targetOf(status, verb) !== undefined;

/** The packet with its revision incremented and `updated_at` set. */
export function touched<P extends Moving>(packet: P, now: Date): P {
  return { ...packet, revision: packet.revision + 1, updated_at: now.toISOString() };
}

/** The packet in the status that an allowed verb leads to. Nothing else changes a status. */
export function move<P extends Moving>(packet: P, verb: Verb, now: Date): P {
  const status = targetOf(packet.status, verb);
  if (status === undefined) throw new Error(`A packet that is ${packet.status} does not allow ${verb}.`);
  return { ...touched(packet, now), status };
}

/** A sentence that lists the statuses that an update can move the packet to. */
export function allowedFrom(packet: HasStatus): string {
  const { status } = packet;
  const ways = Object.entries(verbTo).flatMap(([to, verb]) => (allows(packet, verb) ? [to] : []));
  if (ways.length === 0) return `${status === 'expired' ? 'An' : 'A'} ${status} packet can't be moved.`;
  return `From ${status} it can be moved to ${ways.join(', ')}.`;
}
