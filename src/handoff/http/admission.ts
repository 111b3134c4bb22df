import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';

import { andThen } from '../../kit/awaitable.ts';
import { type LimitReached, ServiceError } from '../../kit/errors.ts';
import type { LimitState } from '../../kit/http/limits.ts';
import { isOwnOrigin, ownHosts } from '../../kit/http/origin.ts';
import type { HandoffRoute } from '../model/route.ts';
import { keyPrefix } from '../rules/keys.ts';
import { requireAgent, requireRight } from '../rules/rights.ts';
import type { Caller } from '../service/authentication.ts';
import { answerPageHeaders } from './answer-page.ts';
import { agentId, bearerOf, keyOf } from './headers.ts';
import type { IdentityAdmission } from './identity.ts';
import type { Limits } from './limits.ts';
import type { ServerDependencies } from './server.ts';
import { signInHeaders } from './sign-in.ts';

/** The properties of a route that admission needs. */
type Admission = Pick<HandoffRoute, 'access' | 'alternative' | 'reportsDailyQuota' | 'keyInQuery' | 'forPrograms' | 'resource'>;

type AdmissionDependencies = Pick<
  ServerDependencies,
  'clock' | 'packets' | 'agents' | 'keys' | 'corsOrigins' | 'devMode' | 'host' | 'allowedHosts' | 'identity'
> & {
  readonly limits: Limits;
};

/** Returns the function that authenticates and counts a request, and sets the rate limit headers of its answer. */
export function createAdmission({
  clock,
  packets,
  agents,
  keys,
  corsOrigins,
  devMode,
  host,
  allowedHosts,
  identity,
  limits,
}: AdmissionDependencies) {
  // The scheme by which a key may be sent (RFC 9110, 11.6.1). With an identity provider, its challenge is on each refusal.
  const headers: Record<string, string> = identity === undefined ? { 'www-authenticate': 'Bearer realm="baton"' } : {};
  const unauthorized = (detail: string) => new ServiceError('UNAUTHORIZED', detail, { headers });
  const isOwnHost = ownHosts([host, ...allowedHosts, ...(identity?.hosts ?? [])]);

  /** Authenticates and counts a request, and sets the rate limit headers of its answer. */
  function admit(route: Admission, request: FastifyRequest, reply: FastifyReply): Caller | Promise<Caller> {
    if (route.access === 'public') return undefined as never;
    if (route.access === 'link') return admitLink(request, reply);
    if (route.access === 'sign-in') return admitSignIn(request, reply);
    if (route.forPrograms) requireOwnHost(request.headers, isOwnHost, corsOrigins);
    const key = keyOf(request.headers, route.keyInQuery ? (request.query as Record<string, string | undefined>).api_key : undefined);
    if (key === undefined && identity !== undefined) {
      const session = identity.sessionOf(route, request.headers);
      if (session !== undefined) return admitSession(identity, session, route, request, reply);
    }
    if (key === undefined && route.keyInQuery && !route.forPrograms && devMode) return keys.defaultCaller();
    // A repeated parameter is an array.
    if (typeof key !== 'string' || key === '') throw unauthorized(noKey(route));
    const found = keys.authenticate(key, request.raw.socket);
    if (identity === undefined || bearerOf(request.headers) !== key)
      return andThen(found, (caller) => count(route, request, reply, caller));
    return andThen(found, (caller) =>
      caller === undefined ? admitToken(identity, key, route, request, reply) : count(route, request, reply, caller),
    );
  }

  /** Admits a person who signed in. */
  async function admitSession(
    by: IdentityAdmission,
    token: string,
    route: Admission,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Caller> {
    by.requireOwnPage(route, request);
    await keys.refresh();
    const caller = await by.identity.sessions.callerOf(token);
    if (caller === undefined) throw unauthorized('The session has ended. Sign in again.');
    return count(route, request, reply, caller);
  }

  /** Admits a caller with a token of the identity provider. What may be a key never goes there. */
  async function admitToken(
    by: IdentityAdmission,
    token: string,
    route: Admission,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<Caller> {
    await keys.refresh();
    const mayBeToken = !token.startsWith(keyPrefix) && !(await keys.wasKey(token));
    const mayAsk = () => limits.requireFewWrongKeys(request.ip, clock().getTime());
    const caller = mayBeToken ? await by.callerWithToken(route, token, mayAsk) : undefined;
    return count(route, request, reply, caller);
  }

  /** Counts a request for a page of sign-in. */
  function admitSignIn(request: FastifyRequest, reply: FastifyReply): Caller {
    reply.headers(signInHeaders);
    limits.signIn(request.ip, clock().getTime());
    return undefined as never;
  }

  /** Counts a request for the page of an answer link, whether or not there is such a link. */
  function admitLink(request: FastifyRequest, reply: FastifyReply): Caller | Promise<Caller> {
    reply.headers(answerPageHeaders);
    limits.answerLink(request.ip, (request.params as { token: string }).token, clock().getTime());
    return andThen(keys.refresh(), () => undefined as never);
  }

  function count(route: Admission, request: FastifyRequest, reply: FastifyReply, caller: Caller | undefined): Caller | Promise<Caller> {
    const now = clock().getTime();
    if (caller === undefined) {
      limits.wrongKey(request.ip, now);
      throw unauthorized('The API key is not valid.');
    }
    request.info.caller = caller.tenant_id;
    return andThen(limits.count(caller, now), (state) => counted(route, request, reply, caller, state));
  }

  function counted(
    route: Admission,
    request: FastifyRequest,
    reply: FastifyReply,
    caller: Caller,
    state: LimitState,
  ): Caller | Promise<Caller> {
    reply.headers(state.headers);
    if (state.refusal !== undefined) return refuse(route, caller, state.refusal);
    request.info.counted = state;
    identity?.note(reply, route, caller, route);
    requireRight(caller, route);
    // Without a route the answer is 404 or 405, whatever the headers say.
    const agent = request.is404 ? undefined : agentId(request.headers);
    if (agent !== undefined) {
      requireAgent(caller, agent);
      // A request that only tries writes nothing.
      if (!('dry_run' in (request.query as object))) agents.seen(caller.tenant_number, agent);
    }
    return caller;
  }

  /** Refuses with the daily quota instead if that lasts longer: after `Retry-After` the request must succeed. */
  async function refuse(route: Admission, caller: Caller, byLimit: LimitReached): Promise<never> {
    const byQuota = route.reportsDailyQuota ? await packets.refusalByQuota(caller) : undefined;
    throw byQuota !== undefined && byQuota.retryAfter > byLimit.retryAfter ? byQuota : byLimit;
  }

  return admit;
}

/** Refuses a request that a foreign page may have caused by DNS rebinding. @throws ServiceError 403 */
function requireOwnHost({ host, origin }: IncomingHttpHeaders, isOwn: (header: string) => boolean, corsOrigins: readonly string[]): void {
  const hint = 'SERVICE_ALLOWED_HOSTS can allow it.';
  if (host !== undefined && !isOwn(host)) throw new ServiceError('FORBIDDEN', `The Host header does not name this service. ${hint}`);
  if (origin !== undefined && !isOwnOrigin(origin, isOwn, corsOrigins))
    throw new ServiceError('FORBIDDEN', `The Origin header does not name this service. ${hint}`);
}

function noKey({ keyInQuery }: Admission): string {
  const places = ['in the header X-API-Key', 'as Authorization: Bearer', ...(keyInQuery ? ['in the parameter api_key'] : [])];
  return `An API key is required, ${new Intl.ListFormat('en', { type: 'disjunction' }).format(places)}.`;
}
