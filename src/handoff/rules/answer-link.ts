import { hash } from 'node:crypto';
import type { AnswerLinkStatus } from '../model/answer-link.ts';
import type { AnyPacket } from './packet.ts';
import { latestQuestion } from './question-state.ts';

/** How many random bytes the token of an answer link has. */
export const linkTokenBytes = 32;

/**
 * The token of an answer link: the id of its tenant, with which every query begins, and random bytes.
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
  /** The question that it was made for, and the id under which that was first asked. */
  readonly question: string;
  readonly first_question: string;
  /** Who was asked then. */
  readonly asked_of: string | null;
  readonly expires_at: string;
  readonly answered_at: string | null;
  readonly revoked_at: string | null;
}

/** Whether an answer link can be used, or why not. It leads to what became of its question, unless somebody else is asked now. */
export function linkStatus(link: LinkState, packet: AnyPacket, now: Date): AnswerLinkStatus {
  if (link.answered_at !== null) return 'answered';
  if (link.revoked_at !== null) return 'revoked';
  const latest = latestQuestion(packet, now);
  if (latest.state === 'none' || latest.state === 'draft') return 'expired';
  const { question_id, first_question_id = question_id } = latest.asked;
  const isChanged = first_question_id === link.first_question && (latest.question.responder ?? null) === link.asked_of;
  // Another question was asked since.
  if (question_id !== link.question && !isChanged) return 'closed';
  if (latest.state === 'answered') return 'closed';
  return latest.state === 'open' && now.getTime() < Date.parse(link.expires_at) ? 'open' : 'expired';
}
