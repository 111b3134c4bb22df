import assert from 'node:assert/strict';
import { test } from 'node:test';

import { lineOf } from '../../../src/fallback/web/data/line-of.ts';
import { chainLabel } from '../../../src/fallback/web/parts/chain-label.ts';
import { faultsSaid, said } from '../../../src/fallback/web/parts/said.ts';

test('the dashboard names fields by their labels, and conditions by words', () => {
  assert.equal(
    said('This rule can never fire, because fallback_rules.0 always decides before it.'),
    'This rule can never fire, because Rule 1 always decides before it.',
  );
  assert.equal(said('rate_limit never has status 500.'), 'rate limit never has status 500.');
  assert.equal(
    said('Without api_key_env, calls of my_rate_limit have no key.'),
    'Without key variable, calls of my_rate_limit have no key.',
  );
  const faults = [
    { field: 'providers.0.model_id', detail: 'providers.0.model_id must not be empty.' },
    { field: 'providers.1.params.x', detail: 'No such parameter.' },
    { field: 'fallback_rules.2.status_codes.0', detail: 'fallback_rules.2.status_codes.0 must be a whole number.' },
    { field: 'name', detail: 'name is required.' },
  ];
  assert.deepEqual(
    faultsSaid(faults).map(({ detail }) => detail),
    [
      'Provider 1 (Model) must not be empty.',
      'Provider 2 (Parameters, x): No such parameter.',
      'Rule 3 (Only for HTTP statuses) must be a whole number.',
      'Name is required.',
    ],
  );
});

test('a field of a file has its line, in YAML and in JSON; a missing one has that of what should contain it', async () => {
  const yaml = 'model_list:\n  - model_name: a\n    litellm_params:\n      model: x\n';
  assert.equal(await lineOf(yaml, 'model_list.0.litellm_params.model'), 4);
  assert.equal(await lineOf(yaml, 'model_list.0.litellm_params.timeout'), 4);
  assert.equal(await lineOf('{\n  "targets": [\n    {}\n  ]\n}', 'targets.0.provider'), 3);
  assert.equal(await lineOf(yaml, 'group'), undefined);
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
