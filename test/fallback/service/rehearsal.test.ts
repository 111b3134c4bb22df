import assert from 'node:assert/strict';
import { test } from 'node:test';

import { define } from '../../../src/fallback/rules/chain.ts';
import { createEngine } from '../../../src/fallback/rules/engine.ts';
import { marked } from '../../../src/fallback/rules/rehearsal.ts';
import { Rehearsal } from '../../../src/fallback/service/rehearsal.ts';
import { threeProviders } from '../../support/chains.ts';

const mark = '0123456789abcdef';
const body = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: marked('Say OK.', mark) }] });
const scene = { name: 'healthy', faults: [], expects: 'served' as const };

/** A rehearsal with one open prompt, and a function that makes calls of it. */
function begun() {
  const rehearsal = new Rehearsal(createEngine(define(threeProviders)), () => 0);
  rehearsal.begin(mark, { index: 0, scene, seed: 1 });
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
