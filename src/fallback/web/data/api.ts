import { ApiError, TimeoutError } from '../../../kit/client-errors.ts';
import { chunksOf, type Transport } from '../../../kit/transport.ts';
import { sharedValue } from '../../../kit/web/shared-value.ts';
import { createFallbackClient, type FallbackClient, type FallbackClientOptions } from '../../client/client.ts';
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

/** Whether the service refused with this status. */
export const isRefusal = (error: Error | null, status: number): boolean => error instanceof ApiError && error.status_code === status;

/** Whether the last call reached the service. */
export const connected = sharedValue(true);

const transport: Transport = async ({ method, url, headers, body, signal }) => {
  const answer = await fetch(url, {
    method,
    headers,
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

/** The client of the service, with the key of this tab. By default it does not retry, since the query cache does. */
export const api = (options: Pick<FallbackClientOptions, 'retries' | 'onNote'> = {}): FallbackClient =>
  createFallbackClient({ baseUrl: location.origin, apiKey: currentKey() ?? undefined, retries: 0, transport, ...options });
