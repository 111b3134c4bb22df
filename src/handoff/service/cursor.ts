import { hash } from 'node:crypto';

import { invalid } from '../../kit/errors.ts';

/** The digest that ties a cursor to its list; `scope` names the tenant and all filters. */
function mark(scope: string): string {
  return hash('sha256', scope, 'base64url').slice(0, 12);
}

/** An opaque cursor for the position at which a page ended, valid only for the same `scope`. */
export function writeCursor(scope: string, position: string): string {
  return Buffer.from(`${mark(scope)}${position}`).toString('base64url');
}

/** The position in a cursor. @throws ServiceError 400 on `cursor` if it does not belong to this scope */
export function readCursor(scope: string, cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString();
  if (text.length <= 12 || text.slice(0, 12) !== mark(scope)) {
    throw invalid('cursor', 'This cursor does not belong to this list; start without a cursor, and keep the filters while you page.');
  }
  return text.slice(12);
}
