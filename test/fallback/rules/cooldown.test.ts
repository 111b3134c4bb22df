import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import type { ChainRequest, Condition } from '../../../src/fallback/model/chain.ts';
import { exportFormats } from '../../../src/fallback/model/targets.ts';
import { define, merge } from '../../../src/fallback/rules/chain.ts';
import { afterFailure, emptyMemory, isLeftOut, type Memory } from '../../../src/fallback/rules/cooldown.ts';
import { createEngine, decide, firstPosition } from '../../../src/fallback/rules/engine.ts';
import { routingOf } from '../../../src/fallback/rules/routing.ts';
import { summaryOf } from '../../../src/fallback/rules/summary.ts';
import { exportChain } from '../../../src/fallback/rules/targets/export.ts';
import { importChain } from '../../../src/fallback/rules/targets/import.ts';
import { requestOf, roughWords } from './chains.ts';

const minute = { window_ms: 60_000, seconds: 60 };

/** A chain of two providers with a cool-down. */
const cooling = (cooldown: CooldownWith, more: Partial<ChainRequest> = {}) => define({ ...requestOf(2), cooldown, ...more });
type CooldownWith = NonNullable<ChainRequest['cooldown']>;

/** The memory after failures of the first provider at these times, in milliseconds. */
function remembered(
  cooldown: CooldownWith,
  times: readonly number[],
  condition: Condition = 'server_error',
  retry_after_ms: number | null = null,
) {
  const chain = cooling(cooldown);
  return times.reduce<Memory>(
    (memory, now) => afterFailure(chain, memory, 0, { condition, status_code: 500, retry_after_ms }, now),
    emptyMemory(chain),
  );
}

/** When the first provider is back, in milliseconds; null if it is not left out. */
const backAfter = (...given: Parameters<typeof remembered>) => remembered(...given)[0]!.until;

describe('A cool-down', () => {
  test('begins after more failures than are allowed, and with none allowed after the first [F139]', () => {
    const counts = [0, 1, 3].map((allowed_fails) =>
      [1, 2, 3, 4, 5].map((fails) =>
        backAfter(
          { allowed_fails, ...minute },
          Array.from({ length: fails }, (_, nth) => nth * 1000),
        ),
      ),
    );
    assert.deepEqual(counts, [
      [60_000, 60_000, 60_000, 60_000, 60_000],
      [null, 61_000, 61_000, 61_000, 61_000],
      [null, null, null, 63_000, 63_000],
    ]);
  });

  test('counts within a window that the first failure opens, and anew after the provider is back [F139]', () => {
    const cooldown = { allowed_fails: 1, window_ms: 10_000, seconds: 5 };
    assert.equal(backAfter(cooldown, [0, 10_000]), null);
    assert.equal(backAfter(cooldown, [0, 9_999]), 14_999);
    const back = remembered(cooldown, [0, 1_000, 6_000]);
    assert.deepEqual([isLeftOut(back, 0, 5_999), isLeftOut(back, 0, 6_000)], [true, false]);
    assert.equal(backAfter(cooldown, [0, 1_000, 6_000, 6_500]), 11_500);
  });

  test('lasts as long as Retry-After says, if the failure has one [F139]', () => {
    assert.equal(backAfter({ allowed_fails: 0, ...minute }, [0], 'rate_limit', 7_000), 7_000);
  });

  test('counts failures that are not about the request, or those that are named [F140]', () => {
    const begins = (condition: Condition, conditions?: Condition[]) =>
      backAfter({ allowed_fails: 0, ...minute, ...(conditions && { conditions }) }, [0], condition) !== null;
    const counted: Condition[] = [
      'rate_limit',
      'timeout',
      'server_error',
      'connection_error',
      'auth_error',
      'quota_exceeded',
      'model_not_found',
    ];
    assert.deepEqual(
      counted.map((one) => begins(one)),
      counted.map(() => true),
    );
    const others: Condition[] = ['context_length', 'content_filter', 'unsupported_request', 'invalid_request', 'interrupted'];
    assert.deepEqual(
      others.map((one) => begins(one)),
      others.map(() => false),
    );
    assert.deepEqual([begins('content_filter', ['content_filter']), begins('server_error', ['content_filter'])], [true, false]);
  });

  test('of a provider goes before that of the chain, and the patch of one field keeps the others [F141]', () => {
    const request = requestOf(2);
    request.providers[1]!.cooldown = { allowed_fails: 0, window_ms: 1, seconds: 1 };
    const chain = define({ ...request, cooldown: { allowed_fails: 3, ...minute, conditions: ['timeout'] } });
    assert.deepEqual(
      routingOf(chain).providers.map(({ cooldown }) => cooldown?.allowed_fails),
      [3, 0],
    );
    const patched = merge(chain, { cooldown: { allowed_fails: 1, ...minute } });
    assert.deepEqual(
      [patched.cooldown, patched.providers[1]!.cooldown?.seconds],
      [{ allowed_fails: 1, ...minute, conditions: ['timeout'] }, 1],
    );
    assert.equal(merge(patched, { cooldown: null }).cooldown, null);
  });

  test('lets a prompt begin and go on at the providers that are not left out, and ends retries of one that is [F142]', () => {
    const engine = createEngine(define(requestOf(3, [{ condition: 'server_error', action: 'retry', max_retries: 5 }])));
    const inputs = { random: () => 0, elapsed_ms: 0, deadline_ms: null };
    const failure = { condition: 'server_error', status_code: 500, retry_after_ms: null } as const;
    assert.equal(firstPosition(engine, (one) => one === 0)?.provider, 1);
    assert.equal(
      firstPosition(engine, () => true),
      undefined,
    );
    const position = firstPosition(engine, () => false)!;
    assert.equal(decide(engine, position, failure, inputs).action, 'retry');
    const step = decide(engine, position, failure, { ...inputs, isOut: (one) => one < 2 });
    assert.deepEqual([step.action, position.provider], ['failover', 2]);
    const last = decide(engine, position, failure, { ...inputs, isOut: () => true });
    assert.deepEqual([last.action, last.end], ['fail', 'exhausted']);
  });

  test('is a sentence of the summary [F141]', () => {
    const text = (cooldown: CooldownRequestOrNone) => summaryOf(createEngine(define({ ...requestOf(2), cooldown })), []).text;
    const said = text({ allowed_fails: 3, ...minute });
    assert.match(said, /After more than 3 failures within 60 s, it leaves out a provider for 60 s\./);
    assert.match(
      text({ allowed_fails: 0, ...minute, conditions: ['timeout'] }),
      /After a failure \(timeout\), it leaves out a provider for/,
    );
    assert.doesNotMatch(said, roughWords);
    assert.doesNotMatch(text(null), /leaves out/);
  });
});

type CooldownRequestOrNone = CooldownWith | null;

describe('Cool-downs of other programs', () => {
  const litellm = (router_settings: object, groups = ['a', 'b']) =>
    importChain({
      format: 'litellm',
      value: {
        model_list: groups.map((model_name) => ({
          model_name,
          litellm_params: { model: `openai/${model_name}`, api_key: 'os.environ/K' },
        })),
        router_settings: { num_retries: 0, fallbacks: [{ a: ['b'] }], ...router_settings },
      },
    });
  const cooldownIn = ({ request }: { request: unknown }) => define(request as ChainRequest).cooldown;

  test('are read from LiteLLM: allowed_fails with cooldown_time, and one count of a policy [F143]', () => {
    assert.deepEqual(cooldownIn(litellm({ allowed_fails: 1, cooldown_time: 30 })), {
      allowed_fails: 1,
      window_ms: 30_000,
      seconds: 30,
      conditions: null,
    });
    assert.equal(cooldownIn(litellm({ allowed_fails: 0 }))?.seconds, 5);
    const policy = litellm({ allowed_fails: 4, allowed_fails_policy: { RateLimitErrorAllowedFails: 0 } });
    assert.deepEqual([cooldownIn(policy)?.allowed_fails, cooldownIn(policy)?.conditions], [0, ['rate_limit']]);
    assert.ok(policy.findings.some(({ field, loss }) => loss && field === 'router_settings.allowed_fails_policy'));
  });

  test('that LiteLLM decides by its own rules are a finding and no cool-down [F143]', () => {
    for (const settings of [{}, { allowed_fails: 3 }, { cooldown_time: 9 }]) {
      const made = litellm(settings);
      assert.equal(cooldownIn(made), null);
      assert.ok(made.findings.some(({ kind, loss, detail }) => kind === 'cooldowns' && loss && detail.includes('more than half of')));
    }
    const off = litellm({ allowed_fails: 1, disable_cooldowns: true });
    assert.deepEqual([cooldownIn(off), off.findings.some(({ kind }) => kind === 'cooldowns')], [null, false]);
  });

  test("are read from Portkey's circuit breaker, with what a chain has not as findings [F144]", () => {
    const value = {
      strategy: { mode: 'fallback', cb_config: { failure_threshold: 2, cooldown_interval: 45_000, minimum_requests: 10 } },
      targets: ['a', 'b'].map((name) => ({ provider: 'openai', api_key: '$K', override_params: { model: name } })),
    };
    const made = importChain({ format: 'portkey', value });
    const { allowed_fails, window_ms, seconds, conditions } = cooldownIn(made)!;
    assert.deepEqual([allowed_fails, window_ms, seconds], [2, 45_000, 45]);
    assert.ok(conditions?.includes('server_error') && !conditions.includes('rate_limit'));
    assert.ok(made.findings.some(({ detail, loss }) => loss && detail.includes('does not read it')));
    const shares = { ...value, strategy: { mode: 'fallback', cb_config: { failure_threshold_percentage: 20 } } };
    const unread = importChain({ format: 'portkey', value: shares });
    assert.equal(cooldownIn(unread), null);
    assert.ok(unread.findings.some(({ detail, loss }) => loss && detail.startsWith('strategy.cb_config.failure_threshold_percentage')));
  });

  test('are in exports for LiteLLM, and a loss in those that have none [F145]', () => {
    const made = (format: (typeof exportFormats)[number], cooldown: CooldownWith) => {
      const chain = cooling(cooldown, { providers: requestOf(2, [], { provider: 'openai', api_key_env: 'K' }).providers });
      const { config, warnings } = exportChain(format, { chain, routing: routingOf(chain), prefer: 'failover' });
      const settings = (config as { router_settings?: Record<string, unknown> }).router_settings;
      return { settings, losses: warnings.filter(({ loss, detail }) => loss && /cool-?down|allowed failures/i.test(detail)).length };
    };
    const one = made('litellm', { allowed_fails: 1, ...minute });
    assert.deepEqual(
      [one.settings?.allowed_fails, one.settings?.cooldown_time, one.settings?.disable_cooldowns, one.losses],
      [1, 60, undefined, 0],
    );
    const three = made('litellm', { allowed_fails: 3, ...minute });
    assert.deepEqual(three.settings?.allowed_fails_policy, { InternalServerErrorAllowedFails: 3 });
    assert.ok(made('litellm', { allowed_fails: 1, window_ms: 1000, seconds: 60 }).losses > 0);
    assert.ok(made('litellm', { allowed_fails: 1, ...minute, conditions: ['timeout'] }).losses > 0);
    for (const format of exportFormats.filter((one) => !['litellm', 'json', 'yaml'].includes(one)))
      assert.equal(made(format, { allowed_fails: 1, ...minute }).losses, 1, format);
  });
});
