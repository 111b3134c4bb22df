import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { readCursor, writeCursor } from '../../../src/handoff/service/cursor.ts';
import { ServiceError } from '../../../src/kit/errors.ts';

const refused = (error: unknown) => error instanceof ServiceError && error.code === 'VALIDATION_ERROR' && error.field === 'cursor';

describe('A cursor', () => {
  test('returns its position, whatever it contains', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme', minLength: 1 }), (scope, position) => {
        assert.equal(readCursor(scope, writeCursor(scope, position)), position);
      }),
    );
  });

  test('needs no escaping in a query string', () => {
    assert.match(writeCursor('tenant {"statuses":["created"]}', '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b'), /^[\w-]+$/);
  });

  test('is refused on `cursor` by a list with other filters, or of another tenant', () => {
    const cursor = writeCursor('tenant-a {"statuses":["created"]}', 'position');
    assert.throws(() => readCursor('tenant-a {"statuses":["claimed"]}', cursor), refused);
    assert.throws(() => readCursor('tenant-a {}', cursor), refused);
    assert.throws(() => readCursor('tenant-b {"statuses":["created"]}', cursor), refused);
  });

  test('is refused on `cursor` when it is invalid, empty, or has no position', () => {
    for (const garbage of ['', 'x', '%%%', 'null', 'AAAA'.repeat(100), '\u0000', writeCursor('scope', '')]) {
      assert.throws(() => readCursor('scope', garbage), refused, garbage);
    }
    fc.assert(fc.property(fc.string(), (garbage) => assert.throws(() => readCursor('scope', garbage), refused)));
  });

  test('does not reveal its scope', () => {
    const cursor = writeCursor('tenant-4711', 'position');
    assert.ok(!Buffer.from(cursor, 'base64url').toString().includes('4711'));
  });
});
