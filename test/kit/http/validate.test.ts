import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';

import { bodyValidator } from '../../../src/kit/http/validate.ts';
import { collectGarbage } from '../../support/garbage.ts';

test('A validator keeps no body that it has refused', async () => {
  const validate = bodyValidator(Type.Object({ name: Type.String() }, { additionalProperties: false }));
  const refused = [{ name: 1 }, { name: 'one', other: 'two' }].map((body) => {
    assert.throws(() => validate(body), { code: 'VALIDATION_ERROR' });
    return new WeakRef<object>(body);
  });
  await collectGarbage();
  assert.deepEqual(
    refused.map((body) => body.deref()),
    [undefined, undefined],
  );
});
