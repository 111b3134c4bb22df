import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { createGateway, generateText } from 'ai';

import { chainOf, exported } from './chains.ts';
import { startFakes } from './fakes.ts';

const fakes = await startFakes(1);
after(() => fakes.stop());

interface OpenRouterBody {
  model: string;
  models: string[];
  provider: { allow_fallbacks: boolean };
  messages: { role: 'user'; content: string }[];
}

const config = () => exported(chainOf(fakes, []), 'openrouter').config as OpenRouterBody;

test("OpenRouter's SDK accepts the exported request and sends it unchanged", async () => {
  fakes.play([undefined]);
  const { model, models, provider, messages } = config();
  const client = new OpenRouter({ apiKey: 'fake', serverURL: fakes.base(0), retryConfig: { strategy: 'none' } });
  const answer = await client.chat.send({
    chatRequest: { model, models, provider: { allowFallbacks: provider.allow_fallbacks }, messages },
  });
  assert.equal('choices' in answer && answer.choices[0]!.message.content, 'p0');
  const [body] = fakes.bodies() as Record<string, unknown>[];
  const { stream = false, ...sent } = body!;
  assert.deepEqual([sent, stream], [config(), false]);
});

test("OpenRouter's SDK refuses models that are not a list", async () => {
  fakes.play([undefined]);
  const client = new OpenRouter({ apiKey: 'fake', serverURL: fakes.base(0), retryConfig: { strategy: 'none' } });
  const models = { first: 'a' } as unknown as string[];
  await assert.rejects(client.chat.send({ chatRequest: { ...config(), provider: {}, models } }));
  assert.deepEqual(fakes.bodies(), []);
});

test("the SDK of Vercel's AI Gateway sends the same order of models", async () => {
  fakes.play([undefined]);
  const { model, models } = config();
  const gateway = createGateway({ apiKey: 'fake', baseURL: fakes.base(0) });
  // The fake provider does not support the gateway's protocol; only the received request matters.
  await assert.rejects(generateText({ model: gateway(model), prompt: 'Say OK.', maxRetries: 0, providerOptions: { gateway: { models } } }));
  const [body] = fakes.bodies() as { providerOptions: unknown }[];
  assert.deepEqual(body!.providerOptions, { gateway: { models } });
});
