import type { ServerContext } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { LRUCache } from 'lru-cache';

import { pauseFor } from '../../kit/awaitable.ts';
import { ApiError, ClientError } from '../../kit/client-errors.ts';
import { systemClock } from '../../kit/clock.ts';
import { ServiceError } from '../../kit/errors.ts';
import type { HandoffClient } from '../client/client.ts';
import { type ApiRequest, type CallApi, type ChangeNames, headersOf } from '../face/call.ts';
import { routes } from '../model/api.ts';
import type { Packet } from '../model/packet.ts';
import { createMcpServer, type Refusal, takesTasks } from './server.ts';
import type { Session } from './session.ts';

interface StdioDependencies {
  readonly client: HandoffClient;
  readonly version: string;
  /** The agent behind the client. */
  readonly agentId: string | undefined;
  /** Reports an unexpected error. */
  readonly onError: (error: unknown) => void;
}

/** Serves MCP over standard input and output until the input ends. The tools call the API of a service over HTTP. */
export function serveMcpOverStdio({ client, version, agentId, onError }: StdioDependencies): void {
  const leases = new Leases();
  const callWith = (signal: AbortSignal): CallApi => {
    return (async (route, { names: given = {}, ...request }) => {
      const names = leases.completed(given, request.params?.id);
      const { 'idempotency-key': idempotencyKey, ...rest } = headersOf(names);
      const headers = { ...rest, ...(names.agent === undefined ? {} : { 'x-agent-id': names.agent }) };
      const method = client[route.id as keyof HandoffClient] as unknown as (
        request: Omit<ApiRequest, 'names'> & { headers: Readonly<Record<string, string>>; idempotencyKey?: string; signal: AbortSignal },
      ) => Promise<never>;
      const answer = await method({ ...request, headers, signal, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) });
      leases.remember(answer);
      // Over HTTP a change does not renew a lease, as it does inside the service.
      const token = names.lease_token;
      if (route.id === 'patchPacket' && token !== undefined && (answer as Partial<Packet>).lease?.expires_at)
        await client
          .renewLease({ params: { id: request.params!.id! }, headers: { 'x-lease-token': token }, signal })
          .catch(() => undefined);
      return answer;
    }) satisfies CallApi;
  };
  const refusalOf = (error: unknown): Refusal => {
    if (error instanceof ServiceError) return error;
    // A proxy before a service that restarts answers without a code.
    if (error instanceof ApiError)
      return {
        code: error.code ?? (error.status_code > 501 ? 'SERVICE_UNAVAILABLE' : 'SERVER_ERROR'),
        message: error.message,
        faults: error.errors,
        extra: error.body,
      };
    if (error instanceof ClientError) return { code: 'SERVICE_UNAVAILABLE', message: error.message, faults: [], extra: {} };
    onError(error);
    return { code: 'SERVER_ERROR', message: 'The command failed.', faults: [], extra: {} };
  };
  serveStdio(
    ({ era }) =>
      createMcpServer({
        ...{ version, era, refusalOf, offersEvents: false },
        sessionOf(context) {
          const { signal } = context.mcpReq;
          const call = callWith(signal);
          const packet = (id: string) => call(routes.getPacket, { params: { id } });
          const ids = { agentId, isNamed: agentId !== undefined, takesTasks: takesTasks(context) };
          const times = { progress: progressOf(context, onError), now: systemClock, pause: pauseFor };
          return { call, packet, ...ids, ...times, signal, refusalOf };
        },
      }),
    { onerror: onError },
  );
}

/** Tells the client of the progress of its request, if it wants to know. */
function progressOf({ mcpReq }: ServerContext, onError: (error: unknown) => void): Session['progress'] {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return (progress, total) => {
    mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } }).catch(onError);
  };
}

/** The most leases that are remembered. */
const maxLeases = 1000;

/** The tokens of the leases of this connection, so that its agent may leave them out. */
class Leases {
  readonly #tokens = new LRUCache<string, string>({ max: maxLeases });

  /** Remembers the token in the answer to a claim. */
  remember(answer: unknown): void {
    const { id, lease } = (answer ?? {}) as Partial<Packet>;
    if (id !== undefined && lease?.token !== undefined) this.#tokens.set(id, lease.token);
  }

  /** What a request of an agent for a packet names, with the token that it left out. */
  completed(names: ChangeNames, id: string | undefined): ChangeNames {
    const token = id === undefined || names.agent === undefined ? undefined : this.#tokens.get(id.toLowerCase());
    return { ...names, lease_token: names.lease_token ?? token };
  }
}
