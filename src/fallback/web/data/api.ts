import { currentKey, keyRefused } from './session.ts';

/** One fault of a request, by the dotted path of its field. */
export interface Fault {
  readonly field: string;
  readonly detail: string;
}

/** What the service answered instead of a success. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | null;
  readonly faults: readonly Fault[];

  constructor(status: number, body: Record<string, unknown>) {
    super(typeof body.detail === 'string' ? body.detail : `The service answered ${status}.`);
    this.name = 'ApiError';
    this.status = status;
    this.code = typeof body.code === 'string' ? body.code : 'UNKNOWN';
    this.field = typeof body.field === 'string' ? body.field : null;
    this.faults = Array.isArray(body.errors)
      ? (body.errors as Fault[])
      : this.field === null
        ? []
        : [{ field: this.field, detail: this.message }];
  }
}

/** The service did not answer at all. */
export class Unreachable extends Error {
  constructor() {
    super('The service can’t be reached.');
    this.name = 'Unreachable';
  }
}

const listeners = new Set<() => void>();
let connected = true;

function setConnected(value: boolean): void {
  if (connected === value) return;
  connected = value;
  for (const tell of listeners) tell();
}

/** Whether the last call reached the service, and a way to hear of changes. */
export const connection = {
  get: (): boolean => connected,
  subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
};

interface Call {
  method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  path: string;
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  /** A body that is no JSON value: the file itself. */
  text?: { content: string; type: string };
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** The call may outlive the page. */
  keepalive?: boolean;
}

/** An answer with its headers. */
export interface Answer<T> {
  readonly body: T;
  readonly headers: Headers;
}

/** Calls the service. Rejects with ApiError when it refuses and with Unreachable when it does not answer. */
export async function call<T>({
  method = 'GET',
  path,
  query = {},
  body,
  text,
  headers = {},
  signal,
  keepalive = false,
}: Call): Promise<Answer<T>> {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  const key = currentKey();
  const type = text?.type ?? (body === undefined ? undefined : 'application/json');
  const payload = text?.content ?? (body === undefined ? undefined : JSON.stringify(body));
  let answer: Response;
  let content: string;
  try {
    answer = await fetch(`${path}${search.size > 0 ? `?${search}` : ''}`, {
      method,
      headers: {
        accept: 'application/json',
        ...(key === null ? {} : { 'x-api-key': key }),
        ...(type === undefined ? {} : { 'content-type': type }),
        ...headers,
      },
      ...(payload === undefined ? {} : { body: payload }),
      ...(signal === undefined ? {} : { signal }),
      cache: 'no-store',
      keepalive,
    });
    content = await answer.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    setConnected(false);
    throw new Unreachable();
  }
  setConnected(true);
  if (answer.ok) return { body: (content === '' ? undefined : JSON.parse(content)) as T, headers: answer.headers };
  if (answer.status === 401) keyRefused();
  throw new ApiError(answer.status, errorBody(content));
}

/** The body of an error; empty where something between answered that does not speak our JSON, such as a proxy. */
function errorBody(content: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(content);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
