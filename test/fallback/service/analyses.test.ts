import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { type Chain, chainExample, conditions } from '../../../src/fallback/model/chain.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { Analyses } from '../../../src/fallback/service/analyses.ts';
import { Turns } from '../../../src/kit/turns.ts';
import { countTurns } from '../../support/until.ts';

const revision = (id: string, version = 1): Chain => ({ ...chainExample, id, version });

describe('What is derived of a chain', () => {
  test('is made once for each revision, also for those who ask at the same time [F100]', async () => {
    const analyses = new Analyses(new Turns());
    const [one, same, next] = await Promise.all([revision('a'), revision('a'), revision('a', 2)].map((chain) => analyses.of(chain)));
    assert.equal(one, same);
    assert.notEqual(one, next);
    assert.equal(await analyses.of(revision('a')), one);
    assert.equal(one!.summary(), same!.summary());
  });

  test('is kept for the 200 revisions that were asked for last [F100]', async () => {
    const analyses = new Analyses(new Turns());
    const first = await analyses.of(revision('0'));
    const second = await analyses.of(revision('1'));
    for (let index = 2; index < 200; index += 1) await analyses.of(revision(String(index)));
    assert.equal(await analyses.of(revision('0')), first);
    await analyses.of(revision('200'));
    assert.equal(await analyses.of(revision('0')), first);
    assert.notEqual(await analyses.of(revision('1')), second);
  });

  test('is made in turns, so that others wait for a part of it at most', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `provider-${index}`);
    const definition = define({
      name: 'largest',
      providers: names.map((name) => ({ name, model_id: 'openai/gpt-4o', api_key_env: 'KEY' })),
      fallback_rules: conditions.map((condition, index) => ({
        condition,
        action: 'retry',
        max_retries: index,
        providers: names.slice(index),
      })),
    });
    const analyses = new Analyses(new Turns());
    await countTurns(async (turn) => {
      const summaries = Array.from({ length: 3 }, async (_, index) => {
        const { summary } = await analyses.of({ ...revision(String(index)), ...definition });
        return summary();
      });
      for (const { provider_count } of await Promise.all(summaries)) assert.equal(provider_count, 50);
      // Each of the three takes one turn for its routing, one for each of nine formats, and one for its sentences.
      assert.ok(turn() >= 33, `${turn()} turns`);
    });
  });
});
