import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isName, snake } from '../scripts/python-text.ts';
import { Types } from '../scripts/python-types.ts';

test('The Python client names nothing by a keyword of Python: an argument gets an underscore, a member is a text', () => {
  assert.deepEqual(['from', 'import', 'X-Agent-Id', 'dry_run', 'createdAfter'].map(snake), [
    'from_',
    'import_',
    'agent_id',
    'dry_run',
    'created_after',
  ]);
  assert.deepEqual(['for', 'lambda', 'None', 'a-b', '2nd', 'forward', 'from_'].filter(isName), ['forward', 'from_']);
  const vote = { type: 'object', properties: { name: { type: 'string' }, for: { type: 'string' } }, required: ['name'] };
  assert.deepEqual(new Types({ Vote: vote }).classes.get('Vote'), ['', '    "name": "str",', '    "for": "NotRequired[str]",']);
});
