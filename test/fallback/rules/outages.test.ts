import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { ChainRequest, Condition } from '../../../src/fallback/model/chain.ts';
import { testExample } from '../../../src/fallback/model/test.ts';
import { explained } from '../../../src/fallback/rehearse/explain.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { OutageComparison } from '../../../src/fallback/rules/outages.ts';
import { importChain } from '../../../src/fallback/rules/targets/import.ts';
import { requestOf } from './chains.ts';

const half = { allowed_fails: 0, window_ms: 30_000, seconds: 30 };

/** A call of a provider: its name, with the failure if it fails, and whether that is of no outage. */
type Made =
  | string
  | readonly [string, Condition]
  | readonly [string, Condition, 'by itself']
  | readonly [string, Condition, retryAfterMs: number];

/** Plays prompts at these seconds, each with its calls, and returns the comparison. */
function compared(
  prompts: readonly (readonly [second: number, calls: readonly Made[]])[],
  {
    chain = { cooldown: half },
    groups = new Map(),
    weights,
    lateMs = 0,
    deadlineMs = null,
    ownCooldownMs = 0,
    streamed = [],
  }: {
    chain?: Partial<ChainRequest>;
    groups?: Map<string, string>;
    weights?: Map<string, number>;
    lateMs?: number;
    deadlineMs?: number | null;
    ownCooldownMs?: number;
    streamed?: readonly number[];
  } = {},
) {
  const engine = createEngine(
    define({ ...requestOf(3, [{ condition: 'rate_limit', action: 'retry', max_retries: 1, wait_ms: 0 }]), ...chain }),
  );
  const comparison = new OutageComparison(engine, { groups, faultAt: () => undefined, ...(weights && { weights }), ownCooldownMs });
  const agree = prompts.map(([second, made], index) => {
    const start = second * 1000;
    const calls = made.map((one, place) => {
      const [provider, condition, cause] = typeof one === 'string' ? [one, null] : one;
      const at = start + place * 2;
      return {
        provider,
        condition,
        status_code: condition === null ? 200 : condition === 'rate_limit' ? 429 : 500,
        injected: condition !== null && cause !== 'by itself',
        retry_after_ms: typeof cause === 'number' ? cause : null,
        start: at,
        end: at + 1,
      };
    });
    for (const [call, one] of calls.entries()) comparison.ended({ ...one, prompt: index, call, end: one.end + lateMs });
    const served_by = calls.find(({ condition }) => condition === null)?.provider ?? null;
    const outcome = { attempts: calls, served_by, success: served_by !== null, stream: streamed.includes(index) };
    return comparison.compare({ index, start, calls, deadlineMs }, () => outcome).agrees;
  });
  return { comparison, agree, sentences: comparison.items.map(({ sentence }) => sentence) };
}

const down: Made = ['a', 'server_error'];

describe('A prompt in an outage is compared with what the chain does after the failures that have happened [F123]', () => {
  test('a gateway that leaves a provider out as long agrees, also within a second of the begin and the end', () => {
    const { agree } = compared([
      [9, ['a']],
      [10, [down, 'b']],
      [10.5, [down, 'b']],
      [12, ['b']],
      [39.5, ['a']],
      [40.8, ['b']],
      [42, ['a']],
    ]);
    assert.deepEqual(agree, [true, true, true, true, true, true, true]);
  });

  test('a gateway that forgets a cool-down is named once, with the second, the provider and the reason', () => {
    const { agree, comparison } = compared([
      [10, [down, 'b']],
      [12, [down, 'b']],
      [20, [down, 'b']],
      [45, ['a']],
    ]);
    assert.deepEqual(agree, [true, false, false, true]);
    const [found, ...others] = comparison.items;
    assert.equal(others.length, 0);
    assert.equal(found!.sentence, 'At 12 s, the gateway called a, which the chain leaves out until 40 s since its server_error at 10 s.');
    const { provider, condition, kind, second, prompts, first_index } = found!;
    assert.deepEqual([provider, condition, kind, second, prompts, first_index], ['a', 'server_error', 'cooldown', 12, 2, 1]);
  });

  test('a difference says whether the answers were streamed, and nothing of it if some were [F149]', () => {
    const streamOf = (streamed: readonly number[]) => {
      const prompts = [10, 12, 20].map((second) => [second, [down, 'b']] as const);
      return compared(prompts, { streamed }).comparison.items.map(({ stream }) => stream);
    };
    assert.deepEqual([streamOf([]), streamOf([0, 1, 2]), streamOf([2])], [[false], [true], [null]]);
  });

  test('a gateway that leaves a provider out without a reason, or for longer than its cool-down and a tolerance, is named', () => {
    assert.deepEqual(compared([[3, ['b']]]).sentences, ['At 3 s, the chain calls a, which is not left out; the gateway called b.']);
    const found = (second: number, options?: Parameters<typeof compared>[1]) =>
      compared(
        [
          [10, [down, 'b']],
          [second, ['b']],
        ],
        options,
      ).comparison.items.map(({ kind, condition, status_code }) => [kind, condition, status_code]);
    assert.deepEqual(found(43), [['calls', null, null]]);
    const own = { chain: {}, ownCooldownMs: 8000 };
    assert.deepEqual([found(18.9, own), found(19.1, own)], [[['cooldown', 'server_error', 500]], [['calls', null, null]]]);
  });

  test('a gateway that leaves a provider out where the chain fails over to it is named, unless it never failed', () => {
    const refused: Made = ['b', 'auth_error'];
    const found = (first: Made[]) =>
      compared(
        [
          [10, first],
          [12, [down, 'c']],
        ],
        { chain: {}, ownCooldownMs: 8000 },
      ).comparison.items.map(({ kind, provider, condition, sentence }) => [kind, provider, condition, sentence]);
    assert.deepEqual(found([down, refused, 'c']), [
      ['cooldown', 'b', 'auth_error', 'At 12 s behind the failure of a, the chain calls b, which is not left out; the gateway called c.'],
    ]);
    assert.deepEqual(
      found(['a']).map(([kind, provider]) => [kind, provider]),
      [['calls', 'a']],
    );
  });

  test('a gateway may leave a provider out by a failure before its last one, unless the provider has answered since', () => {
    const limited: Made = ['a', 'rate_limit', 60_000];
    const refused: Made = ['a', 'content_filter'];
    const found = (...between: [number, Made[]][]) =>
      compared([[10, [limited, 'b']], ...between, [40, ['b']]], { chain: {}, ownCooldownMs: 8000 }).comparison.items.flatMap(
        ({ kind, condition, sentence }) => (sentence.startsWith('At 40 s') ? [[kind, condition]] : []),
      );
    assert.deepEqual(found(), [['cooldown', 'rate_limit']]);
    assert.deepEqual(found([12, [refused, 'b']]), [['cooldown', 'rate_limit']]);
    assert.deepEqual(found([12, [refused, 'b']], [36, [refused, 'b']]), [['cooldown', 'content_filter']]);
    assert.deepEqual(found([12, [refused, 'b']], [14, ['a']]), [['calls', null]]);
    assert.deepEqual(found([14, ['a']], [16, [refused, 'b']]), [['calls', null]]);
  });

  test('what a prompt met itself is known at once, so that a retry of a provider that is left out differs', () => {
    const limited: Made = ['a', 'rate_limit'];
    assert.deepEqual(compared([[10, [limited, 'b']]]).agree, [true]);
    const { sentences } = compared([[10, [limited, limited, 'b']]]);
    assert.deepEqual(sentences.length, 1);
    assert.match(sentences[0]!, /^At 10 s/);
    assert.deepEqual(compared([[10, [limited, limited, 'b']]], { chain: {} }).agree, [true]);
    // Also if the call is seen to end when the next one has begun already.
    assert.deepEqual(compared([[10, [limited, 'b']]], { lateMs: 3 }).agree, [true]);
    assert.deepEqual(compared([[10, [limited, limited, 'b']]], { lateMs: 3 }).agree, [false]);
    // Its deadline ends a prompt as the chain does.
    assert.deepEqual(compared([[10, [limited]]], { chain: {}, deadlineMs: 1 }).agree, [true]);
    assert.deepEqual(compared([[10, [limited]]], { chain: {}, deadlineMs: 100 }).agree, [false]);
    // What is only met by the second call is not known behind the first.
    const second = { chain: { cooldown: { ...half, allowed_fails: 1 } } };
    assert.deepEqual(compared([[10, [limited, limited, 'b']]], second).agree, [true]);
  });

  test('a failure that is of no outage is a difference, also if the gateway goes on as after one', () => {
    const byItself: Made = ['a', 'server_error', 'by itself'];
    const { agree, comparison } = compared([[10, [byItself, 'b']]], { chain: {} });
    assert.deepEqual([agree, comparison.items.length, comparison.hasFailed], [[false], 1, false]);
    assert.equal(compared([[10, [down, 'b']]]).comparison.hasFailed, true);
  });

  test('without a call while all providers are left out, a lost prompt agrees and a call differs', () => {
    const all: Made[] = [down, ['b', 'server_error'], ['c', 'server_error']];
    const { agree, sentences } = compared([
      [10, all],
      [20, []],
      [21, ['b']],
    ]);
    assert.deepEqual(agree, [true, true, false]);
    assert.equal(sentences.length, 1);
  });

  test('draws of a balanced group are compared by counts with bounds, by weight and only among those that are not left out [F127]', () => {
    const groups = new Map([
      ['a', 'g'],
      ['b', 'g'],
    ]);
    const drawn = (share: number) => Array.from({ length: 100 }, (_, second) => [second, [second % 10 < share ? 'a' : 'b']] as const);
    assert.deepEqual(compared(drawn(5), { groups }).sentences, []);
    assert.deepEqual(compared(drawn(9), { groups }).sentences, [
      'Of 100 draws of its group, a got 90; between 29 and 71 were to be expected.',
      'Of 100 draws of its group, b got 10; between 29 and 71 were to be expected.',
    ]);
    const weights = new Map([
      ['a', 9],
      ['b', 1],
    ]);
    assert.deepEqual(compared(drawn(9), { groups, weights }).sentences, []);
    const none = new Map([...groups.keys()].map((name) => [name, 0]));
    assert.deepEqual(compared(drawn(9), { groups, weights: none }).sentences, []);
    const left = compared([[10, [down, 'b']], ...Array.from({ length: 20 }, (_, second) => [12 + second, ['b']] as const)], { groups });
    assert.deepEqual(left.sentences, []);
  });

  test('cool-downs that the chain does not have, because LiteLLM has them by default, are explained by the finding about them [F126]', () => {
    const model = (name: string) => ({ model_name: 'm', litellm_params: { model: `openai/${name}` }, model_info: { display_name: name } });
    const value = { model_list: ['a', 'b', 'c'].map(model) };
    const { findings } = importChain({ format: 'litellm', value });
    const groups = new Map(['a', 'b', 'c'].map((name) => [name, 'm']));
    const because = (prompts: Parameters<typeof compared>[0], options: Parameters<typeof compared>[1]) => {
      const { comparison } = compared(prompts, { ...options, chain: {}, ownCooldownMs: 5000 });
      return explained({ ...testExample, differences: comparison.items }, findings, []).map(({ difference, because: all }) => [
        difference.kind,
        all.some((detail) => detail.includes('A chain has no such rules')),
      ]);
    };
    const out = [
      [10, [down, 'b']],
      [12, ['b']],
    ] as const;
    assert.deepEqual(because(out, {}), [['cooldown', true]]);
    assert.deepEqual(because([[12, ['b']]], {}), [['calls', false]]);
    // A provider that has answered since its failure is not left out by it.
    const back = [...out.slice(0, 1), [11, ['a']], [12, ['b']]] as const;
    assert.deepEqual(because(back, {}), [['calls', false]]);
    // Also if another answer is there before the prompt is compared.
    assert.deepEqual(because([...back.slice(0, 2), [13, ['a']], [12, ['b']]], {}), [['calls', false]]);
    const drawn = Array.from({ length: 100 }, (_, second) => [second, [second % 2 === 0 ? 'b' : 'c']] as const);
    assert.deepEqual(because(drawn, { groups }), [['draws', false]]);
    const failing = drawn.map(([second, calls]) => [second, second === 0 ? [down, ...calls] : calls] as const);
    assert.deepEqual(because(failing, { groups }), [['draws', true]]);
  });

  test('a difference of a cool-down has the status of its failure, so that a finding about allowed_fails explains it [F126]', () => {
    const model_list = ['a', 'b'].map((name) => ({ model_name: name, litellm_params: { model: `openai/${name}` } }));
    const router_settings = { num_retries: 2, allowed_fails: 0, cooldown_time: 30, fallbacks: [{ a: ['b'] }] };
    const { findings } = importChain({ format: 'litellm', value: { model_list, router_settings } });
    const ofFails = findings.filter(({ detail }) => detail.includes('(allowed_fails)'));
    const limited: Made = ['a', 'rate_limit'];
    const { comparison } = compared([
      [10, [limited, 'b']],
      [12, [limited, 'b']],
    ]);
    const shown = explained({ ...testExample, differences: comparison.items }, ofFails, []).map(({ difference, because }) => [
      ...[difference.kind, difference.condition, difference.status_code],
      because.length,
    ]);
    assert.deepEqual(shown, [['cooldown', 'rate_limit', 429, 1]]);
  });
});
