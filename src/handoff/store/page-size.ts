import { ServiceError } from '../../kit/errors.ts';

/** Which part of a list a page has. */
export interface Page {
  readonly limit: number;
  readonly offset: number;
}

/** The most bytes of one page, unless its first packet alone is larger. */
export const maxPageBytes = 16 * 1024 * 1024;

/** 413 `PAYLOAD_TOO_LARGE` for a page at an offset that is too large. `fitting`: how many of its packets fit. */
export function pageTooLarge(fitting: number): ServiceError {
  return new ServiceError(
    'PAYLOAD_TOO_LARGE',
    `This page would be larger than ${maxPageBytes} bytes. Use limit=${fitting}, then follow next_cursor: a page without an offset ends early instead of growing too large.`,
    { field: 'limit' },
  );
}
