interface JsonRpcError {
  readonly code: number;
  readonly message: string;
  /** Details in the sense of AIP-193; the first has the code of a refusal of the API, and the seconds until a repeat may succeed. */
  readonly data?: readonly { readonly metadata?: { readonly code?: string; readonly retryAfter?: string } }[];
}

/** How requests and answers of A2A are written. */
export type Binding = 'JSONRPC' | 'HTTP+JSON';

/** The HTTP status and the status name of each error code (A2A 1.0, section 5.4). Malformed requests have the codes of JSON-RPC. */
const statusOfError: Readonly<Record<number, readonly [number, string]>> = {
  [-32001]: [404, 'NOT_FOUND'],
  [-32002]: [409, 'FAILED_PRECONDITION'],
  [-32003]: [400, 'UNIMPLEMENTED'],
  [-32004]: [400, 'UNIMPLEMENTED'],
  [-32005]: [415, 'INVALID_ARGUMENT'],
  [-32009]: [400, 'UNIMPLEMENTED'],
  [-32602]: [400, 'INVALID_ARGUMENT'],
};

/** The same for refusals of the API that A2A has no error for. */
const statusOfRefusal: Readonly<Record<string, readonly [number, string]>> = {
  FORBIDDEN: [403, 'PERMISSION_DENIED'],
  RATE_LIMITED: [429, 'RESOURCE_EXHAUSTED'],
  SERVICE_UNAVAILABLE: [503, 'UNAVAILABLE'],
};

/** An answer of HTTP. */
export interface Written {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** A response of JSON-RPC as an answer of HTTP in each binding. Errors of HTTP+JSON have the form of AIP-193. */
export const writers: Readonly<Record<Binding, (response: object) => Written>> = {
  JSONRPC: (body) => ({ status: 200, body }),
  'HTTP+JSON'(response) {
    const { result, error } = response as { result?: unknown; error?: JsonRpcError };
    if (error === undefined) return { status: 200, body: result ?? {} };
    const { code, message, data: details = [] } = error;
    const { code: refusal = '', retryAfter } = details[0]?.metadata ?? {};
    const [status, name] = statusOfRefusal[refusal] ?? statusOfError[code] ?? [500, 'INTERNAL'];
    const headers = retryAfter === undefined ? {} : { 'retry-after': retryAfter };
    return { status, headers, body: { error: { code: status, status: name, message, details } } };
  },
};
