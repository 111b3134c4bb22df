import { failureShapes, name } from '../../kit/schemas.ts';
import * as constants from './constants.ts';
import { Failure } from './errors.ts';

/** A name that lists can be filtered by. It is short because a PostgreSQL index entry holds at most 2,704 bytes. */
export const indexedName = (description: string) => name(description, { maxLength: 512 });

export const { defaultScopes, priorities, scopes, statuses, tiers, trialCodes } = constants;

export type Status = (typeof statuses)[number];
export type Tier = (typeof tiers)[number];
export type Scope = (typeof scopes)[number];

/** Returns the error responses of a route: the statuses named, and those that any request can get. */
export const failing = failureShapes(Failure, {
  400: 'The request does not have the form this operation takes.',
  401: 'The API key is missing, unknown or revoked.',
  403: 'The API key may not do this: it lacks the scope, or may not act in this name, or is not an admin key.',
  404: 'This tenant has no resource with that id.',
  406: 'The request does not accept what the answer is written in.',
  409: 'The current state of the resource does not allow this.',
  410: 'The resource has expired.',
  412: 'The resource changed since the version named in If-Match.',
  413: "The body is larger than the tenant's tier allows.",
  415: 'The body is not JSON in UTF-8.',
  429: 'A limit is used up; `limit` names it and `Retry-After` says when to try again.',
  500: 'The service failed; the log has the cause under the `request_id`.',
  503: 'The database is unavailable, or the service is overloaded; try again, with the same Idempotency-Key where the operation takes one.',
});

export const IdempotencyKey = {
  'Idempotency-Key': 'For 24 hours, a repeated request with the same key returns the first answer. 1 to 255 characters. Optional.',
};
/** The header with the version of a packet or a document. */
export const ETag = { ETag: 'The version of the resource (the revision of a packet), for `If-Match` and `If-None-Match`.' };
/** The response headers of a claim: the trace of the packet. */
export const TraceOfPacket = {
  traceparent: 'The trace of the request that created the packet (W3C Trace Context), if it had one.',
  tracestate: 'The same for `tracestate`.',
};

/** The header that marks a replayed answer. */
export const Replayed = {
  'Idempotency-Replayed': '`true` when this is the answer to an earlier request with the same `Idempotency-Key`.',
};
export const AgentId = { 'X-Agent-Id': 'The agent to record as the actor in history and audit log. 1 to 255 characters. Optional.' };
export const LeaseToken = {
  'X-Lease-Token':
    "The token of the packet's lease, from the answer to its claim. Required for a leased packet; must be left out for any other.",
};
