import assert from 'node:assert/strict';
import { test } from 'node:test';

import { escapeHtml } from '../../../src/handoff/rules/html.ts';

test('The HTML of a text has no markup, and no characters that are hidden or reorder the text around them', () => {
  assert.equal(escapeHtml(`<a b="c" d='e'>&\u202e\u0007\n`), '&lt;a b=&quot;c&quot; d=&#39;e&#39;&gt;&amp;\n');
});
