import type { OpenCase } from './action-case.ts';
import type { AnyPacket, Decision, QuestionsBefore } from './packet.ts';
import type { GivenQuestion } from './question.ts';
import { isAwaited } from './question-state.ts';

/**
 * What the service keeps of a packet's questions beside `hitl`, which does not show it. `exclude_source` and `require_verified` of a
 * withdrawn question hold for the next question too, until a key that may lift them does.
 */
export interface KeptOfQuestions {
  readonly exclude_source?: true;
  readonly require_verified?: true;
  /** When channels were last told of the open question. */
  readonly notified_at?: string;
  /** How the open question about an action is approved. */
  readonly approval?: OpenCase;
  /** Set for a packet that was made to ask about an action, and ends by itself. */
  readonly own?: OwnPacket;
}

/** Whether the execution of an own packet's action has begun. */
export type OwnPacket = 'waiting' | 'begun';

/** What a packet's next question has unless the request says otherwise. */
export const inherited = ({ hitl }: AnyPacket, kept: KeptOfQuestions): GivenQuestion => ({
  ...((hitl ?? kept).exclude_source ? { exclude_source: true } : {}),
  ...((hitl ?? kept).require_verified ? { require_verified: true } : {}),
});

/** What to keep of a packet's questions after a command. */
export function keptAfter(
  before: AnyPacket,
  after: AnyPacket,
  { events, approval, own }: Decision<AnyPacket>,
  { kept }: QuestionsBefore,
): KeptOfQuestions {
  // With a question, the packet itself says whether it excludes its source. Without one, it was withdrawn or never asked.
  const stays = (field: 'exclude_source' | 'require_verified') =>
    after.hitl === null && (before.hitl === null ? kept[field] : isAwaited(before) && before.hitl[field]) ? { [field]: true } : {};
  const isTold = events.some(({ notifies }) => notifies === 'asked');
  const open = approval === undefined ? kept.approval : (approval ?? undefined);
  const marked = own ?? kept.own;
  return {
    ...(isAwaited(after) && open !== undefined ? { approval: open } : {}),
    ...(marked === undefined ? {} : { own: marked }),
    ...stays('exclude_source'),
    ...stays('require_verified'),
    ...(isTold
      ? { notified_at: after.updated_at }
      : kept.notified_at === undefined || !isAwaited(after)
        ? {}
        : { notified_at: kept.notified_at }),
  };
}
