import assert from 'node:assert/strict';
import { test } from 'node:test';
import Type from 'typebox';

import { bodyValidator } from '../../../src/kit/http/validate.ts';
import { record } from '../../../src/kit/schemas.ts';
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

test('The values of an object with free names have its schema, whatever their names; names have theirs [H491]', () => {
  const validate = bodyValidator(Type.Object({ tokens: record(Type.String(), { propertyNames: Type.String({ maxLength: 8 }) }) }), {});
  assert.deepEqual(validate({ tokens: { 'a\nb': 'x', '': 'y' } }), { tokens: { 'a\nb': 'x', '': 'y' } });
  for (const name of ['a', 'a\nb', '\u2028', ''])
    assert.throws(() => validate({ tokens: { [name]: 5 } }), { message: `tokens.${name} must be a string, not a number.` });
  assert.throws(() => validate({ tokens: { 'a longer name': 'x' } }), {
    message: 'The name of tokens.a longer name can have at most 8 characters.',
  });
});
