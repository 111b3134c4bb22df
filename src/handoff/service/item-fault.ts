import { ServiceError } from '../../kit/errors.ts';

/** The error of a refused item of a batch. */
export type ItemFault = Record<string, unknown> & { error: string; code: string };

/** The error as an item of a batch reports it. @throws the error, if it is no ServiceError */
export function itemFault(error: unknown): ItemFault {
  if (!(error instanceof ServiceError)) throw error;
  return { error: error.message, code: error.code, ...error.extra };
}
