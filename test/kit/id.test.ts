import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { createIds, lowestIdAt } from '../../src/kit/id.ts';
import { isId } from '../../src/kit/uuid.ts';

const noon = new Date('2026-03-01T12:00:00.000Z');

describe('An id', () => {
  test('is a UUID version 7 that contains its time in milliseconds', () => {
    const newId = createIds();
    fc.assert(
      fc.property(fc.date({ min: new Date(0), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true }), (at) => {
        const id = newId(at);
        assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        assert.equal(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16), at.getTime());
        assert.ok(isId(id));
      }),
    );
  });

  test('sorts as text by time', () => {
    const newId = createIds();
    fc.assert(
      fc.property(fc.nat(4e12), fc.integer({ min: 1, max: 1e9 }), (early, later) => {
        assert.ok(newId(new Date(early)) < newId(new Date(early + later)));
      }),
    );
  });

  test('sorts by order of creation among at least 2,048 of one millisecond', () => {
    const newId = createIds();
    const ids = Array.from({ length: 2048 }, () => newId(noon));
    assert.deepEqual(ids, ids.toSorted());
    assert.equal(new Set(ids).size, ids.length);
  });

  test('is unique, even among 100,000 of one millisecond', () => {
    const newId = createIds();
    const ids = new Set(Array.from({ length: 100_000 }, () => newId(noon)));
    assert.equal(ids.size, 100_000);
  });

  test('takes its randomness from the given source', () => {
    const zeros = createIds((bytes) => void bytes.fill(0));
    assert.equal(zeros(noon), lowestIdAt(noon));
    const ones = createIds((bytes) => void bytes.fill(0xff));
    assert.match(ones(noon), /-77ff-bfff-ffffffffffff$/);
  });

  test('is not below the lowest id of its time, and earlier ids are', () => {
    const newId = createIds();
    for (let made = 0; made < 5000; made += 1) {
      assert.ok(newId(noon) >= lowestIdAt(noon));
      assert.ok(newId(new Date(noon.getTime() - 1)) < lowestIdAt(noon));
    }
    assert.equal(lowestIdAt(new Date(-5)), '00000000-0000-7000-8000-000000000000');
  });

  test('is distinguished from any other text', () => {
    assert.ok(isId('0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b'));
    for (const text of [
      '',
      'awaiting',
      '0197B5A6-8C3E-7F01-9A2B-3C4D5E6F7A8B',
      '0197b5a68c3e7f019a2b3c4d5e6f7a8b',
      '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b\n',
      ' 0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b',
      '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8g',
    ]) {
      assert.ok(!isId(text), JSON.stringify(text));
    }
  });
});
