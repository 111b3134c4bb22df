import { systemClock } from './clock.ts';
import { readJson } from './json.ts';
import { retryAfterMs } from './retry-after.ts';

/** What a client's method rejects with; its own errors are ApiError, NetworkError and TimeoutError. */
export class ClientError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A request that the service rejected: the response has an error status. */
export class ApiError extends ClientError {
  /** The HTTP status. */
  readonly status_code: number;
  /** The error code; undefined if the response does not have the service's error body, for example one from a proxy. */
  readonly code: string | undefined;
  /** The dotted path of the invalid field, or the name of the parameter; null if the error is not about a field. */
  readonly field: string | null;
  /** All faults, if the service found several. */
  readonly errors: readonly { readonly field: string; readonly detail: string }[];
  /** The id under which the service logged the request. */
  readonly request_id: string | undefined;
  /** Seconds until a request is accepted again, from `Retry-After`. */
  readonly retryAfterSeconds: number | undefined;
  /** The whole body; empty if it is not a JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The response headers, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, text: string, headers: Readonly<Record<string, string>>) {
    const body = objectIn(text);
    super(typeof body.detail === 'string' ? body.detail : `The service answered ${status}.`);
    this.status_code = status;
    this.code = textOr(body.code, undefined);
    this.field = textOr(body.field, null);
    this.errors = Array.isArray(body.errors) ? body.errors.filter(isFault) : [];
    this.request_id = textOr(body.request_id, headers['x-request-id']);
    const wait = retryAfterMs(headers['retry-after'], systemClock());
    this.retryAfterSeconds = wait === null ? undefined : wait / 1000;
    this.body = body;
    this.headers = headers;
  }
}

/** The service could not be reached, or the connection broke before the response was complete. */
export class NetworkError extends ClientError {
  /** Scheme, host and port of the service. */
  readonly origin: string;
  /** The system's error code, for example `ECONNREFUSED`, if there is one. */
  readonly code: string | undefined;

  constructor(url: string, cause: unknown) {
    const code = codeOf(cause);
    const { origin } = new URL(url);
    super(`${origin} could not be reached${code === undefined ? '' : ` (${code})`}.`, { cause });
    this.origin = origin;
    this.code = code;
  }

  /** Whether no byte of the request can have arrived, so that even a request that is not idempotent may be retried. */
  get unsent(): boolean {
    return this.code !== undefined && ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'].includes(this.code);
  }
}

/** The response timed out. Whether the service carried out the request is unknown. */
export class TimeoutError extends ClientError {
  constructor(url: string, seconds: number) {
    super(`${new URL(url).origin} did not answer within ${seconds} seconds.`);
  }
}

const textOr = <T>(value: unknown, otherwise: T): string | T => (typeof value === 'string' ? value : otherwise);

const isFault = (value: unknown): value is { field: string; detail: string } => {
  const { field, detail } = (value ?? {}) as { field?: unknown; detail?: unknown };
  return typeof field === 'string' && typeof detail === 'string';
};

function objectIn(text: string): Record<string, unknown> {
  try {
    const value = readJson(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The system's code of an error or of its cause; if several addresses failed, that of the first. */
function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] };
  return typeof code === 'string' ? code : codeOf(cause ?? errors?.[0]);
}
