import { currentKey } from '../../../kit/web/app/session.ts';
import { transport } from '../../../kit/web/app/transport.ts';
import { createHandoffClient, type HandoffClient, type HandoffClientOptions } from '../../client/client.ts';

type Options = Pick<HandoffClientOptions, 'baseUrl' | 'retries' | 'onStep'>;

/** The client of the service, with the key of this tab. By default it does not retry, since the query cache does. */
export const api = (options: Partial<Options> = {}): HandoffClient =>
  createHandoffClient({ baseUrl: location.origin, apiKey: currentKey() ?? undefined, retries: 0, transport, ...options });

/** The client for the answers of the person at this page, which the history keeps as those of the console. */
export const consoleApi = (): HandoffClient => api({ baseUrl: `${location.origin}/console` });
