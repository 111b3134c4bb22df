import assert from 'node:assert/strict';
import { test } from 'node:test';

import { linesOf } from '../../../src/fallback/rules/targets/field-lines.ts';

test('a field of a file has its line, in YAML and in JSON; a missing one has that of what should contain it', () => {
  const yaml = 'model_list:\n  - model_name: a\n    litellm_params:\n      model: x\n';
  assert.deepEqual(linesOf(yaml, ['model_list.0.litellm_params.model', 'model_list.0.litellm_params.timeout', 'group']), [4, 4, null]);
  assert.deepEqual(linesOf('{\n  "targets": [\n    {}\n  ]\n}', ['targets.0.provider']), [3]);
});
