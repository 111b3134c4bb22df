import { currentKey } from '../../../kit/web/app/session.ts';
import { transport } from '../../../kit/web/app/transport.ts';
import { createFallbackClient, type FallbackClient, type FallbackClientOptions } from '../../client/client.ts';

/** The client of the service, with the key of this tab. By default it does not retry, since the query cache does. */
export const api = (options: Pick<FallbackClientOptions, 'retries' | 'onStep'> = {}): FallbackClient =>
  createFallbackClient({ baseUrl: location.origin, apiKey: currentKey() ?? undefined, retries: 0, transport, ...options });
