/** Why an exchange failed. The names are stable, since callers store and show them, and never include the server's own text. */
export type OutgoingFailure =
  | 'timeout'
  | 'dns_error'
  | 'connection_refused'
  | 'connection_reset'
  | 'tls_error'
  | 'address_refused'
  /** The body exceeds the caller's limit, or is sent with too much around it. */
  | 'too_large'
  /** The caller's signal aborted, or `close` was called. */
  | 'cancelled';

/** An exchange that failed before its response was complete. `cause` is for the log. */
export class OutgoingError extends Error {
  readonly failure: OutgoingFailure;

  constructor(failure: OutgoingFailure, cause?: unknown) {
    super(`The request failed: ${failure}.`, cause === undefined ? undefined : { cause });
    this.name = 'OutgoingError';
    this.failure = failure;
  }
}

const byCode: Readonly<Record<string, OutgoingFailure>> = {
  ECONNREFUSED: 'connection_refused',
  EHOSTUNREACH: 'connection_refused',
  ENETUNREACH: 'connection_refused',
  EHOSTDOWN: 'connection_refused',
  ENETDOWN: 'connection_refused',
  EADDRNOTAVAIL: 'connection_refused',
  ECONNRESET: 'connection_reset',
  ECONNABORTED: 'connection_reset',
  EPIPE: 'connection_reset',
  UND_ERR_SOCKET: 'connection_reset',
  ETIMEDOUT: 'timeout',
};

const codeOf = (error: unknown): string => String((error as { code?: unknown } | null)?.code);

/** A failure to connect. Over TLS, an error that is not a network error is a failed handshake. */
export function connectFailure(error: unknown, protocol: string): OutgoingError {
  if (error instanceof OutgoingError) return error;
  return new OutgoingError(byCode[codeOf(error)] ?? (protocol === 'https:' ? 'tls_error' : 'connection_reset'), error);
}

/** A failure after the connection was established. A response that is not HTTP counts as a broken connection. */
export function exchangeFailure(error: unknown): OutgoingError {
  if (error instanceof OutgoingError) return error;
  const code = codeOf(error);
  // The request itself is invalid, which is a bug of the caller.
  if (code === 'UND_ERR_INVALID_ARG') throw error;
  return new OutgoingError(byCode[code] ?? (code.startsWith('ERR_SSL_') ? 'tls_error' : 'connection_reset'), error);
}

const redirects: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** The failure that a status stands for: undefined for 2xx. Redirects are never followed. */
export function statusFailure(status: number): 'redirect_refused' | 'http_status' | undefined {
  if (status >= 200 && status < 300) return undefined;
  return redirects.has(status) ? 'redirect_refused' : 'http_status';
}
