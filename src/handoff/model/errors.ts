import { coded, commonErrors } from '../../kit/errors.ts';
import { failureOf } from '../../kit/schemas.ts';

/** The error codes that only this service has. */
export const errors = coded({
  CONTRACT_VIOLATION: {
    status: 400,
    meaning: 'The packet is not what the contract of its target agent asks for; `errors` lists the faults, `contract` names the contract.',
  },
  NOT_AN_APPROVER: {
    status: 403,
    meaning: 'The person is not asked for an approval, or is only a typed name; the detail says who is asked.',
  },
  SIGN_IN_REQUIRED: { status: 403, meaning: 'Only people who have signed in may do this here.' },
  ALREADY_APPROVED: { status: 409, meaning: 'The person has approved already; one person counts once.' },
  ALREADY_EXECUTED: { status: 409, meaning: 'The execution of the approved action has begun; the body has it in `execution`.' },
  APPROVAL_EXPIRED: { status: 409, meaning: 'The approval can be executed no more; ask again.' },
  CALL_CHANGED: { status: 409, meaning: 'The agent asked about this call with another tool or other arguments.' },
  DIGEST_MISMATCH: { status: 409, meaning: 'The arguments are not those that were approved.' },
  NOT_APPROVED: { status: 409, meaning: 'The action is not approved: its question is open, or was answered otherwise.' },
  NOT_YET: { status: 409, meaning: 'The packet can be claimed from its `not_before` on, in `Retry-After` seconds.' },
  LEASE_LOST: {
    status: 409,
    meaning:
      'The packet is leased and the lease token is missing, replaced or expired; nothing was changed. A request sends the token in `X-Lease-Token`.',
  },
  LOOP_GUARD: { status: 409, meaning: 'A guard against runaway agents refused another packet; `detail` has the limit.' },
  QUESTION_OPEN: { status: 409, meaning: 'A question of the packet is open; `question_id` names it.' },
  ANSWERED: { status: 409, meaning: 'The question is answered and never changes any more; ask a new one.' },
  KEY_CHANGED: { status: 409, meaning: 'The key belongs to another question of the packet, which the body has with its answer.' },
  STALE: { status: 409, meaning: 'What the person was shown has changed since; the body has the current state.' },
});

/** All error codes of the service. */
export const errorCodes = { ...commonErrors, ...errors };

export type ErrorCode = keyof typeof errorCodes;

/** The body of every error. */
export const Failure = failureOf(errorCodes);
