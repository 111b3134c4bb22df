import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import type { ChainRequest } from '../src/fallback/model/chain.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { importChain } from '../src/fallback/rules/targets/import.ts';
import { isFull } from './extent.ts';
import { startSceneRouter } from './litellm.ts';
import { failures, judge, type Model } from './scenes.ts';
import { litellmShapes } from './shapes.ts';

const router = await startSceneRouter();
after(() => router.stop());

/** Failures of each class; a full run tries all. */
const tried = failures.filter(
  ({ condition, status_code }) =>
    isFull || ['rate_limit', 'timeout', 'context_length', 'content_filter', 'invalid_request'].includes(condition) || status_code === 500,
);

describe("LiteLLM's router does with the shapes of published files what the imported chain says, except for what a finding names", () => {
  for (const [name, { models: given, router_settings, litellm_settings, more, group }] of Object.entries(litellmShapes)) {
    test(name, async () => {
      const model_list = given.map(([model_name, parameters], index) => ({
        model_name,
        litellm_params: { model: `openai/m-${index}`, api_base: `http://m-${index}.test/v1`, api_key: 'sk-any', ...parameters },
      }));
      const value = { model_list, ...(router_settings && { router_settings }), ...(litellm_settings && { litellm_settings }), ...more };
      const { request, findings } = importChain({ format: 'litellm', value, group });
      const chain = define(request as ChainRequest);
      const models = new Map(
        chain.providers.map(({ name: provider, api_base }): [string, Model] => {
          const host = new URL(api_base!).hostname;
          const [of, parameters] = given[Number(/\d+/.exec(host)![0])]!;
          return [provider, { host, pool: `${of} ${String(parameters?.order ?? '')}` }];
        }),
      );
      const fresh = router_settings?.disable_cooldowns !== true;
      const judged = await judge(
        router,
        { name, chain, findings, models },
        { config: JSON.stringify(value), group: chain.name, fresh, tried },
      );
      assert.deepEqual(judged.unexplained, []);
    });
  }
});
