import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { ServiceError } from '../../src/kit/errors.ts';
import { entityTagOf, isKnown, requireMatch } from '../../src/kit/etag.ts';

describe('If-Match', () => {
  test("accepts the resource's tag alone or in a list, `*`, and requests without it", () => {
    for (const header of [undefined, '"3"', ' "2" , "3"', '*', ' * ']) requireMatch(header, entityTagOf(3), 'chain');
  });

  test('refuses another tag, a weak one and a bare number with 412 and the current tag', () => {
    for (const header of ['"2"', 'W/"3"', '3', '', '""', 'x', '"2", "4"']) {
      assert.throws(
        () => requireMatch(header, entityTagOf(3), 'chain'),
        (error) => error instanceof ServiceError && error.status === 412 && error.message.includes(`the chain's ETag is "3" now`),
      );
    }
  });
});

test('If-None-Match accepts a weak tag, a list and `*` [H55]', () => {
  for (const header of ['"3"', 'W/"3"', '"1", W/"3"', '"1","3"', '*']) assert.equal(isKnown(header, '"3"'), true, header);
  for (const header of [undefined, '"1"', '3']) assert.equal(isKnown(header, '"3"'), false);
});
