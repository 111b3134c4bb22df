import assert from 'node:assert/strict';

import { ServiceError } from '../../src/kit/errors.ts';

/** The refusal that work throws. Fails if it throws none; `what` says so. */
export function refusal(work: () => unknown, what = 'Nothing was refused.'): ServiceError {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof ServiceError, String(error));
    return error;
  }
  return assert.fail(what);
}
