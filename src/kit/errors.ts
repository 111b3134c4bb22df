/** Every error code a service answers with, and the HTTP status it travels under. */
export const errorCodes = {
  VALIDATION_ERROR: {
    status: 400,
    meaning: 'The request does not have the form this operation takes; `field` names the first fault, `errors` lists all of them.',
  },
  UNAUTHORIZED: { status: 401, meaning: 'The API key is missing, unknown or revoked.' },
  FORBIDDEN: { status: 403, meaning: 'The API key is valid but may not do this.' },
  NOT_FOUND: { status: 404, meaning: 'Nothing of that id exists for this caller, or the path is unknown.' },
  METHOD_NOT_ALLOWED: { status: 405, meaning: 'The path exists, but not with this method; `Allow` lists the methods it has.' },
  CONFLICT: { status: 409, meaning: 'The state of the resource does not allow this.' },
  LEASE_LOST: { status: 409, meaning: 'The packet is leased and the token is missing, stale or ended; nothing was changed.' },
  LOOP_GUARD: { status: 409, meaning: 'A guard against runaway agents refused another packet; the sentence has the figure.' },
  GONE: { status: 410, meaning: 'The resource has expired.' },
  PRECONDITION_FAILED: { status: 412, meaning: 'The resource changed since the version named in `If-Match`.' },
  PAYLOAD_TOO_LARGE: {
    status: 413,
    meaning: 'The body is larger than this caller may send, or the page that is asked for than a page may be.',
  },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, meaning: 'The body is not `application/json` in UTF-8.' },
  UPGRADE_REQUIRED: { status: 426, meaning: 'This path speaks WebSocket (version 13) and nothing else.' },
  RATE_LIMITED: {
    status: 429,
    meaning: 'A limit is used up; `limit` names it, and `Retry-After` says after how many seconds a request is let through again.',
  },
  SERVER_ERROR: { status: 500, meaning: 'The service failed; the log has the cause under the `request_id`.' },
  SERVICE_UNAVAILABLE: { status: 503, meaning: 'The database is out of reach, or too much is in hand; try again.' },
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** One fault of a request: the dotted path from the body's root (or a parameter's name) and a sentence. */
export interface Fault {
  field: string;
  detail: string;
}

interface ErrorParts {
  field?: string | null;
  faults?: readonly Fault[];
  /** Further members of the error body, for example `claimed_by`. */
  extra?: Record<string, unknown>;
  headers?: Record<string, string>;
}

/** The most of a text that an error body repeats: a field's name may be as long as a whole request. */
const maxQuoted = 500;

const short = (text: string) => (text.length > maxQuoted ? `${text.slice(0, maxQuoted).toWellFormed()}...` : text);

/** An error a caller is meant to see: a code of the table, a sentence, and the field it is about. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly status: number;
  readonly field: string | null;
  readonly faults: readonly Fault[];
  readonly extra: Record<string, unknown>;
  readonly headers: Record<string, string>;

  constructor(code: ErrorCode, detail: string, { field = null, faults = [], extra = {}, headers = {} }: ErrorParts = {}) {
    // A refusal is an answer, not a fault: its stack would cost more than the rest of the request and is never read.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    super(detail);
    Error.stackTraceLimit = stackTraceLimit;
    this.name = 'ServiceError';
    this.code = code;
    this.status = errorCodes[code].status;
    this.field = field;
    this.faults = faults;
    this.extra = extra;
    this.headers = headers;
  }

  /** The body that travels, without the request's id: `{detail, code, field, status_code, ...}`. */
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

/** The limits that a 429 names in its body. */
export const limitNames = ['second', 'minute', 'hour', 'day', 'connections', 'wrong_keys'] as const;

/** A limit: its name, and how much it allows. */
export interface Limit {
  readonly name: (typeof limitNames)[number];
  readonly max: number;
}

/** A limit is used up: 429 `RATE_LIMITED`. The body names the limit, and after how many seconds there is room again. */
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

/** A refusal of the request's form: 400 `VALIDATION_ERROR` on `field`. */
export function invalid(field: string, detail: string): ServiceError {
  return new ServiceError('VALIDATION_ERROR', detail, { field });
}

/** The answer for an unknown id and for another tenant's id alike: 404 `NOT_FOUND`. */
export function notFound(what: string): ServiceError {
  return new ServiceError('NOT_FOUND', `No such ${what}.`);
}

/** A refusal by state: 409 `CONFLICT`. */
export function conflict(detail: string, extra: Record<string, unknown> = {}): ServiceError {
  return new ServiceError('CONFLICT', detail, { extra });
}

/** The database is out of reach: 503 `SERVICE_UNAVAILABLE`. The cause goes to the log, never to a caller. */
export function unavailable(cause?: unknown): ServiceError {
  const error = new ServiceError('SERVICE_UNAVAILABLE', 'The database is not reachable. Try again in a moment.');
  if (cause !== undefined) error.cause = cause;
  return error;
}

/** As much is in hand as may be: 503 `SERVICE_UNAVAILABLE`, worth another try in a second. `what` is in the plural. */
export function tooMuchInHand(what: string): ServiceError {
  return new ServiceError('SERVICE_UNAVAILABLE', `The service has as many ${what} in hand as it can hold. Try again in a moment.`, {
    headers: { 'Retry-After': '1' },
  });
}

/** The one who asked has gone: work is not begun, or not ended. Nobody reads this answer. */
export function abandoned(): ServiceError {
  return new ServiceError('VALIDATION_ERROR', 'The connection closed before the answer.');
}

/** The request took longer than any may: 503 `SERVICE_UNAVAILABLE`. */
export function tookTooLong(): ServiceError {
  return new ServiceError('SERVICE_UNAVAILABLE', 'This took too long. Ask for less at once, or try again in a moment.', {
    headers: { 'Retry-After': '1' },
  });
}
