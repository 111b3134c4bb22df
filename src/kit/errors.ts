import { beginningOf } from './wording.ts';

/** An error code with its HTTP status and meaning. */
export interface CodedError {
  readonly code: string;
  readonly status: number;
  readonly meaning: string;
}

type Described = Readonly<Record<string, Omit<CodedError, 'code'>>>;

/** Declares error codes of a service: each with its code beside its HTTP status and meaning. */
export const coded = <const Codes extends Described>(codes: Codes) =>
  Object.fromEntries(Object.entries(codes).map(([code, described]) => [code, { code, ...described }])) as {
    readonly [Code in keyof Codes]: CodedError & { readonly code: Code };
  };

/** The error codes that every service has. */
export const commonErrors = coded({
  VALIDATION_ERROR: {
    status: 400,
    meaning: 'The request does not match the schema of this operation; `field` names the first fault, `errors` lists all of them.',
  },
  UNAUTHORIZED: { status: 401, meaning: 'The API key is missing, unknown or revoked.' },
  FORBIDDEN: { status: 403, meaning: 'The API key is valid but may not do this.' },
  NOT_FOUND: { status: 404, meaning: 'This caller has no resource with this id, or the path is unknown.' },
  METHOD_NOT_ALLOWED: { status: 405, meaning: 'The path does not support this method; `Allow` lists the methods it supports.' },
  CONFLICT: { status: 409, meaning: 'The state of the resource does not allow this.' },
  GONE: { status: 410, meaning: 'The resource has expired.' },
  PRECONDITION_FAILED: { status: 412, meaning: 'The resource changed since the version named in `If-Match`.' },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    meaning: 'The body is larger than this caller may send, or the requested page is larger than a page may be.',
  },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, meaning: 'The body is not `application/json` in UTF-8.' },
  UPGRADE_REQUIRED: { status: 426, meaning: 'This path only accepts WebSocket (version 13).' },
  RATE_LIMITED: {
    status: 429,
    meaning: 'A limit is used up; `limit` names it, and `Retry-After` has the seconds until a request is accepted again.',
  },
  SERVER_ERROR: { status: 500, meaning: 'The service failed; the log has the cause under the `request_id`.' },
  SERVICE_UNAVAILABLE: { status: 503, meaning: 'The database is unavailable, or the service is overloaded; try again.' },
});

export type CommonCode = keyof typeof commonErrors;

/** One fault of a request: the dotted path from the body's root (or the name of a parameter) and a sentence. */
export interface Fault {
  field: string;
  detail: string;
}

/** The fault of a field, whose path begins the sentence. */
export const faultOf = (field: string, rest: string): Fault => ({ field, detail: `${field} ${rest}` });

interface ErrorDetails {
  field?: string | null;
  faults?: readonly Fault[];
  /** Additional fields of the error body, for example `claimed_by`. */
  extra?: Record<string, unknown>;
  headers?: Record<string, string>;
}

/** The longest text that an error body quotes, in characters: a field name may be as long as a whole request. */
const maxQuoted = 500;

/** The text as an error body quotes it. */
export const short = (text: string, most = maxQuoted): string => (text.length > most ? `${beginningOf(text, most)}...` : text);

/** An error for the caller: a code of every service or one that its service declares, a sentence, and the field it is about. */
export class ServiceError extends Error {
  readonly code: string;
  readonly status: number;
  readonly field: string | null;
  readonly faults: readonly Fault[];
  readonly extra: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(
    of: CommonCode | Pick<CodedError, 'code' | 'status'>,
    detail: string,
    { field = null, faults = [], extra = {}, headers = {} }: ErrorDetails = {},
  ) {
    // Nobody reads the stack of a refusal, and capturing it would cost more than the rest of the request.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(detail);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ServiceError';
    const { code, status } = typeof of === 'string' ? commonErrors[of] : of;
    this.code = code;
    this.status = status;
    this.field = field;
    this.faults = faults;
    this.extra = extra;
    this.headers = headers;
  }

  /** The error body without the request id: `{detail, code, field, status_code, ...}`. */
  body(): Record<string, unknown> {
    return {
      detail: short(this.message),
      code: this.code,
      field: this.field === null ? null : short(this.field),
      status_code: this.status,
      ...(this.faults.length > 1
        ? { errors: this.faults.map(({ field, detail }) => ({ field: short(field), detail: short(detail) })) }
        : {}),
      ...this.extra,
    };
  }
}

/** The names of limits in the body of a 429. */
export const limitNames = ['second', 'minute', 'hour', 'day', 'connections', 'wrong_keys'] as const;

/** A limit: its name and how much it allows. */
export interface Limit {
  readonly name: (typeof limitNames)[number];
  readonly max: number;
}

/** A limit is used up: 429 `RATE_LIMITED`. The body names the limit and the seconds until it allows a request again. */
export class LimitReached extends ServiceError {
  readonly retryAfter: number;

  constructor(detail: string, { name, max }: Limit, retryAfter: number) {
    super('RATE_LIMITED', detail, {
      extra: { limit: { name, max, reset_seconds: retryAfter } },
      headers: { 'Retry-After': String(retryAfter) },
    });
    this.retryAfter = retryAfter;
  }
}

/** An invalid request: 400 `VALIDATION_ERROR` on `field`. */
export function invalid(field: string, detail: string): ServiceError {
  return new ServiceError('VALIDATION_ERROR', detail, { field });
}

/** An invalid request with one or more faults: 400 `VALIDATION_ERROR`, with the sentence and the field of the first one. */
export function invalidRequest(faults: readonly Fault[]): ServiceError {
  const { field, detail } = faults[0]!;
  return new ServiceError('VALIDATION_ERROR', detail, { field, faults });
}

/** The answer for an unknown id and for another tenant's id alike: 404 `NOT_FOUND`. */
export function notFound(what: string): ServiceError {
  return new ServiceError('NOT_FOUND', `No such ${what}.`);
}

/** The state of the resource does not allow the operation: 409 `CONFLICT`. */
export function conflict(detail: string, extra: Record<string, unknown> = {}): ServiceError {
  return new ServiceError('CONFLICT', detail, { extra });
}

/** Something is unavailable now: 503, to be tried again after a second. */
const retryable = (detail: string) => new ServiceError('SERVICE_UNAVAILABLE', detail, { headers: { 'Retry-After': '1' } });

/** The database is unavailable: 503 `SERVICE_UNAVAILABLE`. The cause is logged and never sent to a caller. */
export function unavailable(cause?: unknown): ServiceError {
  const error = retryable('The database is not reachable. Try again in a moment.');
  if (cause !== undefined) error.cause = cause;
  return error;
}

/** The error that a caller is told: a ServiceError itself, 503 while the database is unavailable, otherwise 500. */
export function toServiceError(error: unknown, isUnavailable: (error: unknown) => boolean): ServiceError {
  if (error instanceof ServiceError) return error;
  if (isUnavailable(error)) return unavailable(error);
  return new ServiceError('SERVER_ERROR', 'The service failed; the log has the cause under the request_id.');
}

/** A memory or queue limit is reached: 503 `SERVICE_UNAVAILABLE`, to be retried after a second. `what` is in the plural. */
export function tooManyPending(what: string): ServiceError {
  return retryable(`The service is handling as many ${what} as it can. Try again in a moment.`);
}

/** The client disconnected, so the work was not started or not finished. It only stops the work; nobody receives it. */
export function abandoned(): ServiceError {
  return new ServiceError('VALIDATION_ERROR', 'The connection closed before the answer.');
}

/** The request exceeded the time limit of the service: 503 `SERVICE_UNAVAILABLE`. */
export function tookTooLong(): ServiceError {
  return retryable('The request timed out. Request fewer items, or try again in a moment.');
}

/** The log fields of an error whose stack says nothing, such as that of an unavailable database: type, message and code. */
export function describeBriefly(cause: unknown): Omit<ReturnType<typeof describeCause>, 'stack'> {
  const { stack: _, ...brief } = describeCause(cause);
  return brief;
}

/** The log fields of an unexpected error: type, message and stack, without values that a database may quote. */
export function describeCause(cause: unknown): { type: string; message: string; code?: unknown; stack?: string } {
  if (!(cause instanceof Error)) return { type: typeof cause, message: 'Something that is not an Error was thrown.' };
  const code = (cause as { code?: unknown }).code;
  return {
    type: cause.name,
    message: cause.message,
    ...(code === undefined ? {} : { code }),
    ...(cause.stack === undefined ? {} : { stack: cause.stack }),
  };
}
