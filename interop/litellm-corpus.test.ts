import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { parse } from 'yaml';

import type { ChainRequest } from '../src/fallback/model/chain.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { importChain } from '../src/fallback/rules/targets/import.ts';
import { corpusOf, scenes, startInternet, unexplained } from './corpus.ts';
import { isFull } from './extent.ts';
import { startLitellm, startSceneRouter } from './litellm.ts';
import { failures, healthyStreams, judge, type Model, streamFailures } from './scenes.ts';

const files = corpusOf('litellm');
const internet = await startInternet();
const keys = [
  ...new Set(files.flatMap(({ text, exported }) => [...`${text}${exported}`.matchAll(/os\.environ\/(\w+)/g)].map(([, key]) => key!))),
];
const litellm = await startLitellm({ origin: internet.origin, keys });
after(async () => {
  litellm.stop();
  await internet.stop();
});

describe('A file that was imported and exported again makes the calls that it made before, except for what the findings say', () => {
  for (const file of files) {
    test(file.name, async () => {
      const runs = [];
      for (const scene of scenes) {
        const before = internet.play(scene);
        const first = await litellm.ask(file.text, file.chain.name);
        const after = internet.play(scene);
        const second = await litellm.ask(file.exported, file.chain.name);
        for (const { error } of [first, second]) {
          if (scene.way === null) assert.equal(error, null);
          assert.doesNotMatch(error ?? '', /^no answer/);
        }
        runs.push({ scene, before: internet.calls(before), after: internet.calls(after) });
      }
      assert.deepEqual(unexplained(file, runs), []);
    });
  }
});

const sceneRouter = await startSceneRouter();
after(() => sceneRouter.stop());

/** The parameters that decide what the router calls; the others only say how a provider is reached. */
const routed = ['order', 'weight', 'rpm', 'tpm', 'num_retries', 'max_retries', 'timeout'];

describe("LiteLLM's router does with a file what the imported chain says, except for what a finding names", () => {
  for (const { name, text } of corpusOf('litellm')) {
    test(name, async () => {
      const value = parse(text, { merge: true }) as { model_list: { model_name: string; litellm_params: Record<string, unknown> }[] };
      const { model_list } = value;
      const redirected = model_list.map(({ model_name, litellm_params }, index) => ({
        model_name,
        litellm_params: {
          ...Object.fromEntries(routed.flatMap((param) => (param in litellm_params ? [[param, litellm_params[param]]] : []))),
          ...{ model: `openai/m-${index}`, api_base: `http://m-${index}.test/v1`, api_key: 'sk-any' },
        },
      }));
      const { request, findings } = importChain({ format: 'litellm', value: { ...value, model_list: redirected } });
      const chain = define(request as ChainRequest);
      const models = new Map(
        chain.providers.map(({ name: provider, api_base }): [string, Model] => {
          const host = new URL(api_base!).hostname;
          const { model_name, litellm_params } = redirected[Number(/\d+/.exec(host)![0])]!;
          return [provider, { host, pool: `${model_name} ${'order' in litellm_params ? litellm_params.order : ''}` }];
        }),
      );
      const judged = { name, chain, findings, models };
      const common = { config: JSON.stringify({ ...value, model_list: redirected }), group: chain.name, fresh: true };
      const { unexplained } = await judge(sceneRouter, judged, common);
      assert.deepEqual(unexplained, []);
      // A full run plays them with streams as well, of which a whole refusal comes first.
      if (!isFull) return;
      const isLimited = chain.providers.every(({ first_token_ms, idle_ms }) => first_token_ms !== null && idle_ms !== null);
      const tried = [...streamFailures(false, isLimited), ...failures.filter(({ condition }) => condition !== 'invalid_response')];
      const streamed = await judge(sceneRouter, judged, { ...common, tried, streams: healthyStreams(false) });
      assert.deepEqual(streamed.unexplained, []);
    });
  }
});

test("LiteLLM's timeout is the longest silence of an answer, and in streams stream_timeout takes its place [F168]", async () => {
  const limitsOf = async (kind: string, settings: object, isStreamed: boolean) => {
    const model = { model_name: 'm', litellm_params: { model: `${kind}/m`, api_base: 'http://m.test/v1', api_key: 'sk-any', ...settings } };
    const file = { config: JSON.stringify({ model_list: [model] }), group: 'm', fresh: true, scenes: [{}] };
    const [played] = await sceneRouter.play({ ...file, ...(isStreamed && { streams: healthyStreams(false) }) });
    assert.equal(played!.error, null);
    return played!.limits;
  };
  for (const kind of ['openai', 'anthropic']) {
    const both = { timeout: 3, stream_timeout: 7 };
    const found = [
      await limitsOf(kind, { timeout: 3 }, false),
      await limitsOf(kind, { timeout: 3 }, true),
      await limitsOf(kind, both, false),
      await limitsOf(kind, both, true),
    ];
    assert.deepEqual(found, [[3], [3], [3], [7]], kind);
  }
});
