import { hash } from 'node:crypto';

import { invalid } from './errors.ts';

/** The mark that ties a cursor to the list it came from; `scope` names the tenant and every filter. */
function mark(scope: string): string {
  return hash('sha256', scope, 'base64url').slice(0, 12);
}

/** An opaque cursor: where a page ended, usable only with the same `scope`. */
export function writeCursor(scope: string, position: string): string {
  return Buffer.from(`${mark(scope)}${position}`).toString('base64url');
}

/** The position in a cursor; 400 on `cursor` when it is not one of this scope's. */
export function readCursor(scope: string, cursor: string): string {
  const text = Buffer.from(cursor, 'base64url').toString();
  if (text.length <= 12 || text.slice(0, 12) !== mark(scope)) {
    throw invalid('cursor', 'This cursor does not belong to this list; start without a cursor, and keep the filters while you page.');
  }
  return text.slice(12);
}
