import { ServiceError } from '../../kit/errors.ts';
import type { AnsweredBy, Question } from '../model/hitl.ts';

/** A name that somebody entered. */
export const typedName = (name: string, more: Pick<AnsweredBy, 'key_id' | 'link_id'> = {}): AnsweredBy => ({
  name,
  verified: false,
  method: 'typed',
  ...more,
});

/** Whether it is known that it was this person, and not a program on the person's behalf. */
const isPerson = ({ verified, method }: AnsweredBy): boolean => verified && method !== 'token';

/** Requires that it is known who answers, where the question asks for that. @throws ServiceError 403 */
export function requireVerified({ require_verified }: Pick<Question, 'require_verified'>, by: AnsweredBy): void {
  if (!require_verified || isPerson(by)) return;
  const given = by.method === 'token' ? 'was sent with a token, which a program holds' : 'is only typed';
  throw new ServiceError(
    'FORBIDDEN',
    `The question takes the answer of a person whose name is verified: by a sign-in, a key with that responder, or a link made for that person. The name ${given}.`,
    { field: 'responded_by' },
  );
}

/** A name as people are shown it. */
export const shownName = ({ responded_by, answered_by }: { responded_by: string | null; answered_by?: AnsweredBy | undefined }): string =>
  answered_by !== undefined && !answered_by.verified ? `${responded_by} (typed, not verified)` : (responded_by ?? '');
