import type { FastifyReply, FastifyRequest } from 'fastify';

import type { Clock } from '../../kit/clock.ts';
import { ServiceError } from '../../kit/errors.ts';
import { limitHeaders, tooMany } from '../../kit/http/limits.ts';
import { Windows } from '../../kit/window.ts';
import type { FallbackRoute } from '../model/route.ts';
import type { RateLimit } from '../rules/rate-limit.ts';
import { type Access, anybody, type Caller } from '../service/access.ts';

/** The query parameter that may carry a key. */
export const keyParameter = 'api_key';

interface AdmissionDependencies {
  access: Access;
  /** Undefined: requests are not counted. */
  rateLimit: RateLimit | undefined;
  clock: Clock;
}

/** Creates the admission of requests: authentication, rate limit, and the rights of the key's label. */
export function createAdmission({ access, rateLimit, clock }: AdmissionDependencies) {
  const windows = rateLimit && new Windows(rateLimit.periodMs);

  /** Counts the request of a key or an address. Refused requests do not count. @throws ServiceError 429 if the limit is used up */
  function count(reply: FastifyReply, { id, isKeyed }: Caller): void {
    if (rateLimit === undefined || windows === undefined) return;
    const { count: limit, period } = rateLimit;
    const now = clock().getTime();
    const window = windows.of(id, now);
    const before = window.peek(now, limit);
    if (before.allowed) window.add(now, limit);
    reply.headers(limitHeaders(limit, window.peek(now, limit)));
    if (!before.allowed) {
      const whose = isKeyed ? "The key's" : "This address's";
      throw tooMany(`${whose} limit of ${limit} requests a ${period} is used up.`, { name: period, max: limit }, before.retryAfterMs);
    }
  }

  function admit({ access: wanted }: FallbackRoute, request: FastifyRequest, reply: FastifyReply): Caller {
    if (wanted === 'public') return anybody(request.ip);
    const key = access.isOpen ? undefined : keyOf(request);
    const known = key === undefined ? undefined : access.authenticate(key);
    const caller = known ?? anybody(request.ip);
    request.info.caller = caller.label ?? undefined;
    count(reply, caller);
    if (known === undefined && !access.isOpen) throw unauthorized(key === undefined ? howToSendKeys : 'The API key is not valid.');
    if (wanted === 'write' && !caller.mayWrite)
      throw new ServiceError('FORBIDDEN', `This API key has the label ${caller.label}, which permits only reading and exporting.`);
    return caller;
  }

  return {
    admit,
    /** Counts requests without a route as well. Does not require a key, but refuses a wrong one. */
    admitUnrouted: (request: FastifyRequest, reply: FastifyReply): void => {
      if (access.isOpen || keyOf(request) === undefined) count(reply, anybody(request.ip));
      else admit({ access: 'read' }, request, reply);
    },
  };
}

/** The key of a request, from the first source that is present. */
function keyOf({ headers, query }: FastifyRequest): string | undefined {
  const header = headers['x-api-key'];
  if (header !== undefined && header !== '') return String(header);
  const bearer = /^bearer +(.*)$/i.exec(headers.authorization ?? '')?.[1]?.trim();
  if (bearer !== undefined) return bearer;
  const parameter = (query as Record<string, unknown>)[keyParameter];
  // A repeated parameter is an array, whose text matches no key.
  return parameter === undefined ? undefined : String(parameter);
}

const howToSendKeys = 'An API key is required: in the header X-API-Key, as a bearer token, or as the query parameter api_key.';

/** 401 with the challenge that RFC 9110, 11.6.1, requires. */
const unauthorized = (detail: string) =>
  new ServiceError('UNAUTHORIZED', detail, { headers: { 'WWW-Authenticate': 'Bearer realm="fallback"' } });
