import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import type { RuleRequest } from '../../../src/fallback/model/chain.ts';
import { conditions } from '../../../src/fallback/model/chain.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { canFailWith, traitsOf } from '../../../src/fallback/rules/conditions.ts';
import { createEngine, matchingRule } from '../../../src/fallback/rules/engine.ts';
import { warningsOf } from '../../../src/fallback/rules/warnings.ts';
import { chainArbitrary, chainOf, requestOf } from './chains.ts';

/** The warnings of a chain as code and field, without those that nearly all small chains have. */
function warned(count: number, rules: RuleRequest[], provider = {}): string[] {
  return warningsOf(chainOf(count, rules, provider))
    .filter(({ code }) => code !== 'no_rule' && code !== 'slow_worst_case')
    .map(({ code, field }) => `${code} ${field}`);
}

const all: RuleRequest = { condition: 'any', action: 'failover' };

describe('Warnings of a chain', () => {
  test('name a rule that can never apply, and the rules that decide before it [F11]', () => {
    const rules: RuleRequest[] = [
      { condition: 'rate_limit', action: 'retry' },
      { condition: 'rate_limit', action: 'fail' },
      { condition: 'server_error', action: 'fail', status_codes: [429] },
      all,
    ];
    assert.deepEqual(warned(2, rules), ['shadowed_rule fallback_rules.1', 'impossible_rule fallback_rules.2.status_codes']);
    assert.match(warningsOf(chainOf(2, rules)).find(({ code }) => code === 'shadowed_rule')!.detail, /fallback_rules\.0 always decides/);
  });

  test('name a provider that no prompt can reach, and the rules for it alone', () => {
    const rules: RuleRequest[] = [
      { condition: 'any', action: 'fail', providers: ['a'] },
      { condition: 'any', action: 'failover', providers: ['b'] },
    ];
    assert.deepEqual(warned(2, rules), ['unreachable_provider providers.1', 'shadowed_rule fallback_rules.1']);
  });

  test('name equal priorities, a chain without a backup, and one on a single host [F1]', () => {
    const request = requestOf(2, [all]);
    for (const provider of request.providers) provider.priority = 3;
    assert.deepEqual(
      warningsOf(define(request)).map(({ code, field }) => [code, field]),
      [['priority_tie', 'providers.1.priority']],
    );
    assert.deepEqual(warned(1, [all]), ['no_backup providers']);
    assert.deepEqual(warned(2, [all], { api_base: 'https://one.example.com/v1' }), ['shared_host providers']);
  });

  test('name unused fields of an action, and retries that are zero or useless [F11]', () => {
    assert.deepEqual(warned(2, [{ ...all, max_retries: 3, wait_ms: 5 }]), [
      'unused_field fallback_rules.0.max_retries',
      'unused_field fallback_rules.0.wait_ms',
    ]);
    assert.deepEqual(warned(2, [{ condition: 'any', action: 'retry', max_retries: 0 }]), ['no_retries fallback_rules.0.max_retries']);
    assert.deepEqual(warned(2, [{ condition: 'auth_error', action: 'retry' }]), ['hopeless_retry fallback_rules.0.action']);
    assert.deepEqual(warned(2, [{ condition: 'any', action: 'retry', wait_ms: 10, max_wait_ms: 5 }]), [
      'wait_cut fallback_rules.0.wait_ms',
    ]);
  });

  test('name a provider that cannot be called, an unknown kind, a key that is never sent or would be sent unencrypted', () => {
    assert.deepEqual(warned(1, [all], { api_base: null, provider: 'antropic' }), [
      'unknown_kind providers.0.provider',
      'no_address providers.0.api_base',
      'no_backup providers',
    ]);
    assert.deepEqual(warned(1, [all], { api_key_env: 'SERVICE_API_KEYS' })[0], 'own_variable providers.0.api_key_env');
    assert.deepEqual(warned(1, [all], { api_key_env: 'K', api_base: 'http://10.0.0.1/v1' })[0], 'plain_http providers.0.api_base');
    assert.deepEqual(warned(1, [all], { api_key_env: 'K', api_base: 'http://127.0.0.1:1/v1' }), ['no_backup providers']);
  });

  test('are one for all providers of which the same is true', () => {
    const providers = Array.from({ length: 22 }, (_, index) => ({ name: `p${index}`, model_id: `openai/m${index}` }));
    const found = warningsOf(define({ name: 'many', providers })).filter(({ code }) => code === 'no_key');
    assert.deepEqual(
      found.map(({ field, detail }) => [field, detail]),
      [
        [
          'providers.0.api_key_env',
          'Without api_key_env, calls of p0, p1, p2, p3 and 18 other providers have no key; the usual variable of openai is OPENAI_API_KEY.',
        ],
      ],
    );
  });

  test('name common conditions without a rule, and a slow worst case', () => {
    const found = warningsOf(chainOf(2, [{ condition: 'timeout', action: 'retry', max_retries: 10 }]));
    assert.deepEqual(
      found.map(({ code }) => code),
      ['no_rule', 'slow_worst_case'],
    );
    assert.match(
      found[0]!.detail,
      /^There is no rule for rate_limit, server_error and connection_error; the next provider is tried at once\.$/,
    );
    assert.match(found[1]!.detail, /^One prompt can take up to 14 min 20 s and 22 attempts;/);
    const alone = warningsOf(chainOf(1, [], { timeout_ms: 460_000 })).map(({ detail }) => detail);
    assert.match(alone[1]!, /; the prompt fails\.$/);
    assert.match(alone[2]!, /^One prompt can take up to 7 min 40 s and 1 attempt;/);
    assert.deepEqual(warningsOf(chainOf(2, [all])), []);
  });

  test('name limits of streams without effect, rules for late content without a limit, and answers that are sent twice [F132]', () => {
    const found = (rules: RuleRequest[], provider: object = {}) =>
      warningsOf(chainOf(2, [{ condition: 'any', action: 'failover' }, ...rules], provider)).map(({ code, field }) => [code, field]);
    assert.deepEqual(found([{ condition: 'first_token_timeout', action: 'fail' }]), [['impossible_rule', 'fallback_rules.1.condition']]);
    assert.deepEqual(found([{ condition: 'first_token_timeout', action: 'fail' }], { first_token_ms: 900 }), []);
    assert.deepEqual(found([], { timeout_ms: 900, first_token_ms: 900 }), [['unused_field', 'providers.0.first_token_ms']]);
    assert.deepEqual(found([{ condition: 'interrupted', action: 'failover' }]), [['sent_twice', 'fallback_rules.1.action']]);
  });

  test('call a rule shadowed exactly when it decides no failure of a reachable provider [F11]', () => {
    fc.assert(
      fc.property(chainArbitrary, (chain) => {
        const engine = createEngine(chain);
        const found = warningsOf(chain, engine);
        const indexes = (code: string) => found.flatMap((one) => (one.code === code ? [Number(/\.(\d+)/.exec(one.field!)![1])] : []));
        const dead = [...indexes('shadowed_rule'), ...indexes('impossible_rule')].sort((one, other) => one - other);
        const out = indexes('unreachable_provider');
        const alive = new Set(
          [...chain.providers.keys()]
            .filter((provider) => !out.includes(provider))
            .flatMap((provider) =>
              conditions
                .filter((condition) => canFailWith(chain.providers[provider]!, condition))
                .flatMap((condition) =>
                  traitsOf[condition].statuses.map((status_code) => matchingRule(engine, provider, { condition, status_code })),
                ),
            ),
        );
        assert.deepEqual(
          dead,
          [...chain.fallback_rules.keys()].filter((rule) => !alive.has(rule)),
        );
      }),
    );
  });
});
