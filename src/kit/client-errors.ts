/** What a client's method rejects with; its own errors are ApiError, NetworkError and TimeoutError. */
export class ClientError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** A refusal by the service: an answer whose status is no success. */
export class ApiError extends ClientError {
  /** The HTTP status. */
  readonly status_code: number;
  /** What is wrong, for a program; undefined where what answered does not speak the service's JSON, a proxy say. */
  readonly code: string | undefined;
  /** The dotted path of the field at fault, or the name of the parameter; null when there is none. */
  readonly field: string | null;
  /** Every fault, where the service found several. */
  readonly errors: readonly { readonly field: string; readonly detail: string }[];
  /** Finds the request in the service's log. */
  readonly request_id: string | undefined;
  /** Seconds until a request is let through again, where the service says so. */
  readonly retryAfterSeconds: number | undefined;
  /** The whole body; empty where it is no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The headers of the answer, by their names in lower case. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, text: string, headers: Readonly<Record<string, string>>) {
    const body = objectIn(text);
    super(typeof body.detail === 'string' ? body.detail : `The service answered ${status}.`);
    this.status_code = status;
    this.code = textOr(body.code, undefined);
    this.field = textOr(body.field, null);
    this.errors = Array.isArray(body.errors) ? body.errors : [];
    this.request_id = textOr(body.request_id, headers['x-request-id']);
    const seconds = Number(headers['retry-after']);
    this.retryAfterSeconds = headers['retry-after'] !== undefined && seconds >= 0 ? seconds : undefined;
    this.body = body;
    this.headers = headers;
  }
}

/** The service could not be reached, or the connection broke before the answer was there. */
export class NetworkError extends ClientError {
  /** The address that was asked: scheme, host and port. */
  readonly origin: string;
  /** The system's code, `ECONNREFUSED` say, where there is one. */
  readonly code: string | undefined;

  constructor(url: string, cause: unknown) {
    const code = codeOf(cause);
    const { origin } = new URL(url);
    super(`${origin} could not be reached${code === undefined ? '' : ` (${code})`}.`, { cause });
    this.origin = origin;
    this.code = code;
  }

  /** Whether no byte of the request can have arrived, so that even what may not be done twice may be tried again. */
  get unsent(): boolean {
    return this.code !== undefined && ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'].includes(this.code);
  }
}

/** No answer came in time. Whether the service carried the request out is not known. */
export class TimeoutError extends ClientError {
  constructor(url: string, seconds: number) {
    super(`${new URL(url).origin} did not answer within ${seconds} seconds.`);
  }
}

const textOr = <T>(value: unknown, otherwise: T): string | T => (typeof value === 'string' ? value : otherwise);

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** The system's code of an error or of what caused it; of several addresses that failed, the first. */
function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, cause, errors } = error as { code?: unknown; cause?: unknown; errors?: unknown[] };
  return typeof code === 'string' ? code : codeOf(cause ?? errors?.[0]);
}
