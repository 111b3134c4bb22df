import { ApiError, TimeoutError } from '../../client-errors.ts';
import { chunksOf, type Transport } from '../../transport.ts';
import { sharedValue } from '../shared-value.ts';
import { currentKey, keyRefused } from './session.ts';

/** A fault of a request, with the dotted path of its field. */
export interface Fault {
  readonly field: string;
  readonly detail: string;
}

/** The faults of a request; empty if it failed for another reason. */
export function faultsOf(error: Error | null): readonly Fault[] {
  if (!(error instanceof ApiError)) return [];
  const { errors, field, message } = error;
  return errors.length > 0 || field === null ? errors : [{ field, detail: message }];
}

/** A fault as a sentence for display beside its field, without the field's name: `Must be a whole number.` */
export function besideField({ field, detail }: Fault): string {
  if (!detail.startsWith(`${field} `)) return detail;
  const rest = detail.slice(field.length + 1);
  return rest.charAt(0).toUpperCase() + rest.slice(1);
}

/** Whether the error is an answer with this status. */
export const hasStatus = (error: Error | null, status: number): boolean => error instanceof ApiError && error.status_code === status;

/** Whether the last call reached the service. */
export const connected = sharedValue(true);

/** Sends the requests of a page's client, and notices a lost connection and a refused key. */
export const transport: Transport = async ({ method, url, headers, body, signal }) => {
  const answer = await fetch(url, {
    method,
    // With a session, which browsers send by themselves, this shows that a page of the service sends the request.
    headers: currentKey() === null && method !== 'GET' ? { ...headers, 'x-requested-with': 'baton' } : headers,
    signal,
    ...(body === undefined ? {} : { body }),
    cache: 'no-store',
    redirect: 'manual',
    // Lets a deletion complete while its page is being closed.
    keepalive: method === 'DELETE',
  }).catch((error: unknown) => {
    if (!signal.aborted || signal.reason instanceof TimeoutError) connected.set(false);
    throw error;
  });
  connected.set(true);
  if (answer.status === 401) keyRefused();
  return {
    status: answer.status,
    headers: Object.fromEntries(answer.headers),
    chunks: () => chunksOf(answer),
  };
};
