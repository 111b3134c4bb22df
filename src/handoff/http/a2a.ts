import { hash } from 'node:crypto';

import type { Clock } from '../../kit/clock.ts';
import type { ServiceError } from '../../kit/errors.ts';
import { isKnown } from '../../kit/etag.ts';
import type { HandlerContext } from '../../kit/http/exchange.ts';
import { HttpResponse, JsonText, type StreamResponse } from '../../kit/http/response.ts';
import { tooManyAnswers } from '../../kit/http/sender.ts';
import { commentHeartbeat, eventStream } from '../../kit/http/sse.ts';
import type { MemoryBudget } from '../../kit/memory-budget.ts';
import { traceHeadersOf } from '../../kit/trace-context.ts';
import type { Turns } from '../../kit/turns.ts';
import type { A2aEndpoint, StreamedResponse } from '../a2a/http.ts';
import type { Binding } from '../a2a/rest.ts';
import type { A2aSession } from '../a2a/session.ts';
import { a2a, a2aRestRoutes, agentCard, type RestInput } from '../model/a2a.ts';
import { routes } from '../model/api.ts';
import { maxWaitSeconds } from '../model/constants.ts';
import { onlyAgent, requireRight } from '../rules/rights.ts';
import type { Caller } from '../service/authentication.ts';
import type { PacketViews } from '../service/packet-views.ts';
import type { PushService } from '../service/pushes.ts';
import type { WaitingService } from '../service/waiting.ts';
import type { Store } from '../store/store.ts';
import { callsFor } from './face-calls.ts';
import type { HandoffMount } from './handlers.ts';
import { agentId } from './headers.ts';
import type { IdentityAdmission } from './identity.ts';
import { isOfHttp, jsonRpcRefusal, refusalCodes } from './json-rpc.ts';
import type { LocalCall } from './local.ts';
import type { Listening } from './streams.ts';

interface A2aRouteDependencies {
  readonly mount: HandoffMount;
  readonly call: LocalCall<Caller>;
  /** The endpoint, which is loaded once. */
  readonly load: () => Promise<A2aEndpoint>;
  readonly listening: Listening;
  readonly pushes: PushService;
  readonly views: PacketViews;
  readonly turns: Turns;
  /** What a list of tasks has read counts against it until the answer is printed. */
  readonly answers: MemoryBudget;
  readonly store: Store;
  readonly waiting: WaitingService;
  readonly clock: Clock;
  /** Logs an error that nobody waits for. */
  readonly failed: (error: unknown) => void;
  readonly version: string;
  /** The agents that the public card names. */
  readonly agents: readonly string[];
  /** The address by which others reach the service; undefined: that of the request. */
  readonly publicUrl: string | undefined;
  /** Who is admitted by an identity provider; undefined: nobody. */
  readonly identity: IdentityAdmission | undefined;
}

/** Mounts the endpoint for clients of A2A, and its agent card. Its methods call the handlers of the API's routes. */
export function mountA2a({
  mount,
  call,
  load,
  listening,
  pushes,
  views,
  turns,
  answers,
  store,
  waiting,
  clock,
  failed,
  version,
  agents,
  publicUrl,
  identity,
}: A2aRouteDependencies): void {
  const addressAt = (origin: string) => ({
    origin: publicUrl ?? origin,
    version,
    agents,
    issuer: identity?.identity.issuer(),
  });

  const startedAt = clock().toUTCString();
  mount(agentCard, async (_, { origin, headers }) => {
    const text = JSON.stringify((await load()).card(addressAt(origin)));
    // A card changes with the settings only.
    const etag = `"${hash('sha256', text, 'base64url')}"`;
    const caching = { etag, 'last-modified': startedAt, 'cache-control': 'public, max-age=300' };
    if (isKnown(headers['if-none-match'], etag)) return new HttpResponse<never>({ status: 304, headers: caching });
    return new HttpResponse<never>({ headers: caching, body: new JsonText(text) });
  });

  async function answerTo(
    body: object,
    binding: Binding,
    query: Record<string, unknown>,
    { caller, headers, origin, endSignal }: HandlerContext<Caller>,
  ) {
    const endpoint = await load();
    // A stream outlives its handler, and ends by its own signal.
    const gone = new AbortController();
    const signal = AbortSignal.any([endSignal, gone.signal]);
    const trace = traceHeadersOf(headers);
    const callApi = callsFor(call, { caller, signal, via: 'a2a' }, trace);
    let held = 0;
    const session: Omit<A2aSession, 'send'> = {
      call: callApi,
      agentId: agentId(headers) ?? onlyAgent(caller),
      responder: caller.responder ?? caller.name,
      address: addressAt(origin),
      pushes: pushesFor(pushes, caller),
      view: async (id: string) => {
        requireRight(caller, routes.getPacket);
        return views.of(caller, id);
      },
      hold(bytes) {
        if (!answers.acquire(caller.tenant_id, bytes)) throw tooManyAnswers();
        held += bytes;
      },
      rootsOf: async (ids: readonly string[]) => store.of(caller).packets.roots(ids),
      async changed(id, isWanted) {
        await waiting.until({ caller, signal, seconds: maxWaitSeconds }, id, isWanted);
      },
      signal,
    };
    const version = headers['a2a-version'] ?? query['A2A-Version'];
    try {
      const answered = await endpoint.answer({ version: typeof version === 'string' ? version : undefined, body, session }, binding);
      if ('responses' in answered) return streamOf(answered.responses, { listening, turns, failed, owner: caller.tenant_number }, gone);
      const { status, headers: further, body: answer } = answered;
      return new HttpResponse<never>({ status, headers: further ?? {}, body: new JsonText(JSON.stringify(answer)) });
    } finally {
      answers.release(caller.tenant_id, held);
    }
  }

  mount(a2a, ({ query, body }, context) => answerTo(body, 'JSONRPC', query, context), {
    // ContentTypeNotSupportedError (A2A 1.0, section 5.4).
    refused: (error, { isRead }) => jsonRpcRefusal(error, isRead, { ...refusalCodes, UNSUPPORTED_MEDIA_TYPE: -32005 }),
  });
  for (const { method, route, params } of a2aRestRoutes)
    mount(
      route,
      (input, context) =>
        answerTo({ jsonrpc: '2.0', id: 0, method, params: params(input as RestInput) }, 'HTTP+JSON', input.query, context),
      { refused: restRefusal },
    );
}

/** A refused body in the form of AIP-193, as all errors of the HTTP+JSON binding (A2A 1.0, section 11.6). */
function restRefusal(refusal: ServiceError): HttpResponse<never> | undefined {
  if (isOfHttp(refusal)) return undefined;
  const { status, code, message } = refusal;
  const info = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', domain: 'a2a-protocol.org', reason: 'CONTENT_TYPE_NOT_SUPPORTED' };
  const details = code === 'UNSUPPORTED_MEDIA_TYPE' ? [info] : [];
  const error = { code: status, status: status === 403 ? 'PERMISSION_DENIED' : 'INVALID_ARGUMENT', message, details };
  return new HttpResponse<never>({ status, body: new JsonText(JSON.stringify({ error })) });
}

const pushesFor = (pushes: PushService, caller: Caller): A2aSession['pushes'] => ({
  check: (config) => pushes.check(caller, config),
  put: (packetId, config) => pushes.put(caller, packetId, config),
  list: (packetId) => pushes.list(caller, packetId),
  remove: (packetId, id) => pushes.remove(caller, packetId, id),
});

/** The responses of a streaming method, as server-sent events. Each of its waits counts towards the tenant's connections. */
function streamOf(
  responses: AsyncGenerator<StreamedResponse, void>,
  { listening: { streams }, turns, failed, owner }: Pick<A2aRouteDependencies, 'listening' | 'turns' | 'failed'> & { owner: number },
  gone: AbortController,
): StreamResponse {
  const abandon = () => {
    gone.abort();
    responses.return().catch(failed);
  };
  return eventStream({
    streams,
    abandon,
    feed(open) {
      /** A call of its own for each, since a suspended one keeps what it has sent. */
      const sendNext = async () => {
        const { value: response } = await responses.next();
        if (response === undefined || !open.isOpen) return false;
        open.sendParts([Buffer.from(`data: ${response.head}`), response.body, Buffer.from(`${response.tail}\n\n`)]);
        return true;
      };
      const pump = async () => {
        // While the service stops, waits end at once; other work must go on meanwhile.
        while (await sendNext()) await turns.next(owner);
        open.end('done');
      };
      pump().catch((error: unknown) => open.fail(error));
      return { heartbeat: () => commentHeartbeat, onEnd: abandon };
    },
  });
}
