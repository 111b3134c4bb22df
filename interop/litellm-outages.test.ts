import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import type { ChainRequest, Condition } from '../src/fallback/model/chain.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { usualStatus } from '../src/fallback/rules/conditions.ts';
import { createEngine } from '../src/fallback/rules/engine.ts';
import { type MadeCall, OutageComparison } from '../src/fallback/rules/outages.ts';
import { outagesOf } from '../src/fallback/rules/plan.ts';
import { errorOf } from '../src/fallback/rules/provider-errors.ts';
import { importChain } from '../src/fallback/rules/targets/import.ts';
import { isFull } from './extent.ts';
import { startOutageRouter } from './litellm.ts';

const router = await startOutageRouter();
after(() => router.stop());

/** What a file says, what fails from 10 s to 40 s, and in which seconds the calls of the failing model are. */
interface Timed {
  models: number;
  settings: Record<string, unknown>;
  condition?: Condition;
  retryAfter?: number;
  /** The seconds in which a model that is alone is called from 10 s on, until it answers again. */
  called?: readonly number[];
  /** Whether it is one of those of CI. */
  inCi?: true;
}

const six = { cooldown_time: 6 };
const policy = { allowed_fails: 3, allowed_fails_policy: { InternalServerErrorAllowedFails: 3 } };
const scenes: Readonly<Record<string, Timed>> = {
  'one, none allowed': { models: 1, settings: { ...six, allowed_fails: 0 }, called: [10, 17, 24, 31, 38, 45], inCi: true },
  'one, one allowed': { models: 1, settings: { ...six, allowed_fails: 1 }, called: [10, 11, 18, 19, 26, 27, 34, 35, 42] },
  'one, one allowed, a retry': {
    models: 1,
    settings: { ...six, allowed_fails: 1, num_retries: 1 },
    called: [10, 10, 17, 17, 24, 24, 31, 31, 38, 38, 45],
  },
  'one, none allowed, retries': { models: 1, settings: { ...six, allowed_fails: 0, num_retries: 2 }, called: [10, 17, 24, 31, 38, 45] },
  'one, three allowed by a policy': {
    models: 1,
    settings: { ...six, ...policy },
    called: [10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33, 40],
    inCi: true,
  },
  'one, Retry-After': {
    models: 1,
    settings: { ...six, allowed_fails: 0 },
    condition: 'rate_limit',
    retryAfter: 9,
    called: [10, 20, 30, 40],
    inCi: true,
  },
  'two, none allowed': { models: 2, settings: { ...six, allowed_fails: 0 }, inCi: true },
  'two, one allowed': { models: 2, settings: { ...six, allowed_fails: 1 } },
  'two, three allowed by a policy': { models: 2, settings: { ...six, ...policy } },
  'three, none allowed': { models: 3, settings: { ...six, allowed_fails: 0 } },
};

describe("LiteLLM's router leaves out models in outages as the imported chain says [F126]", () => {
  for (const [name, { models, settings, condition = 'server_error', retryAfter, called, inCi }] of Object.entries(scenes)) {
    if (!isFull && !inCi) continue;
    test(name, async () => {
      const model = (model_name: string, host: string) => ({
        model_name,
        litellm_params: { model: 'openai/m', api_base: `http://${host}.test/v1`, api_key: 'sk-any' },
      });
      const members = Array.from({ length: models }, (_, index) => `a${index}`);
      const value = {
        model_list: [...members.map((host) => model('a', host)), model('b', 'b')],
        router_settings: { num_retries: 0, fallbacks: [{ a: ['b'] }], ...settings },
      };
      const chain = define(importChain({ format: 'litellm', value }).request as ChainRequest);
      const nameOf = (host: string) => chain.providers.find(({ api_base }) => new URL(api_base!).hostname === host)!.name;
      const outage = {
        ...{ provider: nameOf('a0.test'), from_s: 10, to_s: 40, condition },
        ...(retryAfter !== undefined && { retry_after_ms: retryAfter * 1000 }),
      };
      const request = { rate_per_minute: 60, seconds: 60, outages: [outage] };
      const faultAt = outagesOf(chain, request);
      const groups = new Map(models > 1 ? members.map((host) => [nameOf(`${host}.test`), 'a']) : []);
      const comparison = new OutageComparison(createEngine(chain), { groups, faultAt });
      const status = usualStatus(condition)!;
      const played = await router.play({
        ...{ config: JSON.stringify(value), group: 'a', every: 1, count: 60 },
        outages: [
          {
            host: 'a0.test',
            from: 10,
            to: 40,
            status,
            text: JSON.stringify(errorOf('openai', condition)!.body),
            retry_after: retryAfter ?? null,
          },
        ],
      });
      for (const [prompt, { start, calls, answer }] of played.entries()) {
        const made = calls.map(({ host, at, failed }): MadeCall => {
          const end = at * 1000 + 1;
          return {
            provider: nameOf(host),
            condition: failed ? condition : null,
            status_code: failed ? status : 200,
            injected: failed,
            start: at * 1000,
            end,
          };
        });
        for (const [place, call] of made.entries())
          comparison.ended({ ...call, prompt, call: place, retry_after_ms: outage.retry_after_ms ?? null });
        const served_by = answer === null ? null : made.find((call) => call.condition === null)!.provider;
        comparison.compare({ index: prompt, start: start * 1000, calls: made, deadlineMs: null }, () => ({
          attempts: made,
          served_by,
          success: answer !== null,
        }));
      }
      assert.deepEqual(
        comparison.items.map(({ sentence }) => sentence),
        [],
      );
      assert.ok(comparison.hasFailed);
      if (called === undefined) return;
      const seconds = played.flatMap(({ calls }) =>
        calls.filter(({ host, at }) => host === 'a0.test' && at >= 10).map(({ at }) => Math.floor(at)),
      );
      assert.deepEqual(seconds.slice(0, called.length), called);
    });
  }
});
