import { hash } from 'node:crypto';
import { ServiceError } from '../../kit/errors.ts';
import { errors } from '../model/errors.ts';
import type { AnyPacket } from './packet.ts';
import { askedStatus, workingStatuses } from './packet-life.ts';

/** The private state of a packet's leases. Null when the packet was never leased. */
export interface StoredLease {
  /** How many leases the packet has had. */
  readonly generation: number;
  /** The duration of the latest lease. */
  readonly seconds: number;
  /** The SHA-256 of its token; null once the lease has ended. */
  readonly token: string | null;
}

/** The terms of a new lease: its duration, and the token that its holder must present. */
export interface LeaseTerms {
  readonly seconds: number;
  readonly token: string;
}

/** A token has 256 random bits, so a plain digest can't be reversed by search. */
const tokenHash = (token: string): string => hash('sha256', token);

const endOf = (now: Date, seconds: number): string => new Date(now.getTime() + seconds * 1000).toISOString();

/** A packet after a change of its lease, and the lease to store. */
interface Leased<P extends AnyPacket> {
  readonly packet: P;
  readonly lease: StoredLease | null;
}

/** The packet with a new lease. Without terms the packet gets no lease. */
export function leased<P extends AnyPacket>(packet: P, before: StoredLease | null, terms: LeaseTerms | undefined, now: Date): Leased<P> {
  if (terms === undefined) return { packet: { ...packet, lease: null }, lease: before === null ? null : { ...before, token: null } };
  const generation = (before?.generation ?? 0) + 1;
  return {
    packet: { ...packet, lease: { generation, expires_at: endOf(now, terms.seconds) } },
    lease: { generation, seconds: terms.seconds, token: tokenHash(terms.token) },
  };
}

/** The packet with its lease renewed from now. */
export function renewed<P extends AnyPacket>(packet: P, before: StoredLease, seconds: number | undefined, now: Date): Leased<P> {
  const lease = { ...before, seconds: seconds ?? before.seconds };
  const expires_at = packet.status === askedStatus ? null : endOf(now, lease.seconds);
  return { packet: { ...packet, lease: { generation: lease.generation, expires_at } }, lease };
}

/**
 * Applies a change of status to the lease: it is suspended while the packet awaits a person, restarts with its full
 * duration after the answer, and ends when the packet no longer has a holder.
 */
export function leaseAfter<P extends AnyPacket>(packet: P, stored: StoredLease | null, now: Date): Leased<P> {
  if (!packet.lease || stored === null) return { packet, lease: stored };
  const { generation } = stored;
  if (packet.status === askedStatus) return { packet: { ...packet, lease: { generation, expires_at: null } }, lease: stored };
  if (!workingStatuses.includes(packet.status)) return { packet: { ...packet, lease: null }, lease: { ...stored, token: null } };
  if (packet.lease.expires_at !== null) return { packet, lease: stored };
  return { packet: { ...packet, lease: { generation, expires_at: endOf(now, stored.seconds) } }, lease: stored };
}

/** Whether the packet's lease has expired. */
export function isLeaseOver({ lease }: AnyPacket, now: Date): boolean {
  return lease !== null && lease.expires_at !== null && now.getTime() >= Date.parse(lease.expires_at);
}

/** What a caller shows of its lease: the token or, where the protocol lets the holder leave that out, the id of the agent. */
export interface LeaseProof {
  readonly token?: string | undefined;
  readonly holder?: string | undefined;
}

/**
 * Requires the token of a leased packet, or that its holder asks. A token for a packet without a lease is refused too.
 * @throws ServiceError 409 LEASE_LOST
 */
export function requireToken(packet: AnyPacket, stored: StoredLease | null, { token, holder }: LeaseProof, now: Date): void {
  if (packet.lease === null && token === undefined) return;
  if (packet.lease === null || stored === null || stored.token === null)
    throw lost('The packet has no lease; the token is no longer valid.');
  const { generation, expires_at } = packet.lease;
  if (isLeaseOver(packet, now)) throw lost(`The lease of the packet expired at ${expires_at}.`);
  if (token === undefined && holder !== undefined && holder === packet.claimed_by?.agent_id) return;
  if (token === undefined) throw lost('The packet is leased: send the lease token from its claim.');
  // Comparing digests leaks nothing about the token through timing.
  if (tokenHash(token) !== stored.token) throw lost(`The token does not belong to the packet's current lease (generation ${generation}).`);
}

const lost = (sentence: string) => new ServiceError(errors.LEASE_LOST, sentence);
