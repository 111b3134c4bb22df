import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { LLMock } from '@copilotkit/aimock';

import type { ChainDefinition, ChainRequest } from '../src/fallback/model/chain.ts';
import { define } from '../src/fallback/rules/chain.ts';
import type { FailureKind } from '../src/fallback/rules/conditions.ts';
import { importChain } from '../src/fallback/rules/targets/import.ts';
import { startLitellm } from './litellm.ts';
import { type Gateway, startGateway } from './portkey.ts';
import { simulated } from './simulation.ts';

// Fake providers of another project, so that what the gateways do does not depend on how ours answer.
const mocks = [new LLMock({ port: 0 }), new LLMock({ port: 0 })] as const;
let litellm: Awaited<ReturnType<typeof startLitellm>>;
let portkey: Gateway;
const answer = 'One two three four five six seven.';

before(async () => {
  await Promise.all(mocks.map((mock) => mock.start()));
  litellm = await startLitellm();
  portkey = await startGateway();
});
after(async () => {
  litellm.stop();
  portkey.stop();
  await Promise.all(mocks.map((mock) => mock.stop()));
});

type Play = (mock: LLMock) => unknown;

interface ForeignScene extends FailureKind {
  readonly name: string;
  readonly play: Play;
  /** Whether the answer is streamed, which only Portkey's gateway is asked for here. */
  readonly stream?: true;
}

const refuses =
  (status: number, code: string, message = 'It failed.'): Play =>
  (mock) =>
    mock.onMessage(/.*/, { error: { message, type: code, code }, status });

const scenes: readonly ForeignScene[] = [
  { name: '429', condition: 'rate_limit', status_code: 429, play: refuses(429, 'rate_limit_exceeded') },
  { name: '500', condition: 'server_error', status_code: 500, play: refuses(500, 'server_error') },
  { name: '503', condition: 'server_error', status_code: 503, play: refuses(503, 'unavailable') },
  { name: '401', condition: 'auth_error', status_code: 401, play: refuses(401, 'invalid_api_key') },
  {
    name: 'too long',
    condition: 'context_length',
    status_code: 400,
    play: refuses(400, 'context_length_exceeded', "This model's maximum context length is 8192 tokens."),
  },
  { name: '404', condition: 'model_not_found', status_code: 404, play: refuses(404, 'model_not_found') },
  {
    name: 'a broken body',
    condition: 'invalid_response',
    status_code: 200,
    play: (mock) => mock.onMessage(/.*/, { content: answer }).setChaos({ malformedRate: 1 }),
  },
  {
    name: 'a broken connection',
    condition: 'connection_error',
    status_code: null,
    play: (mock) => mock.onMessage(/.*/, { content: answer }).setChaos({ disconnectRate: 1 }),
  },
  { name: '504', condition: 'timeout', status_code: 504, play: refuses(504, 'timeout') },
  { name: '402', condition: 'quota_exceeded', status_code: 402, play: refuses(402, 'payment_required') },
  {
    name: 'a stream that breaks off',
    condition: 'interrupted',
    status_code: 200,
    stream: true,
    play: (mock) => mock.onMessage(/.*/, { content: answer }, { truncateAfterChunks: 3, chunkSize: 4, latency: 100 }),
  },
];

/** Lets the first provider fail; the second one answers. */
function begin({ play }: ForeignScene): void {
  for (const mock of mocks) mock.clearFixtures().clearChaos().clearRequests();
  play(mocks[0]);
  mocks[1].onMessage(/.*/, { content: answer });
}

/** How often each provider was called, and whether the caller got an answer. */
interface Done {
  calls: number[];
  isServed: boolean;
}

const done = (isServed: boolean): Done => ({ calls: mocks.map((mock) => mock.getRequests().length), isServed });

async function expected(chain: ChainDefinition, { condition, status_code }: ForeignScene): Promise<Done> {
  const { attempts, success } = await simulated(chain, [{ provider: 0, condition, status_code, times: null }]);
  return { calls: chain.providers.map(({ name }) => attempts.filter(({ provider }) => provider === name).length), isServed: success };
}

const chainOf = (format: 'litellm' | 'portkey', value: object) => define(importChain({ format, value }).request as ChainRequest);

describe('With the fake providers of another project, LiteLLM makes the calls that the imported chain says', () => {
  for (const scene of scenes.filter(({ stream }) => !stream))
    test(scene.name, async () => {
      begin(scene);
      const model_list = mocks.map(({ port }, index) => ({
        model_name: ['a', 'b'][index],
        litellm_params: { model: `openai/m-${index}`, api_base: `http://127.0.0.1:${port}/v1`, api_key: 'sk-any', timeout: 2 },
      }));
      const file = { model_list, router_settings: { num_retries: 1, fallbacks: [{ a: ['b'] }], disable_cooldowns: true } };
      const { answer: text } = await litellm.ask(JSON.stringify(file), 'a');
      assert.deepEqual(done(text !== null && text !== ''), await expected(chainOf('litellm', file), scene));
    });
});

describe("With the fake providers of another project, Portkey's gateway makes the calls that the imported chain says", () => {
  for (const scene of scenes)
    test(scene.name, async () => {
      begin(scene);
      const targets = mocks.map(({ port }, index) => ({
        name: ['a', 'b'][index],
        provider: 'openai',
        api_key: 'sk-any',
        custom_host: `http://127.0.0.1:${port}/v1`,
        override_params: { model: `m-${index}` },
        request_timeout: 2_000,
        retry: { attempts: 1 },
      }));
      const file = { strategy: { mode: 'fallback' }, targets };
      const response = await fetch(`http://127.0.0.1:${portkey.port}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-portkey-config': JSON.stringify(file) },
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Say OK.' }], stream: scene.stream === true }),
      });
      const text = await response.text().catch(() => '');
      const isServed = response.status === 200 && text.includes('seven.') && (scene.stream !== true || text.includes('[DONE]'));
      assert.deepEqual(done(isServed), await expected(chainOf('portkey', file), scene));
    });
});
