import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { keyFrom, looksLikeKey } from '../../../src/handoff/rules/keys.ts';

describe('The form of a key', () => {
  test('has a checksum that detects any single changed character [H199]', () => {
    const key = keyFrom(Buffer.alloc(32, 7));
    assert.ok(looksLikeKey(key));
    for (let index = 4; index < key.length; index += 1) {
      assert.ok(!looksLikeKey(`${key.slice(0, index)}${key[index] === 'a' ? 'b' : 'a'}${key.slice(index + 1)}`), `character ${index}`);
    }
  });

  test('is that of any text of 1 to 512 characters for a key that an operator chose', () => {
    assert.deepEqual(['x', 'svc', 'x'.repeat(512), '', 'x'.repeat(513), 'svc_'].map(looksLikeKey), [true, true, true, false, false, false]);
  });

  test('is the same for the lowest and the highest random bytes', () => {
    for (const byte of [0, 255]) assert.match(keyFrom(Buffer.alloc(32, byte)), /^svc_[0-9A-Za-z]{49}$/);
  });
});
