import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chainLabel } from '../../../src/fallback/web/parts/chain-label.ts';
import { faultNotes, labelled } from '../../../src/fallback/web/parts/labels.ts';

test('the dashboard names fields by their labels, and conditions by words', () => {
  assert.equal(
    labelled('This rule can never fire, because fallback_rules.0 always decides before it.'),
    'This rule can never fire, because Rule 1 always decides before it.',
  );
  assert.equal(labelled('rate_limit never has status 500.'), 'rate limit never has status 500.');
  assert.equal(
    labelled('Without api_key_env, calls of my_rate_limit have no key.'),
    'Without key variable, calls of my_rate_limit have no key.',
  );
  const faults = [
    { field: 'providers.0.model_id', detail: 'providers.0.model_id must not be empty.' },
    { field: 'providers.1.params.x', detail: 'No such parameter.' },
    { field: 'fallback_rules.2.status_codes.0', detail: 'fallback_rules.2.status_codes.0 must be a whole number.' },
    { field: 'name', detail: 'name is required.' },
  ];
  assert.deepEqual(
    faultNotes(faults).map(({ detail }) => detail),
    [
      'Provider 1 (Model) must not be empty.',
      'Provider 2 (Parameters, x): No such parameter.',
      'Rule 3 (Only for HTTP statuses) must be a whole number.',
      'Name is required.',
    ],
  );
});

test('chains of one name are labelled with the end of their id', () => {
  const chains = [
    { id: 'x-111111', name: 'a' },
    { id: 'x-222222', name: 'a' },
    { id: 'x-333333', name: 'b' },
  ] as const;
  assert.deepEqual(
    chains.map((chain) => chainLabel(chain, chains)),
    ['a (…111111)', 'a (…222222)', 'b'],
  );
});
