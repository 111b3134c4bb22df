import { pauseFor } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import { invalid, ServiceError } from '../../kit/errors.ts';
import type { HandlerContext } from '../../kit/http/exchange.ts';
import { HttpResponse, JsonText } from '../../kit/http/response.ts';
import { commentHeartbeat, eventStream } from '../../kit/http/sse.ts';
import type { Streams } from '../../kit/http/streams.ts';
import { traceHeadersOf } from '../../kit/trace-context.ts';
import { isId } from '../../kit/uuid.ts';
import type { McpEndpoint, McpHttpAnswer, McpHttpRequest } from '../mcp/http.ts';
import { routes } from '../model/api.ts';
import type { Scope } from '../model/common.ts';
import { mcp } from '../model/mcp.ts';
import { tokenScope } from '../rules/identity.ts';
import { onlyAgent, requireAgent, requireRight } from '../rules/rights.ts';
import type { Caller } from '../service/authentication.ts';
import type { OccurrenceService } from '../service/occurrences.ts';
import type { PacketViews } from '../service/packet-views.ts';
import type { SubscriptionService } from '../service/subscriptions.ts';
import { callsFor } from './face-calls.ts';
import type { HandoffMount } from './handlers.ts';
import { agentId } from './headers.ts';
import type { IdentityAdmission } from './identity.ts';
import { jsonRpcRefusal } from './json-rpc.ts';
import type { LocalCall } from './local.ts';

interface McpRouteDependencies {
  readonly mount: HandoffMount;
  readonly call: LocalCall<Caller>;
  /** The endpoint, which is loaded once. */
  readonly load: () => Promise<McpEndpoint>;
  readonly streams: Streams;
  readonly views: PacketViews;
  readonly occurrences: OccurrenceService;
  readonly subscriptions: SubscriptionService;
  readonly clock: Clock;
  readonly identity: IdentityAdmission | undefined;
}

/** Mounts the endpoint for clients of the Model Context Protocol. Its tools call the handlers of the API's routes. */
export function mountMcp({ mount, call, load, streams, views, occurrences, subscriptions, clock, identity }: McpRouteDependencies): void {
  mount(
    mcp,
    async ({ query, body }, context) => {
      const endpoint = await load();
      const { caller, headers, endSignal } = context;
      const ended = endpoint.waitsForLong(body) && takesEvents(headers) ? new AbortController() : undefined;
      const signal = ended === undefined ? endSignal : AbortSignal.any([endSignal, ended.signal]);
      const trace = traceHeadersOf(metaOf(body)) ?? traceHeadersOf(headers);
      const callApi = callsFor(call, { caller, signal, via: 'mcp' }, trace);
      const packet = async (id: string) => {
        requireRight(caller, routes.getPacket);
        return isId(id.toLowerCase()) ? (await views.of(caller, id.toLowerCase()))?.packet : undefined;
      };
      requireScope(identity, caller, endpoint.scopesFor(body));
      const events = {
        poll: occurrences.poll.bind(undefined, caller),
        subscribe: subscriptions.subscribe.bind(undefined, caller),
        unsubscribe: subscriptions.unsubscribe.bind(undefined, caller),
      };
      const agent = agentBehind(context, query.agent_id);
      const session = { events, grantable: caller.grantable, call: callApi, packet, ...agent, signal, now: clock, pause: pauseFor };
      const request = { headers, body, session };
      if (ended !== undefined) return answerInStream(endpoint, request, { streams, ended });
      return written(await endpoint.answer(request));
    },
    { refused: (refusal, { isRead }) => jsonRpcRefusal(refusal, isRead) },
  );
}

/** `_meta` of a request, which has its trace (SEP-414). */
const metaOf = (body: unknown): object => Object((body as { params?: { _meta?: unknown } | null }).params?._meta) as object;

/** Refuses a message for which a token lacks only the scope, so that its client gets another token. @throws ServiceError 403 with a challenge */
function requireScope(identity: IdentityAdmission | undefined, caller: Caller, scopes: readonly Scope[]): void {
  const [access, alternative] = scopes;
  if (identity === undefined || access === undefined) return;
  const challenge = identity.stepUp(mcp, caller, alternative === undefined ? { access } : { access, alternative });
  if (challenge === undefined) return;
  const headers = { 'www-authenticate': challenge };
  throw new ServiceError('FORBIDDEN', `The token lacks the scope ${tokenScope(access)}.`, { headers });
}

/** The agent that a connection names, in the header or in the query, or the only one that its key may act as. */
function agentBehind({ headers, caller }: HandlerContext<Caller>, inQuery: string | undefined) {
  const inHeader = agentId(headers);
  if (inHeader !== undefined && inQuery !== undefined && inHeader !== inQuery)
    throw invalid('agent_id', 'agent_id and X-Agent-Id name different agents; send one of them.');
  const named = inHeader ?? inQuery;
  if (named !== undefined) requireAgent(caller, named);
  return { agentId: named ?? onlyAgent(caller), isNamed: named !== undefined };
}

function written({ status, contentType, text }: Awaited<ReturnType<McpEndpoint['answer']>>) {
  return new HttpResponse<never>({
    status,
    ...(contentType === undefined ? {} : { headers: { 'content-type': contentType } }),
    ...(text === '' ? {} : { body: new JsonText(text) }),
  });
}

/** Whether a client takes server-sent events, as the transport demands. */
const takesEvents = ({ accept = '' }: McpHttpRequest['headers']): boolean => String(accept).includes('text/event-stream');

const messageOf = (json: string) => Buffer.from(`event: message\ndata: ${json}\n\n`);

/** Whether a value names the progress of a request: https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/progress */
const isProgressToken = (token: unknown): boolean => typeof token === 'string' || typeof token === 'number';

/**
 * The answer to a call that may wait for long: a stream, with heartbeats and, if the client wants it, the progress of the wait. The wait
 * counts towards the tenant's connections.
 */
function answerInStream(
  endpoint: McpEndpoint,
  { session, ...request }: McpHttpRequest,
  { streams, ended }: { streams: Streams; ended: AbortController },
) {
  streams.requireOpen();
  const token = (metaOf(request.body) as { progressToken?: unknown }).progressToken;
  let send: (message: Buffer) => void = () => undefined;
  const progress = (seconds: number, total: number) => {
    const params = { progressToken: token, progress: seconds, total, message: 'Waiting for a decision.' };
    send(messageOf(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })));
  };
  return eventStream({
    streams,
    abandon: () => ended.abort(),
    feed(open) {
      send = (message) => open.send(message);
      const finish = ({ contentType = '', text }: McpHttpAnswer) => {
        if (text !== '') open.send(contentType.startsWith('text/event-stream') ? Buffer.from(text) : messageOf(text));
        open.end('done');
      };
      const asked = endpoint.answer({ ...request, session: { ...session, ...(isProgressToken(token) ? { progress } : {}) } });
      asked.then(finish, (error: unknown) => open.fail(error));
      return { heartbeat: () => commentHeartbeat, onEnd: () => ended.abort() };
    },
  });
}
