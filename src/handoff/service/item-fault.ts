import { ServiceError } from '../../kit/errors.ts';
import type { ItemFault } from '../model/batch-routes.ts';

/** The error as an item of a batch reports it. @throws the error, if it is no ServiceError */
export function itemFault(error: unknown): ItemFault {
  if (!(error instanceof ServiceError)) throw error;
  return { error: error.message, code: error.code, ...error.extra };
}
