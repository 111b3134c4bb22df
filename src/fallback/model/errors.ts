import { coded, commonErrors } from '../../kit/errors.ts';
import { failureOf } from '../../kit/schemas.ts';

/** The error codes that only this service has. */
export const errors = coded({
  REHEARSAL_NOT_RUNNING: { status: 503, meaning: 'No rehearsal of the chain runs, so its fake providers do not answer.' },
});

/** All error codes of the service. */
export const errorCodes = { ...commonErrors, ...errors };

/** The body of every error. */
export const Failure = failureOf(errorCodes);
