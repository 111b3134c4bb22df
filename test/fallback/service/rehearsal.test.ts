import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Attempt } from '../../../src/fallback/model/test.ts';
import type { CallResult } from '../../../src/fallback/providers/transport.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { marked } from '../../../src/fallback/rules/rehearsal.ts';
import { problemOf } from '../../../src/fallback/service/gateway.ts';
import { Rehearsal } from '../../../src/fallback/service/rehearsal.ts';
import { threeProviders } from '../../support/chains.ts';

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
  assert.equal(
    problemOf(late, [called], 30_000, false),
    'The gateway had not answered after 30 s, and the rehearsal ended the prompt; what it would have done then is unknown.',
  );
  assert.equal(problemOf(late, [], 30_000, false), 'The gateway called nobody and did not answer in time.');
  assert.equal(problemOf({ ...late, status_code: 504 } as CallResult, [called], 30_000, false), undefined);
});
