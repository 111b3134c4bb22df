import { ServiceError } from '../../kit/errors.ts';
import { errors } from '../model/errors.ts';
import type { Answer, Question } from '../model/hitl.ts';
import type { EndedQuestion } from './answer.ts';
import { canonicalJson } from './canonical-json.ts';
import type { AnyPacket } from './packet.ts';
import type { GivenQuestion } from './question.ts';
import { latestQuestion } from './question-state.ts';

/** A question of a packet that has ended, as far as its key needs it. */
export interface EarlierQuestion extends Pick<EndedQuestion, 'state' | 'question' | 'answer'> {
  readonly question_id: string;
}

interface KeyedQuestion {
  readonly question_id: string;
  readonly question: Question;
  readonly answer: Answer | null;
}

/** The question of a packet that has a key: the open question or an answered one. A question that ended otherwise has freed its key. */
function withKey(packet: AnyPacket, key: string, earlier: readonly EarlierQuestion[], now: Date): KeyedQuestion | undefined {
  const latest = latestQuestion(packet, now);
  if ((latest.state === 'open' || latest.state === 'answered') && latest.question.key === key)
    return { question_id: latest.asked.question_id, question: latest.question, answer: latest.answer };
  return earlier.findLast(({ state, question }) => state === 'answered' && question.key === key);
}

/**
 * The id of the question that a request repeats, as its key says; undefined for a new one.
 * @throws ServiceError 409 KEY_CHANGED when the key belongs to a question with other fields
 */
export function sameQuestion(
  packet: AnyPacket,
  question: Question,
  given: GivenQuestion,
  earlier: readonly EarlierQuestion[],
  now: Date,
): string | undefined {
  if (question.key === undefined) return undefined;
  const known = withKey(packet, question.key, earlier, now);
  if (known === undefined) return undefined;
  // Inherited from the packet's questions unless it is sent, so that it tells nothing about the request.
  const compared = ({ exclude_source, ...rest }: Question) =>
    canonicalJson(given.exclude_source === undefined ? rest : { ...rest, exclude_source: exclude_source ?? false });
  if (compared(question) === compared(known.question)) return known.question_id;
  throw new ServiceError(
    errors.KEY_CHANGED,
    `The key ${JSON.stringify(question.key)} belongs to another question of the packet; use a new key.`,
    {
      extra: { ...known },
    },
  );
}
