import { serveStdio } from '@modelcontextprotocol/server/stdio';

import { ApiError, ClientError } from '../../kit/client-errors.ts';
import { ServiceError } from '../../kit/errors.ts';
import type { HandoffClient } from '../client/client.ts';
import { createMcpServer, type Refusal, takesTasks } from './server.ts';
import type { ApiRequest, CallApi } from './session.ts';

interface StdioParts {
  readonly client: HandoffClient;
  readonly version: string;
  /** The agent behind the client. */
  readonly agentId: string | undefined;
  /** Reports an unexpected error. */
  onError(error: unknown): void;
}

/** Serves MCP over standard input and output until the input ends. The tools call the API of a service over HTTP. */
export function serveMcpOverStdio({ client, version, agentId, onError }: StdioParts): void {
  const callWith = (signal: AbortSignal): CallApi => {
    return ((route, { headers = {}, ...request }) => {
      const { 'idempotency-key': idempotencyKey, ...rest } = headers;
      const method = client[route.id as keyof HandoffClient] as unknown as (
        request: ApiRequest & { signal: AbortSignal },
      ) => Promise<never>;
      return method({ ...request, headers: rest, signal, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) });
    }) satisfies CallApi;
  };
  const refusalOf = (error: unknown): Refusal => {
    if (error instanceof ServiceError) return error;
    if (error instanceof ApiError) return { code: error.code ?? 'SERVER_ERROR', message: error.message, faults: error.errors };
    if (error instanceof ClientError) return { code: 'SERVICE_UNAVAILABLE', message: error.message, faults: [] };
    onError(error);
    return { code: 'SERVER_ERROR', message: 'The command failed.', faults: [] };
  };
  serveStdio(
    ({ era }) =>
      createMcpServer({
        ...{ version, era, refusalOf, subscribe: false },
        sessionOf: (context) => ({ call: callWith(context.mcpReq.signal), agentId, takesTasks: takesTasks(context) }),
      }),
    { onerror: onError },
  );
}
