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

test("OpenRouter's SDK takes the exported request and sends it as it is", async () => {
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

test("OpenRouter's SDK refuses models that are no list, so that what it takes is checked", async () => {
  fakes.play([undefined]);
  const client = new OpenRouter({ apiKey: 'fake', serverURL: fakes.base(0), retryConfig: { strategy: 'none' } });
  const models = { first: 'a' } as unknown as string[];
  await assert.rejects(client.chat.send({ chatRequest: { ...config(), provider: {}, models } }));
  assert.deepEqual(fakes.bodies(), []);
});

test("Vercel's AI Gateway is sent the same order of models by its SDK", async () => {
  fakes.play([undefined]);
  const { model, models } = config();
  const gateway = createGateway({ apiKey: 'fake', baseURL: fakes.base(0) });
  // The fake provider does not speak the gateway's own protocol: what counts is what arrived.
  await assert.rejects(generateText({ model: gateway(model), prompt: 'Say OK.', maxRetries: 0, providerOptions: { gateway: { models } } }));
  const [body] = fakes.bodies() as { providerOptions: unknown }[];
  assert.deepEqual(body!.providerOptions, { gateway: { models } });
});
