import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { RE2JS } from 're2js';

/** The values of `pattern` in a document. */
function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const own = 'pattern' in value && typeof value.pattern === 'string' ? [value.pattern] : [];
  return [...own, ...Object.values(value).flatMap(patternsIn)];
}

const descriptions = ['handoff', 'fallback'].map((name) => new URL(`../openapi/${name}.json`, import.meta.url));
const patterns = [...new Set(descriptions.flatMap((file) => patternsIn(JSON.parse(readFileSync(file, 'utf8')))))];

test('Each published pattern is one of ECMAScript, of RE2, which Go has, and of Python', () => {
  assert.ok(patterns.length > 5);
  for (const pattern of patterns) {
    assert.ok(new RegExp(pattern, 'u'));
    assert.ok(RE2JS.compile(pattern), pattern);
  }
  assert.throws(() => RE2JS.compile('^[^\\u0000]*$'));
  const program = 'import json, re, sys\nfor pattern in json.load(sys.stdin): re.compile(pattern)';
  const { status, error, stderr } = spawnSync('python3', ['-c', program], { input: JSON.stringify(patterns), encoding: 'utf8' });
  if (error === undefined) assert.equal(status, 0, stderr);
});

test('Published patterns exclude what they did in each engine: control characters', () => {
  for (const [pattern, yes, no] of [
    ['^[^\\x00]*$', 'é\u0001', 'a\u0000b'],
    ['^[^\\x00-\\x1f\\x7f]*$', 'é x', 'a\u001fb'],
    ['^[^\\x00-\\x20\\x7f]*$', 'é', 'a b'],
  ] as const) {
    assert.ok(patterns.includes(pattern), pattern);
    for (const matches of [(text: string) => new RegExp(pattern, 'u').test(text), (text: string) => RE2JS.compile(pattern).matches(text)])
      assert.deepEqual([matches(yes), matches(no)], [true, false], pattern);
  }
});
