import { hash } from 'node:crypto';

import { ServiceError } from '../../kit/errors.ts';
import type { AnyPacket } from './packet.ts';

/** What is stored of a packet's leases, and never shown. Null where the packet was never leased. */
export interface StoredLease {
  /** How many leases the packet has had. */
  readonly generation: number;
  /** How long the latest was asked for. */
  readonly seconds: number;
  /** The SHA-256 of its token; null once it is over. */
  readonly token: string | null;
}

/** A lease that is asked for: how long, and the token that its holder will show. */
export interface LeaseTerms {
  readonly seconds: number;
  readonly token: string;
}

/** A lease's own digest. A token has 256 random bits, so a plain digest can't be searched backwards. */
const digestOf = (token: string): string => hash('sha256', token);

const endOf = (now: Date, seconds: number): string => new Date(now.getTime() + seconds * 1000).toISOString();

/** The packet with a new lease, and what is stored of it; with none where no terms are given. */
export function leased<P extends AnyPacket>(
  packet: P,
  before: StoredLease | null,
  terms: LeaseTerms | undefined,
  now: Date,
): { packet: P; lease: StoredLease | null } {
  if (terms === undefined) return { packet: { ...packet, lease: null }, lease: before === null ? null : { ...before, token: null } };
  const generation = (before?.generation ?? 0) + 1;
  return {
    packet: { ...packet, lease: { generation, expires_at: endOf(now, terms.seconds) } },
    lease: { generation, seconds: terms.seconds, token: digestOf(terms.token) },
  };
}

/** The packet with its lease renewed from now, and what is stored of it. */
export function renewed<P extends AnyPacket>(
  packet: P,
  before: StoredLease,
  seconds: number | undefined,
  now: Date,
): { packet: P; lease: StoredLease } {
  const lease = { ...before, seconds: seconds ?? before.seconds };
  const expires_at = packet.status === 'awaiting_human' ? null : endOf(now, lease.seconds);
  return { packet: { ...packet, lease: { generation: lease.generation, expires_at } }, lease };
}

/**
 * The lease as a change of status leaves it: suspended while a person is awaited, running its full time again after the
 * answer, over where nobody holds the packet any more.
 */
export function carriedOn<P extends AnyPacket>(packet: P, stored: StoredLease | null, now: Date): { packet: P; lease: StoredLease | null } {
  if (!packet.lease || stored === null) return { packet, lease: stored };
  const { generation } = stored;
  switch (packet.status) {
    case 'awaiting_human':
      return { packet: { ...packet, lease: { generation, expires_at: null } }, lease: stored };
    case 'claimed':
    case 'in_progress':
      if (packet.lease.expires_at !== null) return { packet, lease: stored };
      return { packet: { ...packet, lease: { generation, expires_at: endOf(now, stored.seconds) } }, lease: stored };
    default:
      return { packet: { ...packet, lease: null }, lease: { ...stored, token: null } };
  }
}

/** Whether the time of the packet's lease is over. */
export function isLeaseOver({ lease }: AnyPacket, now: Date): boolean {
  return lease !== null && lease.expires_at !== null && now.getTime() >= Date.parse(lease.expires_at);
}

/**
 * Refuses a change of a leased packet without its token, and a token that leases nothing (any more).
 * @throws ServiceError 409 LEASE_LOST
 */
export function requireToken(packet: AnyPacket, stored: StoredLease | null, token: string | undefined, now: Date): void {
  if (packet.lease === null && token === undefined) return;
  if (packet.lease === null || stored === null || stored.token === null)
    throw lost('The packet has no lease, so its token leases nothing any more.');
  const { generation, expires_at } = packet.lease;
  if (isLeaseOver(packet, now)) throw lost(`The lease of the packet ended at ${expires_at}.`);
  if (token === undefined) throw lost('The packet is leased: X-Lease-Token must carry the token of its claim.');
  // Digests are compared: how long that takes tells nothing of the token.
  if (digestOf(token) !== stored.token) throw lost(`The token is not that of the packet's lease ${generation}.`);
}

const lost = (sentence: string) => new ServiceError('LEASE_LOST', sentence);
