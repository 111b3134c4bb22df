import { failureShapes, name } from '../../kit/schemas.ts';
import * as words from './words.ts';

/** A name that lists are filtered by: PostgreSQL's index takes no entry of more than 2,704 bytes. */
export const indexedName = (description: string) => name(description, { maxLength: 512 });

export const { priorities, statuses, tiers } = words;

export type Status = (typeof statuses)[number];
export type Tier = (typeof tiers)[number];

/** The failures that a route documents beside its success: those named, and those that may befall any request. */
export const failing = failureShapes({
  400: 'The request does not have the form this operation takes.',
  401: 'The API key is missing, unknown or revoked.',
  403: 'This needs an admin key.',
  404: 'Nothing of that id exists for this tenant.',
  409: 'The state of the resource does not allow this.',
  410: 'The resource has expired.',
  412: 'The resource changed since the version named in If-Match.',
  413: "The body is larger than the tenant's tier allows.",
  415: 'The body is not JSON in UTF-8.',
  429: 'A limit is used up; `limit` names it and `Retry-After` says when to come back.',
  500: 'The service failed; the log has the cause under the `request_id`.',
  503: 'The database is out of reach, or too much is in hand; try again, with the same Idempotency-Key where the operation takes one.',
});

export const IdempotencyKey = {
  'Idempotency-Key': 'Makes a repeated request answer as the first did, for 24 hours. 1 to 255 characters. Optional.',
};
/** Header of an answer that repeats an earlier one. */
export const Replayed = {
  'Idempotency-Replayed': '`true` when this repeats the answer to an earlier request with the same `Idempotency-Key`.',
};
export const AgentId = { 'X-Agent-Id': 'The agent to name in the trail as the one who did this. 1 to 255 characters. Optional.' };
export const LeaseToken = {
  'X-Lease-Token':
    "The token of the packet's lease, from the answer to its claim. A leased packet needs it; without a lease there must be none.",
};
