import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';

import { type RehearseOptions, rehearse } from '../../src/fallback/rehearse/rehearse.ts';
import { exitCodeOf, reportOf } from '../../src/fallback/rehearse/report.ts';
import { importChain } from '../../src/fallback/rules/targets/import.ts';
import { temporaryFolder } from '../support/folder.ts';
import { type Flaw, startGateway } from '../support/gateway.ts';
import { listenFor } from '../support/listen.ts';

const token = '0123456789abcdef0123456789abcdef';
const listener = { onStep: () => undefined, onProgress: () => undefined };

/** How a gateway is built: the names of the providers of each group, its retries, and what it does wrong. */
interface Built {
  readonly groups: readonly (readonly string[])[];
  readonly retries?: number;
  readonly flaw?: Flaw;
}

/** Rehearses a file of LiteLLM with a running gateway. */
async function rehearsed(t: TestContext, file: object, { groups, retries = 1, flaw }: Built, options: Partial<RehearseOptions> = {}) {
  const { port, close } = await listenFor(t, createServer());
  await close();
  const retried = new Map([429, 500, 502, 503, null].map((status) => [status, retries]));
  const upstreams = groups.map((names) => ({
    base: names.map((name) => `http://127.0.0.1:${port}/rehearsal/${token}/${encodeURIComponent(name)}/v1`),
    retries: retried,
  }));
  const { url } = await startGateway(t, upstreams, flaw);
  const config = join(temporaryFolder(t), 'config.yaml');
  writeFileSync(config, JSON.stringify(file));
  const given = { config, gateway: url, port: String(port), token, stream: false, preset: 'primary_down', ...options };
  const finished = await rehearse(given, {}, listener, new AbortController().signal);
  return { code: exitCodeOf(finished), report: reportOf(finished), result: finished.result };
}

const deployment = (model_name: string, parameters: object = {}) => ({
  model_name,
  litellm_params: { model: 'openai/gpt-4o', api_key: 'os.environ/KEY', timeout: 3, ...parameters },
});

describe('Two keys and a backup', () => {
  const file = {
    model_list: [deployment('chat'), deployment('chat'), deployment('backup')],
    router_settings: { num_retries: 1, disable_cooldowns: true, fallbacks: [{ chat: ['backup'] }] },
  };
  const groups = [['chat', 'chat-2'], ['backup']];
  for (const [what, built, preset, code] of [
    ['agree with a gateway that draws them', { groups }, 'primary_down', 0],
    ['do not excuse by their draws that the fallbacks are lost', { groups: groups.slice(0, 1) }, 'cascade', 1],
    ['do not excuse by their draws that a retry is lost', { groups, retries: 0 }, 'primary_down', 1],
  ] as const)
    test(`${what} [F148]`, async (t) => {
      const ended = await rehearsed(t, file, built, { preset });
      assert.equal(ended.code, code, ended.report);
    });
});

test('Models of several kinds in a group are unlike only where LiteLLM makes other calls of them [F148]', () => {
  const unlike = (kind: string, settings: object = {}, parameters: object = {}) => {
    const model_list = [deployment('chat'), deployment('chat', { model: `${kind}/gpt-4o`, ...parameters }), deployment('backup')];
    const value = { model_list, router_settings: { num_retries: 1, fallbacks: [{ chat: ['backup'] }], ...settings } };
    const { findings } = importChain({ format: 'litellm', value });
    return [...new Set(findings.flatMap((one) => (one.kind === 'unlike_models' ? [one.condition] : [])))];
  };
  assert.deepEqual(unlike('azure'), []);
  assert.deepEqual(unlike('azure', { retry_policy: { InternalServerErrorRetries: 0 } }).toSorted(), [
    'connection_error',
    'invalid_response',
    'server_error',
  ]);
  assert.deepEqual(unlike('groq'), ['connection_error']);
  assert.ok(unlike('openai', {}, { num_retries: 2 }).includes('server_error'));
});
