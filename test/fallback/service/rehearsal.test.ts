import assert from 'node:assert/strict';
import { test } from 'node:test';

import { providerDefaults } from '../../../src/fallback/model/chain.ts';
import type { Attempt } from '../../../src/fallback/model/test.ts';
import { instantSimulation } from '../../../src/fallback/providers/simulate.ts';
import type { CallResult } from '../../../src/fallback/providers/transport.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { marked } from '../../../src/fallback/rules/rehearsal.ts';
import { gatewayRun, problemOf } from '../../../src/fallback/service/gateway.ts';
import { Rehearsal } from '../../../src/fallback/service/rehearsal.ts';
import { systemClock } from '../../../src/kit/clock.ts';
import { parseAllowList } from '../../../src/kit/outgoing/addresses.ts';
import { createGuard } from '../../../src/kit/outgoing/guard.ts';
import { Outgoing } from '../../../src/kit/outgoing/outgoing.ts';
import { threeProviders } from '../../support/chains.ts';
import { hanging, startProvider } from '../../support/providers.ts';

const mark = '0123456789abcdef';
const injected = { retry_after_ms: null, latency_ms: null, times: null, from: 0, to: Number.POSITIVE_INFINITY, probability: null };
const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: marked('Say OK.', mark) }] });
const scene = { name: 'healthy', faults: [], expects: 'served' as const };

/** A rehearsal with one open prompt, and a function that makes calls of it. */
function begun() {
  const rehearsal = new Rehearsal(createEngine(define(threeProviders)), () => 0);
  rehearsal.begin(mark, { index: 0, scene, seed: 1, expected: { served_by: null, attempts: [] } });
  const call = (provider: string) => rehearsal.answerCall({ provider, path: 'v1/chat/completions', body }, () => undefined).done();
  return { rehearsal, call };
}

test('A rehearsal keeps at most 10,000 calls of a prompt, and counts the others as stray', () => {
  const { rehearsal, call } = begun();
  for (let index = 0; index < 10_003; index += 1) call('nobody');
  assert.equal(rehearsal.end(mark).length, 10_000);
  assert.equal(rehearsal.figures().agreement.stray_calls, 3);
});

test('Calls after the answer are a difference of their provider, for at most 50 names of providers [F61]', () => {
  const { rehearsal, call } = begun();
  rehearsal.end(mark);
  for (let index = 0; index < 60; index += 1) call(`name ${index}`);
  for (let index = 0; index < 3; index += 1) call('name 0');
  const { agreement, differences } = rehearsal.figures();
  assert.equal(differences.length, 50);
  assert.equal(agreement.stray_calls, 10);
  assert.deepEqual(differences[0]!.actual.calls, [{ provider: 'name 0', calls: 4 }]);
  assert.deepEqual([differences[0]!.prompts, differences[0]!.first_index], [1, 0]);
});

test('What fails is the call of a balanced group, whichever of its providers the gateway draws for it [F102]', () => {
  const engine = createEngine(define(threeProviders));
  const [first, second, third] = engine.chain.providers.map(({ name }) => name) as [string, string, string];
  const fault = { ...injected, provider: 0, condition: 'rate_limit' as const, status_code: 429 };
  const expected = {
    served_by: third,
    attempts: [
      { provider: first, condition: 'rate_limit' as const },
      { provider: second, condition: 'rate_limit' as const },
      { provider: third, condition: null },
    ],
  };
  const twoFail = { name: 'both', faults: [fault, { ...fault, provider: 1 }], expects: 'served' as const };
  const groups = new Map([first, second].map((name) => [name, 'group']));
  for (const drawn of [
    [first, second],
    [second, second],
    [second, first],
  ]) {
    const rehearsal = new Rehearsal(engine, () => 0, { groups });
    rehearsal.begin(mark, { index: 0, scene: twoFail, seed: 1, expected });
    for (const provider of [...drawn, third]) rehearsal.answerCall({ provider, path: 'v1/chat/completions', body }, () => undefined).done();
    const attempts = rehearsal.end(mark);
    assert.deepEqual(
      attempts.map(({ condition }) => condition),
      ['rate_limit', 'rate_limit', null],
    );
    assert.deepEqual(
      rehearsal.compare(0, expected, { attempts, served_by: third, success: true }, () => 429),
      { agrees: true, tested: true },
    );
  }
});

test('A scene in which a call should fail and none does tests nothing, and is counted apart [F102]', () => {
  const rehearsal = new Rehearsal(createEngine(define(threeProviders)), () => 0, {
    groups: new Map([
      ['a', 'group'],
      ['b', 'group'],
    ]),
  });
  const expected = { served_by: 'b', attempts: [{ provider: 'a', condition: 'timeout' as const }] };
  const actual = { served_by: 'b', success: true, attempts: [{ provider: 'b', condition: null }] };
  assert.deepEqual(
    rehearsal.compare(0, expected, actual, () => null),
    { agrees: true, tested: false },
  );
  const { agreeing, differing, not_tested } = rehearsal.figures().agreement;
  assert.deepEqual([agreeing, differing, not_tested], [0, 0, 1]);
});

test('Outages that no call has met test nothing, although other calls were answered or failed for another reason [F122]', () => {
  const engine = createEngine(define(threeProviders));
  const [first, second] = engine.chain.providers.map(({ name }) => name) as [string, string];
  const outage = { provider: second, from_s: 0, to_s: 10, condition: 'server_error' as const };
  const timeline = { rate_per_minute: 60, seconds: 10, outages: [outage] };
  for (const [provider, untested] of [
    [first, 1],
    ['nobody', 1],
    [second, 0],
  ] as const) {
    const rehearsal = new Rehearsal(engine, () => 0, { timeline });
    rehearsal.begin(mark, { index: 0, scene, seed: 1, expected: { served_by: null, attempts: [] } });
    rehearsal.answerCall({ provider, path: 'v1/chat/completions', body }, () => undefined).done();
    rehearsal.count(0, true);
    assert.equal(rehearsal.figures().agreement.not_tested, untested, provider);
  }
});

test('The calls of a prompt and the cool-downs after them have the same times [F123]', () => {
  const engine = createEngine(define({ ...threeProviders, cooldown: { allowed_fails: 0, window_ms: 30_000, seconds: 30 } }));
  const provider = engine.chain.providers[0]!.name;
  const timeline = { rate_per_minute: 60, seconds: 10, outages: [{ provider, from_s: 0, to_s: 10, condition: 'server_error' as const }] };
  let time = 1000;
  // Each reading of the clock is another time.
  const rehearsal = new Rehearsal(engine, () => (time += 7), { timeline });
  const outages = rehearsal.outages!;
  outages.elapsed();
  const start = outages.since(rehearsal.begin(mark, { index: 0, scene, seed: 1, expected: { served_by: null, attempts: [] } }));
  rehearsal.answerCall({ provider, path: 'v1/chat/completions', body }, () => undefined).done();
  const [call] = rehearsal.end(mark);
  assert.deepEqual(
    outages.comparison.outs.map(({ from }) => from),
    [start + call!.start_ms + call!.latency_ms],
  );
});

test('What a rehearsal ends itself is told as its own doing, not as something that the gateway did [F102]', () => {
  const late = { condition: 'timeout', status_code: null, error: 'timeout' } as CallResult;
  const called = { provider: 'a', condition: 'server_error' } as Attempt;
  assert.equal(problemOf(late, [called], false), undefined);
  assert.equal(problemOf(late, [], false), 'The gateway called nobody and did not answer in time.');
  assert.equal(problemOf({ ...late, status_code: 504 } as CallResult, [called], false), undefined);
});

test('A prompt that the rehearsal ends differs, unless the chain ends it at the deadline as well, and what the gateway does with it then is no difference [F150]', async (t) => {
  const engine = createEngine(define(threeProviders));
  const [first, second] = engine.chain.providers.map(({ name }) => name) as [string, string];
  const down = { ...injected, provider: 0, condition: 'timeout' as const, status_code: null };
  const ended = 'had not answered after 100 ms, when the rehearsal ended the prompt';
  for (const [deadlineMs, faults, sentences] of [
    [null, [], [`${first} answers: the chain ends there; the gateway called ${first} once and ${ended}.`]],
    [
      null,
      [down],
      [`${first} does not answer: the chain does not retry and goes to ${second}; the gateway called ${first} once and ${ended}.`],
    ],
    [1000, [down], [`${first} does not answer: the gateway ${ended}.`]],
    [100, [down], []],
    // The chain fails at once, so that its deadline ends nothing.
    [
      100,
      [{ ...down, condition: 'content_filter' as const, status_code: 400 }],
      [`${first} answers 400 (content_filter): the gateway ${ended}.`],
    ],
  ] as const) {
    const rehearsal = new Rehearsal(engine, () => performance.now());
    const call = (provider: string) => rehearsal.answerCall({ provider, path: 'v1/chat/completions', body }, () => undefined);
    // The call is there before the time is over, however slow the machine is.
    const begin = rehearsal.begin.bind(rehearsal);
    rehearsal.begin = (...given) => {
      const began = begin(...given);
      call(first);
      return began;
    };
    const gateway = await startProvider(t, hanging);
    const guard = createGuard({ allow: parseAllowList(['127.0.0.1']), setting: 'ALLOW', plainHttp: true });
    const outgoing = new Outgoing({ guard });
    t.after(() => outgoing.close());
    const provider = { ...providerDefaults, name: 'gateway', model_id: 'm', provider: null, api_base: gateway.base };
    const play = gatewayRun({
      gateway: { provider, key: undefined, headers: {}, timeoutMs: 100 },
      rehearsal,
      live: { outgoing, clock: systemClock, now: () => performance.now() },
      random: (bytes) => void Buffer.from(mark, 'hex').copy(bytes),
      keepsState: true,
    });
    const { signal } = new AbortController();
    const prompt = { engine, transport: instantSimulation, index: 0, prompt: 'Say OK.', seed: 1, signal, callSignal: signal };
    await play({ ...prompt, scene: { ...scene, faults: [...faults] }, deadlineMs });
    call(second);
    const { differences, agreement } = rehearsal.figures();
    assert.deepEqual(
      differences.map(({ sentence }) => sentence),
      sentences,
    );
    assert.equal(agreement.stray_calls, 0);
  }
});
