import { hash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { invalid } from '../../kit/errors.ts';
import type { HandlerContext } from '../../kit/http/exchange.ts';
import { storedKeyOf } from '../rules/idempotency.ts';
import type { Caller } from '../service/authentication.ts';
import type { Idempotency } from '../store/idempotency.ts';

type Request = Pick<HandlerContext<Caller>, 'caller' | 'headers' | 'rawBody' | 'via'>;

/** The most characters of `X-Agent-Id`, `X-Lease-Token` and `Idempotency-Key`. */
const maxLength = 255;

/** The API key of a request: the header, else the bearer token, else the query parameter. */
export function keyOf(headers: IncomingHttpHeaders, parameter?: string): string | undefined {
  const header = headers['x-api-key'];
  if (typeof header === 'string') return header;
  return bearerOf(headers) ?? parameter;
}

/** The bearer token of a request: an API key, or a token of the identity provider. */
export function bearerOf({ authorization = '' }: IncomingHttpHeaders): string | undefined {
  return /^bearer +(\S+) *$/i.exec(authorization)?.[1];
}

/** The id of the last event that a client saw: the header, which browsers send when they reconnect, else the parameter. */
export function lastEventIdOf(headers: IncomingHttpHeaders, parameter: string | undefined): string | undefined {
  const header = headers['last-event-id'];
  const given = typeof header === 'string' && header !== '' ? header : parameter;
  return given === '' ? undefined : given;
}

/** Reads an optional header. @throws ServiceError 400 when it is empty or too long */
function shortHeader(value: string | string[] | undefined, name: string): string | undefined {
  if (value === undefined) return undefined;
  const text = typeof value === 'string' ? decoded(value) : '';
  if (text.trim() === '' || text.length > maxLength) throw invalid(name, `${name} must have 1 to ${maxLength} characters.`);
  return text;
}

/** Decodes a header. Node reads headers as Latin-1, but clients usually send text beyond ASCII as UTF-8. */
function decoded(value: string): string {
  const text = Buffer.from(value, 'latin1').toString();
  return text.includes('\ufffd') ? value : text;
}

/** The agent that a request names as its actor. @throws ServiceError 400 when the name is empty or too long */
export const agentId = (headers: IncomingHttpHeaders): string | undefined => shortHeader(headers['x-agent-id'], 'X-Agent-Id');

/** The agent that acts, by a request or by a call inside the process. @throws ServiceError 400 when the name is empty or too long */
export const agentOf = ({ actor, headers }: Pick<HandlerContext<Caller>, 'actor' | 'headers'>): string | undefined =>
  actor ?? agentId(headers);

/** The token of a lease. @throws ServiceError 400 when it is empty or too long */
export const leaseToken = (headers: IncomingHttpHeaders): string | undefined => shortHeader(headers['x-lease-token'], 'X-Lease-Token');

/**
 * The idempotency key of a request, which belongs to the family of its caller's key, with a fingerprint of its method, path and body
 * that distinguishes a repeat from another request.
 */
export function idempotencyOf({ caller, headers, rawBody: body, via }: Request, operation: string): Idempotency | undefined {
  const key = shortHeader(headers['idempotency-key'], 'Idempotency-Key');
  if (key === undefined) return undefined;
  const sent = { origin: caller.origin, key };
  const name = via === 'a2a' ? 'messageId' : 'Idempotency-Key';
  return {
    sent,
    key: storedKeyOf(sent),
    name,
    fingerprint: hash('sha256', Buffer.concat([Buffer.from(`${operation}\n`), body ?? Buffer.alloc(0)])),
  };
}
