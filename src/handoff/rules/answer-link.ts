import { hash } from 'node:crypto';
import type { AnswerLinkStatus } from '../model/answer-link.ts';
import type { Hitl } from '../model/packet.ts';
import type { AnyPacket } from './packet.ts';
import { askedStatus } from './packet-life.ts';
import { isOverdue } from './question.ts';

/** How many random bytes the token of an answer link has. */
export const linkTokenBytes = 32;

/**
 * The token of an answer link: the id of its tenant, by which a cluster finds the server that stores the link, and random bytes.
 * Hexadecimal, since mail programs may change the case of an address.
 */
export const linkToken = (tenantId: string, bytes: Buffer): string => tenantId.replaceAll('-', '') + bytes.toString('hex');

/** The id of the tenant in a token; undefined for any other text. */
export function tenantOfLink(token: string): string | undefined {
  const parts = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})[0-9a-f]{64}$/.exec(token);
  return parts?.slice(1).join('-');
}

/** The hash that is stored for a token. A token has 256 random bits, so a plain digest can't be reversed by search. */
export const linkHash = (token: string): string => hash('sha256', token);

/** What decides whether an answer link can be used. */
export interface LinkState {
  /** The question that it is for. */
  readonly question: string;
  readonly expires_at: string;
  readonly answered_at: string | null;
  readonly revoked_at: string | null;
}

/** What identifies the question of a packet: its id or, for questions of earlier versions, when it was asked. */
export const questionOf = ({ question_id, requested_at }: Hitl): string | null => question_id ?? requested_at;

/** Whether an answer link can be used, or why not. */
export function linkStatus(
  { question, expires_at, answered_at, revoked_at }: LinkState,
  { status, hitl }: AnyPacket,
  now: Date,
): AnswerLinkStatus {
  if (answered_at !== null) return 'answered';
  if (revoked_at !== null) return 'revoked';
  const isAsked = hitl !== null && questionOf(hitl) === question;
  if (status === askedStatus && isAsked) return now.getTime() >= Date.parse(expires_at) || isOverdue(hitl, now) ? 'expired' : 'open';
  // After its answer, a packet may be asked another question.
  const wasAnswered = isAsked ? hitl.response !== null : hitl !== null;
  return wasAnswered ? 'closed' : 'expired';
}
