import assert from 'node:assert/strict';
import { test } from 'node:test';

import { personName } from '../../../src/handoff/rules/identity.ts';

test('The name of a person has no sign that does not show, except where a script or an emoji needs it [H447]', () => {
  const nameOf = (name: string) => personName({ name }, { nameClaim: 'name' });
  const taken = [
    'dana@example.com',
    'Jos\u00e9',
    '\u0639\u0644\u06cc\u200c\u0631\u0636\u0627',
    '\u0915\u094d\u200d\u0937',
    'Zo\u00eb \u2764\ufe0f',
    '\u{1f469}\u200d\u{1f4bb}',
  ];
  for (const name of taken) assert.equal(nameOf(name), name, JSON.stringify(name));
  for (const sign of [
    '\u00ad',
    '\u034f',
    '\u115f',
    '\u200b',
    '\u200c',
    '\u200d',
    '\u200e',
    '\u202e',
    '\u2060',
    '\u2066',
    '\u3164',
    '\ufe0f',
    '\ufeff',
    '\u{e0041}',
    '\u0301\u200d',
  ])
    assert.equal(nameOf(`da${sign}na`), undefined, JSON.stringify(sign));
  assert.equal(nameOf('Jose\u0301 '), 'Jos\u00e9');
});
