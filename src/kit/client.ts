import type { RequestOf, ResultOf, Route } from './route.ts';

/** An answer that is an error, as the service described it. */
export class ResponseError extends Error {
  readonly status: number;
  readonly body: Record<string, unknown>;
  readonly headers: Headers;

  constructor(status: number, body: Record<string, unknown>, headers: Headers) {
    super(typeof body.detail === 'string' ? body.detail : `The service answered ${status}.`);
    this.name = 'ResponseError';
    this.status = status;
    this.body = body;
    this.headers = headers;
  }
}

type Arguments<R extends Route> = Partial<RequestOf<R>> & { headers?: Record<string, string> };

/** One method for each route. */
export type Client<Routes extends Record<string, Route>> = {
  readonly [Name in keyof Routes]: (request?: Arguments<Routes[Name]>) => Promise<ResultOf<Routes[Name]>>;
};

/**
 * A client of the routes: `client.claimPacket({ params: { id }, body: {...} })`.
 * A method rejects with ResponseError when the service refuses, and with fetch's own error when it can't be reached.
 */
export function createClient<Routes extends Record<string, Route>>(
  routes: Routes,
  { baseUrl, headers }: { baseUrl: string; headers: Record<string, string> },
): Client<Routes> {
  const methods = Object.entries(routes).map(([name, route]) => [name, (request: Arguments<Route> = {}) => call(route, request)]);
  return Object.fromEntries(methods) as Client<Routes>;

  async function call(route: Route, { params = {}, query = {}, body, headers: own = {} }: Arguments<Route>): Promise<unknown> {
    const path = route.path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(String((params as Record<string, unknown>)[name])));
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
    const answer = await fetch(`${baseUrl}${path}${search.size > 0 ? `?${search}` : ''}`, {
      method: route.method,
      headers: { ...headers, ...own, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new ResponseError(answer.status, errorBody(text), answer.headers);
    return text === '' ? undefined : JSON.parse(text);
  }
}

/** The body of an error; empty where something between answered that does not speak our JSON, a proxy say. */
function errorBody(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
