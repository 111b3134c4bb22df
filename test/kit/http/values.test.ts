import assert from 'node:assert/strict';
import { test } from 'node:test';

import { maxValues, parseJson } from '../../../src/kit/http/json.ts';

const arrays = (count: number) => Buffer.from(`[${Array.from({ length: count }, () => '[]').join(',')}]`);

test('400: a body of more values than anybody means is refused before it is read', () => {
  assert.throws(() => parseJson(arrays(maxValues)), { code: 'VALIDATION_ERROR', message: /more than 250000 values/ });
});

test('commas and brackets inside texts are no values', () => {
  const text = `,[{\\"`.repeat(200_000);
  assert.deepEqual(parseJson(Buffer.from(`{"text":"${text}"}`)), { text: text.replaceAll('\\"', '"') });
});
