import { ApiError, ClientError, NetworkError, TimeoutError } from '../../kit/client-errors.ts';
import { beginningOf } from '../../kit/wording.ts';
import type { Execution } from '../model/action.ts';
import type { Answer, Question } from '../model/hitl.ts';
import type { ActionDecision } from './approvals.ts';

/** Nobody answered in time, or the question ended before. */
export class NoAnswer extends ClientError {}

/** 409 `KEY_CHANGED`: the key belongs to another question of the packet, which may be answered already. */
export class QuestionChanged extends ApiError {
  /** The question that has the key, as it was asked. */
  readonly question: Question | undefined;
  /** Its answer; null if it is still open. */
  readonly answer: Answer | null;

  constructor(error: ApiError) {
    super(error.status_code, JSON.stringify(error.body), error.headers);
    this.question = error.body.question as Question | undefined;
    this.answer = (error.body.answer ?? null) as Answer | null;
  }
}

/** 409 `CALL_CHANGED`: the agent asked about the call with another tool or other arguments. */
export class CallChanged extends ApiError {
  /** The packet that the call was asked about in. */
  readonly packet_id: string;

  constructor(error: ApiError) {
    super(error.status_code, JSON.stringify(error.body), error.headers);
    this.packet_id = String(error.body.packet_id);
  }
}

/** A person or a policy rejected the action; the message is what they said. */
export class ActionRejected extends ClientError {
  readonly decision: ActionDecision;

  constructor(message: string, decision: ActionDecision) {
    super(message);
    this.decision = decision;
  }
}

/** The tool was called for this call before, and threw then. */
export class ActionFailed extends ClientError {
  readonly execution: Execution;

  constructor(message: string, execution: Execution) {
    super(message);
    this.execution = execution;
  }
}

/** Whether an error ends by itself. */
export const isPassing = (error: unknown): boolean =>
  error instanceof NetworkError ||
  error instanceof TimeoutError ||
  (error instanceof ApiError && (error.status_code === 429 || error.status_code >= 500 || error.status_code === 200));

/** Whether the service refused with one of the codes. */
export const isRefusal = (error: unknown, ...codes: readonly string[]): error is ApiError =>
  error instanceof ApiError && error.code !== undefined && codes.includes(error.code);

/** The most characters of an error in a packet. */
const longestError = 2000;

/** The name and the text of what was thrown, which a packet can hold. */
export function wordsOf(thrown: unknown, otherwise: string): string {
  let text: string;
  try {
    text = String(thrown);
  } catch {
    text = otherwise;
  }
  return beginningOf(text.toWellFormed().replaceAll('\0', ' '), longestError) || otherwise;
}
