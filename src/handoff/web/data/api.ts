import { currentKey } from '../../../kit/web/app/session.ts';
import { transport } from '../../../kit/web/app/transport.ts';
import { createHandoffClient, type HandoffClient, type HandoffClientOptions } from '../../client/client.ts';

type Options = Pick<HandoffClientOptions, 'retries' | 'onNote'>;

/** The client of the service, with the key of this tab. By default it does not retry, since the query cache does. */
export const api = (options: Options = {}): HandoffClient =>
  createHandoffClient({ baseUrl: location.origin, apiKey: currentKey() ?? undefined, retries: 0, transport, ...options });
