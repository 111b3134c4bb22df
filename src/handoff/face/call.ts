import { notFound } from '../../kit/errors.ts';
import type { ResultOf, Route } from '../../kit/route.ts';

/** What a change names besides its body: the acting agent, the token of the lease, the revision it is for, and its idempotency key. */
export interface ChangeNames {
  readonly agent?: string | undefined;
  readonly lease_token?: string | undefined;
  readonly if_revision?: number | undefined;
  readonly idempotency_key?: string | undefined;
}

/** The parts of a request to an operation of the API. */
export interface ApiRequest {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
  readonly names?: ChangeNames;
}

/**
 * Carries out an operation of the API: inside the service, or over HTTP for the command line. Undefined for an answer
 * without a body. Rejects with the sentence and the code with which the API refuses the request.
 */
export type CallApi = <R extends Route>(route: R, request: ApiRequest) => Promise<ResultOf<R> | undefined>;

/** What a change names, as headers; the agent apart. */
export const headersOf = ({ lease_token, if_revision, idempotency_key }: ChangeNames): Record<string, string> => ({
  ...(lease_token === undefined ? {} : { 'x-lease-token': lease_token }),
  ...(if_revision === undefined ? {} : { 'if-match': `"${if_revision}"` }),
  ...(idempotency_key === undefined ? {} : { 'idempotency-key': idempotency_key }),
});

/** The answer of an operation that always has a body. @throws ServiceError 404 without one */
export function present<T>(answer: T | undefined): T {
  if (answer === undefined) throw notFound('packet');
  return answer;
}
