import assert from 'node:assert/strict';
import { test } from 'node:test';

import { detectFormat, exportFormats, gatewayFormats, importFormats, rehearsalFormats } from '../../../src/fallback/model/targets.ts';

test('the format of a file is recognized by its text, else by its form', () => {
  const files: [string, string, string][] = [
    ['config.yaml', 'model_list:\n  - model_name: a\n', 'litellm'],
    ['config.json', '{"model_list": []}', 'litellm'],
    ['config.json', '{"strategy": {"mode": "fallback"}, "targets": []}', 'portkey'],
    ['config.json', '{"provider": "anthropic", "retry": {"attempts": 2}, "override_params": {}}', 'portkey'],
    ['chain.json', '{"name": "a", "providers": []}', 'json'],
    ['chain.json', '{"providers": [{"provider": "openai", "model_id": "m"}], "metadata": {"retry": 1}}', 'json'],
    ['chain.yaml', 'name: a\nproviders: []\n', 'yaml'],
    ['notes.txt', 'name: a\nproviders: []\n', 'yaml'],
    ['flow.yml', '{name: a, providers: []}', 'yaml'],
  ];
  for (const [name, text, format] of files) assert.equal(detectFormat(name, text), format, text);
});

test('the lists of formats are those of the targets', () => {
  const gateways = ['bifrost', 'envoy-ai-gateway'];
  assert.deepEqual(exportFormats, ['litellm', 'portkey', 'openrouter', 'langchain', 'ai-sdk', ...gateways, 'json', 'yaml']);
  assert.deepEqual(importFormats, ['litellm', 'portkey', 'json', 'yaml']);
  assert.deepEqual(rehearsalFormats, ['litellm', 'portkey', 'langchain', 'ai-sdk', 'json']);
  assert.deepEqual(gatewayFormats, ['litellm', 'portkey']);
});
