import { ServiceError } from '../../kit/errors.ts';

/** The most bytes of one page, unless its first packet alone has more. */
export const maxPageBytes = 16 * 1024 * 1024;

/** A page that was not asked for by cursor would be larger: 413 `PAYLOAD_TOO_LARGE`. So many of its packets would fit. */
export function pageTooLarge(fitting: number): ServiceError {
  return new ServiceError(
    'PAYLOAD_TOO_LARGE',
    `This page would be larger than ${maxPageBytes} bytes. Ask with limit=${fitting}, and go on by cursor with its next_cursor: pages asked for by cursor end early where their packets are too large together.`,
    { field: 'limit' },
  );
}
