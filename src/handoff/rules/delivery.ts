import { retryAfterMs } from '../../kit/retry-after.ts';
import type { DeliveryError, DeliveryStatus } from '../model/webhook.ts';

/** The part of a delivery that an attempt changes. Times are ISO 8601 texts. */
export interface DeliveryState {
  readonly status: DeliveryStatus;
  readonly attempts: number;
  readonly last_error: DeliveryError | null;
  readonly last_status_code: number | null;
  readonly next_retry_at: string | null;
  readonly delivered_at: string | null;
  /** When the next attempt may start, or when the lease of the current attempt expires; null: never. */
  readonly due_at: string | null;
}

/** How an attempt ended. */
export interface AttemptOutcome {
  /** Why it failed; undefined when the receiver answered 2xx. */
  readonly error: DeliveryError | undefined;
  /** The receiver's HTTP status, or the reply code of a mail server, if it answered. */
  readonly statusCode: number | undefined;
  /** The answer's `Retry-After`. */
  readonly retryAfter?: string | undefined;
  /** Whether a mail server has refused for good. */
  readonly isFinal?: boolean;
}

interface RetryInputs {
  readonly now: Date;
  /** The delay after each failed attempt, in seconds; its length is the number of attempts. */
  readonly retrySeconds: readonly number[];
  /** A random number from 0 to 1, for the jitter. */
  readonly random: number;
}

/** Jitter lengthens a delay by at most this fraction. */
const maxJitter = 0.1;

/** The longest `Retry-After` that is respected, in seconds. */
const maxRetryAfter = 3600;

/** The status of a receiver that is permanently gone. */
const gone = 410;

const after = (now: Date, seconds: number) => new Date(now.getTime() + Math.ceil(seconds * 1000)).toISOString();

/** The state of a delivery after an attempt: delivered, to be retried, or a dead letter. */
export function afterAttempt(
  { attempts: before, status }: Pick<DeliveryState, 'attempts' | 'status'>,
  { error, statusCode, retryAfter, isFinal }: AttemptOutcome,
  { now, retrySeconds, random }: RetryInputs,
): DeliveryState {
  const attempts = before + 1;
  const last_status_code = statusCode ?? null;
  if (error === undefined) {
    const ended = { next_retry_at: null, delivered_at: now.toISOString(), due_at: null };
    return { status: 'delivered', attempts, last_error: null, last_status_code, ...ended };
  }
  const failed = { attempts, last_error: error, last_status_code, delivered_at: null };
  // The webhook was removed during the attempt: record the outcome, but do not retry.
  if (status === 'cancelled') return { ...failed, ...cancelled() };
  const delay = retrySeconds[attempts - 1] ?? retrySeconds.at(-1)!;
  if (isFinal || isGone({ statusCode }) || attempts >= retrySeconds.length) {
    return { ...failed, status: 'dead_letter', next_retry_at: after(now, retrySeconds.at(-1)!), due_at: null };
  }
  const next = after(now, Math.max(delay * (1 + maxJitter * random), retryAfterSeconds(statusCode, retryAfter, now)));
  return { ...failed, status: 'failed', next_retry_at: next, due_at: next };
}

/** The state of a delivery that starts, or starts over, with its full number of attempts. */
export function restarted(now: Date): DeliveryState {
  const none = { last_error: null, last_status_code: null, next_retry_at: null, delivered_at: null };
  return { status: 'pending', attempts: 0, ...none, due_at: now.toISOString() };
}

/** Whether the outcome of an attempt that was leased until `until` is recorded. */
export function isRecorded({ status, due_at }: DeliveryState, { error }: AttemptOutcome, until: Date): boolean {
  // A later attempt, begun after this lease expired, has delivered it.
  if (status === 'delivered') return false;
  // If the lease expired and another instance holds the delivery, a failure of this attempt no longer counts.
  return error === undefined || status === 'cancelled' || due_at === until.toISOString();
}

/** Whether a delivery has failed for good, unless it is replayed. */
export function isDeadLetter({ status }: Pick<DeliveryState, 'status'>): boolean {
  return status === 'dead_letter';
}

/** Whether a delivery has failed and no attempt is in progress. */
export function isRetriable(delivery: DeliveryState): boolean {
  return isDeadLetter(delivery) || (delivery.status === 'failed' && delivery.due_at === delivery.next_retry_at);
}

/** How the cancellation of a delivery changes it: it stays as the last attempt left it, and nothing is due. */
export function cancelled(): Pick<DeliveryState, 'status' | 'next_retry_at' | 'due_at'> {
  return { status: 'cancelled', next_retry_at: null, due_at: null };
}

/** Whether the receiver answered that it is permanently gone. */
export function isGone({ statusCode }: Pick<AttemptOutcome, 'statusCode'>): boolean {
  return statusCode === gone;
}

/** The delay that the receiver asks for, in seconds; 0 when it asks for none, or in an invalid form. */
function retryAfterSeconds(statusCode: number | undefined, retryAfter: string | undefined, now: Date): number {
  if (retryAfter === undefined || (statusCode !== 429 && statusCode !== 503)) return 0;
  return Math.min((retryAfterMs(retryAfter, now) ?? 0) / 1000, maxRetryAfter);
}

/** Whether a webhook whose deliveries have all failed since `failingSince` must be disabled. */
export function hasFailedTooLong(failingSince: string, disableAfterSeconds: number, now: Date): boolean {
  return disableAfterSeconds > 0 && now.getTime() - Date.parse(failingSince) >= disableAfterSeconds * 1000;
}

/** The secrets to sign with now, newest first. */
export function currentSecrets(
  { secret, old_secret, old_secret_until }: { secret: string; old_secret: string | null; old_secret_until: string | null },
  now: Date,
): string[] {
  const overlaps = old_secret !== null && old_secret_until !== null && now.getTime() < Date.parse(old_secret_until);
  return overlaps ? [secret, old_secret] : [secret];
}
