import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseFile, yamlText } from '../../../src/fallback/rules/targets/yaml.ts';

const texts = {
  booleans: 'a: yes\nb: On\nc: off\nd: No\ne: y\nf: n\ng: "yes"',
  numbers: 'a: 010\nb: 6_000\nc: 0x1F\nd: 1:30',
  'texts of other types': 'a: 2024-10-21\nb: 2024-10-21T10:00:00Z',
  merges: 'base: &b {x: on}\nz:\n  <<: *b\n  y: 2',
};

test("LiteLLM's files are read as YAML 1.1, as PyYAML reads them, except for dates, which stay texts [F107]", () => {
  assert.deepEqual(
    Object.values(texts).map((text) => parseFile(text, 'litellm')),
    [
      { a: true, b: true, c: false, d: false, e: 'y', f: 'n', g: 'yes' },
      { a: 8, b: 6000, c: 31, d: 90 },
      { a: '2024-10-21', b: '2024-10-21T10:00:00Z' },
      { base: { x: true }, z: { x: true, y: 2 } },
    ],
  );
});

test('chains are read as YAML 1.2, with merge keys [F107]', () => {
  assert.deepEqual(
    Object.values(texts).map((text) => parseFile(text, 'yaml')),
    [
      { a: 'yes', b: 'On', c: 'off', d: 'No', e: 'y', f: 'n', g: 'yes' },
      { a: 10, b: '6_000', c: 31, d: '1:30' },
      { a: '2024-10-21', b: '2024-10-21T10:00:00Z' },
      { base: { x: 'on' }, z: { x: 'on', y: 2 } },
    ],
  );
});

test('what is written for a gateway is read as the same values by both versions [F107]', () => {
  const value = { a: 'yes', b: true, c: 'off', d: '010', e: '6_000', f: '2024-10-21', g: '1:30', h: 'y', i: 0.5, j: null };
  for (const format of ['litellm', 'yaml'] as const) assert.deepEqual(parseFile(yamlText(value), format), value);
});
