import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, describe, test } from 'node:test';

import { define } from '../src/fallback/rules/chain.ts';
import { portkeyKinds } from '../src/fallback/rules/kind-lists.ts';
import { kinds, protocolOf } from '../src/fallback/rules/kinds.ts';
import { exported } from './chains.ts';
import { completion } from './fakes.ts';
import { startGateway } from './portkey.ts';

/** The paths that were called. */
const called: string[] = [];
const fake = createServer((request, response) => {
  called.push(request.url!);
  request.resume().on('end', () => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(completion('m'))));
});
await new Promise<void>((resolve) => fake.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(fake.address() as AddressInfo).port}`;
const gateway = await startGateway();
after(() => {
  gateway.stop();
  fake.close();
});

describe('An export for Portkey reaches the address of the chain, for every kind', () => {
  // Portkey signs the calls of these with their accounts, or names their resources, whatever address they have.
  const accounts = new Set(['azure-ai', 'azure-openai', 'bedrock', 'oracle', 'sagemaker', 'vertex-ai']);
  for (const kind of new Set([...Object.keys(kinds), ...portkeyKinds, 'homemade'])) {
    if (accounts.has(kind)) continue;
    test(kind, async () => {
      const version = kind === 'lepton' ? 'api/v1' : 'v1';
      const provider = { name: 'one', model_id: 'm', provider: kind, api_base: `${origin}/${kind}/${version}`, api_key_env: 'KEY' };
      const { content } = exported(define({ name: 'one', providers: [provider] }), 'portkey');
      called.length = 0;
      await fetch(`http://127.0.0.1:${gateway.port}/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-portkey-config': JSON.stringify(JSON.parse(content)) },
        body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Say OK.' }], max_tokens: 16 }),
      }).then((response) => response.text());
      const path = protocolOf({ provider: kind, model_id: 'm', api_base: null }) === 'anthropic' ? 'messages' : 'chat/completions';
      assert.deepEqual(called, [`/${kind}/${version}/${path}`]);
    });
  }
});
