import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { type Condition, conditions } from '../../../src/fallback/model/chain.ts';
import type { Difference } from '../../../src/fallback/model/rehearsal.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { usualStatus } from '../../../src/fallback/rules/conditions.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { providerErrors } from '../../../src/fallback/rules/provider-errors.ts';
import { agreesAsDrawn, Differences, marked, marksIn, rehearsable, withNativeStatuses } from '../../../src/fallback/rules/rehearsal.ts';
import { withTimeouts } from '../../../src/fallback/rules/targets/litellm/own-file.ts';
import { chainOf } from './chains.ts';

/** Calls as words: `a!` fails, `a` answers. The provider that answers serves. */
function calls(text: string, condition: Condition = 'server_error') {
  const attempts = text.split(' ').flatMap((word) => {
    if (word === '') return [];
    const fails = word.endsWith('!');
    return [{ provider: fails ? word.slice(0, -1) : word, condition: fails ? condition : null }];
  });
  const served_by = attempts.find((attempt) => attempt.condition === null)?.provider ?? null;
  return { attempts, served_by, success: served_by !== null };
}

function compared(expected: string, actual: string, groups: readonly (readonly [string, string])[] = []): Difference[] {
  const differences = new Differences(new Map(groups));
  const agrees = differences.compare(0, calls(expected), calls(actual), () => 500);
  assert.equal(agrees, differences.items.length === 0);
  return [...differences.items];
}

describe('A mark', () => {
  test('is found in the text of a request, however it is wrapped', () => {
    const prompt = marked('Hello', '0123456789abcdef');
    assert.deepEqual(marksIn(JSON.stringify({ messages: [{ role: 'user', content: [{ type: 'text', text: prompt }] }] })), [
      '0123456789abcdef',
    ]);
    assert.deepEqual(marksIn('rehearsal:xyz'), []);
  });
});

test('A failover that only led to providers that are left out ends the chain, and others go on to those that stay', () => {
  const providers = [
    { name: 'a', model_id: 'openai/m' },
    { name: 'b', model_id: 'anthropic/m' },
    { name: 'native', model_id: 'bedrock/m' },
  ];
  const ruled = (rule: object) => {
    const { chain, left } = rehearsable(define({ name: 'c', providers, fallback_rules: [{ condition: 'timeout', ...rule }] } as never));
    assert.deepEqual(left, ['native']);
    return chain.fallback_rules.map(({ action, then, to }) => [action, then ?? null, to]);
  };
  assert.deepEqual(ruled({ action: 'failover', to: ['native'] }), [['fail', null, null]]);
  assert.deepEqual(ruled({ action: 'retry', max_retries: 1, then: 'failover', to: ['native'] }), [['retry', 'fail', null]]);
  assert.deepEqual(ruled({ action: 'failover', to: ['native', 'b'] }), [['failover', null, ['b']]]);
  assert.deepEqual(ruled({ action: 'failover', providers: ['native'] }), []);
});

describe('A failure in a rehearsal', () => {
  const kinds = ['openai', 'anthropic', 'groq', 'gemini', 'cohere', null] as const;
  const providers = kinds.map((provider, index) => ({ name: `p${index}`, model_id: 'm', provider, api_base: 'https://a.example.com/v1' }));
  const statusesOf = (condition: Condition, rules: object[] = [], chosen = false) => {
    const engine = createEngine(define({ name: 'c', providers, fallback_rules: rules } as never));
    const faults = kinds.map((_, provider) => ({ provider, condition, status_code: usualStatus(condition), retry_after_ms: null }));
    const [scene] = withNativeStatuses([{ name: 's', faults }] as never, engine, () => chosen);
    return scene!.faults.map(({ status_code }) => status_code);
  };

  test('has the status that the kind of its provider sends, and that of OpenAI where its protocol is played instead of its own [F59]', () => {
    // Anthropic says by 400 that an account is used up; Gemini and Cohere are played by the protocol of OpenAI.
    assert.deepEqual(statusesOf('quota_exceeded'), [429, 400, 429, 429, 429, 429]);
    for (const condition of conditions)
      for (const [index, status] of statusesOf(condition).entries()) {
        const kind = ['gemini', 'cohere', null].includes(kinds[index]!) ? 'openai' : kinds[index]!;
        const known = providerErrors
          .filter((error) => error.condition === condition && error.kinds.includes(kind))
          .map((error) => error.status);
        if (known.length > 0 && usualStatus(condition) !== null) assert.ok(known.includes(status!), `${kind} ${condition} ${status}`);
      }
  });

  test('keeps a status that the request chose, and one of which a rule decides [F59]', () => {
    const usual = usualStatus('quota_exceeded');
    assert.deepEqual(new Set(statusesOf('quota_exceeded', [], true)), new Set([usual]));
    const rule = (status: number) => [{ condition: 'any', action: 'fail', status_codes: [status] }];
    assert.deepEqual(new Set(statusesOf('quota_exceeded', rule(usual!))), new Set([usual]));
    assert.deepEqual(statusesOf('quota_exceeded', rule(400)), [429, usual, 429, 429, 429, 429]);
  });
});

describe('A gateway that draws one of several providers and calls no other of them', () => {
  // The chain calls a, b and c in turn; the gateway draws a or b, and goes on to c.
  const apart = new Map([
    ['a', new Set(['b'])],
    ['b', new Set(['a'])],
  ]);
  const isDrawn = (course: string, rules: Parameters<typeof chainOf>[1] = [], sets: ReadonlyMap<string, ReadonlySet<string>> = apart) => {
    const { attempts, ...end } = calls(course);
    const made = attempts.map((attempt) => ({ ...attempt, status_code: attempt.condition === null ? 200 : 500 }));
    return agreesAsDrawn(createEngine(chainOf(3, rules)), { attempts: made as never, ...end }, sets);
  };

  test('does what the chain does without the others, and nothing else is explained by its draws [F161]', () => {
    for (const course of ['a', 'b', 'a! c', 'b! c', 'a! c!']) assert.equal(isDrawn(course), true, course);
    // Fallbacks that are lost, retries that the chain has not, and calls of several of them.
    for (const course of ['', 'a!', 'b!', 'c', 'a! a! c', 'a! b', 'a! b! c', 'a! c! c']) assert.equal(isDrawn(course), false, course);
    const retry = [{ condition: 'server_error', action: 'retry', max_retries: 1 }] as const;
    assert.equal(isDrawn('b! b! c', [...retry]), true);
    assert.equal(isDrawn('b! c', [...retry]), false);
    // Without draws there is nothing to explain.
    assert.equal(isDrawn('a', [], new Map()), false);
    assert.equal(isDrawn('c', [], new Map([['c', new Set(['a', 'b'])]])), true);
  });
});

test('Models of a file of LiteLLM without a timeout get one, unless the file has one for all', () => {
  const model = (litellm_params: object) => ({ model_name: 'a', litellm_params });
  const model_list = [model({ model: 'm' }), model({ model: 'n', timeout: 9 })];
  assert.deepEqual(withTimeouts({ model_list }, 5000), { model_list: [model({ model: 'm', timeout: 5 }), model_list[1]!] });
  for (const more of [{ router_settings: { timeout: 9 } }, { litellm_settings: { request_timeout: 9 } }])
    assert.equal(withTimeouts({ model_list, ...more }, 5000), null);
});

describe('A gateway agrees', () => {
  const same = ['a', 'a! b', 'a! a! b! c', 'a! b!', 'a! a'];
  test('if it calls the same providers in the same order as often, with the same end', () => {
    for (const course of same) assert.deepEqual(compared(course, course), []);
    for (const one of same) for (const other of same) if (one !== other) assert.notDeepEqual(compared(one, other), [], `${one} / ${other}`);
  });

  const group = [
    ['a1', 'a'],
    ['a2', 'a'],
  ] as const;
  test('if a provider of a balanced group stands for another of it', () => {
    assert.deepEqual(compared('a1! a1! b', 'a2! a1! b', group), []);
    assert.deepEqual(compared('a1', 'a2', group), []);
    assert.notDeepEqual(compared('a1! a1! b', 'a2! b', group), []);
    assert.notDeepEqual(compared('a1', 'b', group), []);
  });
});

describe('A difference', () => {
  const cases: readonly (readonly [string, string, string])[] = [
    [
      'a! a! a! a! b',
      'a! a! b! b! b! b',
      'a answers 500: the chain retries 3 times and goes to b; the gateway called a 2 times and b 4 times.',
    ],
    ['a! b', 'a! c', 'a answers 500: the chain does not retry and goes to b; the gateway called a once and c once.'],
    ['a! b', 'a!', 'a answers 500: the chain does not retry and goes to b; the gateway called a once and ended with an error.'],
    ['a!', 'a! b', 'a answers 500: the chain does not retry and ends with an error; the gateway called a once and b once, and b answered.'],
    ['a', 'a b', 'a answers: the chain ends there; the gateway called a once and b once.'],
    ['a', '', 'At the start: the chain calls a; the gateway called nobody and ended with an error.'],
    ['a! b', 'b', 'At the start: the chain calls a; the gateway called b once.'],
    ['a! a', 'a! b', 'a answers 500: the chain retries once and is served by a; the gateway called a once and b once.'],
  ];
  for (const [expected, actual, sentence] of cases) {
    test(`is a sentence: ${sentence}`, () => {
      assert.deepEqual(
        compared(expected, actual).map((difference) => difference.sentence),
        [sentence],
      );
    });
  }

  test('has its provider, its condition, and both courses from there', () => {
    const [difference] = compared('a! b! b! c', 'a! b! c');
    const { sentence, ...fields } = difference!;
    assert.deepEqual(fields, {
      provider: 'b',
      condition: 'server_error',
      kind: 'calls',
      stream: false,
      second: null,
      status_code: 500,
      expected: {
        calls: [
          { provider: 'b', calls: 2 },
          { provider: 'c', calls: 1 },
        ],
        served_by: 'c',
      },
      actual: {
        calls: [
          { provider: 'b', calls: 1 },
          { provider: 'c', calls: 1 },
        ],
        served_by: 'c',
      },
      prompts: 1,
      first_index: 0,
    });
    assert.match(sentence, /^b answers 500/);
  });

  test('is one for each provider, if several are not called as often', () => {
    assert.deepEqual(
      compared('a! b! c', 'a! a! b! b! c').map(({ provider }) => provider),
      ['a', 'b'],
    );
  });

  test('of several prompts is one, with their number', () => {
    const differences = new Differences();
    for (const index of [4, 2, 7]) differences.compare(index, calls('a! b'), calls('a!'), () => 500);
    differences.compare(1, calls('a'), calls('b'), () => null);
    assert.deepEqual(
      differences.items.map(({ prompts, first_index }) => [prompts, first_index]),
      [
        [3, 2],
        [1, 1],
      ],
    );
  });
});
