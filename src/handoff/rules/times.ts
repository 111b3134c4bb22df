import { dayMs, momentOf } from '../../kit/dates.ts';
import { conflict, invalid, ServiceError } from '../../kit/errors.ts';
import type { ChannelEvent } from '../model/channel.ts';
import { errors } from '../model/errors.ts';
import type { AnyPacket, Decision, PacketEvent } from './packet.ts';
import { claimableStatus, openStatuses, touched } from './packet-life.ts';

/** The times in a request; null removes one. */
export interface GivenTimes {
  readonly not_before?: string | null | undefined;
  readonly due_at?: string | null | undefined;
}

/** How far `not_before` may be ahead, in milliseconds: a year. */
const farthestMs = 366 * dayMs;

const isOpen = ({ status }: AnyPacket): boolean => openStatuses.includes(status);

/**
 * Until when a packet can't be claimed; null: it can, or it is not `created`. A packet that was written at its `not_before` or later
 * can be claimed, whatever the clock of the instance that is asked: the write is in the trail.
 */
export function heldUntil({ status, not_before, updated_at }: AnyPacket): string | null {
  return status === claimableStatus && not_before !== undefined && not_before > updated_at ? not_before : null;
}

/** Requires that a packet is not held any more. @throws ServiceError 409 NOT_YET */
export function requireStarted(packet: AnyPacket, now: Date): void {
  const not_before = heldUntil(packet);
  if (not_before === null) return;
  const seconds = Math.ceil((Date.parse(not_before) - now.getTime()) / 1000);
  if (seconds <= 0) return;
  const headers = { 'Retry-After': String(seconds) };
  throw new ServiceError(errors.NOT_YET, `The packet can be claimed from ${not_before} on.`, { extra: { not_before }, headers });
}

/** Since when a packet waits to be claimed: its creation, or its `not_before` if that is later. */
export const waitsSince = ({ created_at, not_before = created_at }: AnyPacket): string =>
  not_before > created_at ? not_before : created_at;

/** When a packet becomes overdue; null: never, or it is. */
export const overdueAt = (packet: AnyPacket): string | null =>
  packet.due_at !== undefined && packet.overdue !== true && isOpen(packet) ? packet.due_at : null;

/** Whether a packet is open and overdue. */
export const isOverdue = (packet: AnyPacket): boolean => packet.overdue === true && isOpen(packet);

/**
 * The packet with the times that a request sets.
 * @throws ServiceError 409 when the packet's status does not allow it, 400 when `not_before` is too far ahead
 */
export function withTimes<P extends AnyPacket>(packet: P, { not_before, due_at }: GivenTimes, now: Date): P {
  if (not_before === undefined && due_at === undefined) return packet;
  const after: P = { ...packet };
  if (not_before !== undefined) {
    if (packet.status !== claimableStatus)
      throw conflict(`The packet is ${packet.status}; not_before can only change while it is created.`);
    delete after.not_before;
    if (not_before !== null) after.not_before = startOf(not_before, now);
  }
  if (due_at !== undefined) {
    if (!isOpen(packet)) throw conflict(`The packet is ${packet.status}; due_at can only change while it is open.`);
    delete after.due_at;
    if (due_at !== null) after.due_at = momentOf(due_at).toISOString();
    if (after.due_at !== packet.due_at) delete after.overdue;
  }
  return after;
}

function startOf(text: string, now: Date): string {
  const start = momentOf(text);
  if (start.getTime() > now.getTime() + farthestMs) throw invalid('not_before', 'not_before can be at most a year from now.');
  return start.toISOString();
}

/** The packet after a time that has come: it is overdue, or can be claimed from now on. Undefined when neither is so. */
export function timeReached<P extends AnyPacket>(packet: P, now: Date): Decision<P> | undefined {
  const has = (time: string | null) => time !== null && now.getTime() >= Date.parse(time);
  const isLate = has(overdueAt(packet));
  const events: PacketEvent[] = [];
  const actor = 'system:sweeper';
  if (has(heldUntil(packet)))
    events.push({ event_type: 'available', type: 'packet.updated', actor, details: { not_before: packet.not_before } });
  if (isLate) {
    const notifies: ChannelEvent = 'overdue';
    events.push({ event_type: 'overdue', type: 'packet.overdue', actor, details: { due_at: packet.due_at }, notifies });
  }
  if (events.length === 0) return undefined;
  return { packet: { ...touched(packet, now), ...(isLate ? { overdue: true } : {}) }, events, searchable: false };
}
