import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { chainExample } from '../../../src/fallback/model/chain.ts';
import { changed, draftOf, moved, removalNotes, requestOf, withoutProvider, withProviders } from '../../../src/fallback/web/edit/draft.ts';

const [first, second] = chainExample.providers as [(typeof chainExample.providers)[0], (typeof chainExample.providers)[0]];
const chain = {
  ...chainExample,
  providers: [first, second],
  fallback_rules: [
    { ...chainExample.fallback_rules[0]!, providers: [first.name] },
    { ...chainExample.fallback_rules[0]!, providers: [first.name, second.name] },
    { ...chainExample.fallback_rules[0]!, providers: null },
  ],
};

describe('A chain that is edited', () => {
  test('is sent unchanged while nothing is edited', () => {
    const { name, description, providers, fallback_rules } = requestOf(draftOf(chain));
    assert.deepEqual({ name, description }, { name: chain.name, description: chain.description });
    assert.deepEqual(providers, chain.providers);
    assert.deepEqual(
      fallback_rules?.map((rule) => rule.providers),
      [[first.name], [first.name, second.name], null],
    );
  });

  test('has the fields of its cool-downs as texts, and none where all are empty [F125]', () => {
    const cooldown = { allowed_fails: 0, window_ms: 60_000, seconds: 30, conditions: ['timeout' as const] };
    const draft = draftOf({ ...chain, cooldown, providers: [first, { ...second, cooldown: { ...cooldown, conditions: null } }] });
    const sent = requestOf(draft);
    assert.deepEqual([sent.cooldown, sent.providers.map((one) => one.cooldown)], [cooldown, [null, { ...cooldown, conditions: null }]]);
    assert.equal(draft.cooldown.allowed_fails, '0');
    assert.equal(requestOf({ ...draft, cooldown: { allowed_fails: '', window_ms: ' ', seconds: '', conditions: [] } }).cooldown, null);
    assert.deepEqual(requestOf({ ...draft, cooldown: { ...draft.cooldown, seconds: 'x' } }).cooldown, { ...cooldown, seconds: 'x' });
  });

  test('keeps its rules attached to a provider that is renamed', () => {
    let draft = draftOf(chain);
    for (const name of ['', 'n', 'ne', 'new ']) {
      draft = { ...draft, providers: changed(draft.providers, draft.providers[0]!.key, { name }) };
    }
    assert.deepEqual(
      requestOf(draft).fallback_rules?.map((rule) => rule.providers),
      [['new'], ['new', second.name], null],
    );
  });

  test('loses the rules for a single removed provider; rules for others or for all stay', () => {
    const draft = draftOf(chain);
    assert.deepEqual(
      requestOf(withoutProvider(draft, draft.providers[0]!.key)).fallback_rules?.map((rule) => rule.providers),
      [[second.name], null],
    );
  });

  test('says what becomes of rules that led to a removed provider [F115]', () => {
    const providers = [...chain.providers, { ...second, name: 'third' }];
    const failover = { ...chainExample.fallback_rules[0]!, action: 'failover' as const, providers: null };
    const draft = draftOf({
      ...chain,
      providers,
      fallback_rules: [
        { ...failover, providers: [second.name] },
        { ...failover, to: [second.name] },
        { ...failover, to: ['third', second.name] },
        { ...failover, to: ['third'] },
      ],
    });
    const [one, two] = draft.providers;
    assert.deepEqual(removalNotes(draft, two!.key), [
      `1 rule for ${second.name} alone was also removed.`,
      `Rule 1 led to ${second.name} alone; it now goes on in the order of the chain.`,
      `Rule 2 no longer leads to ${second.name}, only to third.`,
    ]);
    assert.deepEqual(removalNotes(draft, one!.key), []);
    assert.deepEqual(
      requestOf(withoutProvider(draft, two!.key)).fallback_rules?.map(({ to }) => to),
      [null, ['third'], ['third']],
    );
  });

  test('uses the positions of its providers as their priorities once they are reordered', () => {
    const draft = draftOf({ ...chain, providers: chain.providers.map((provider, index) => ({ ...provider, priority: index * 10 })) });
    assert.deepEqual(
      requestOf(draft).providers.map(({ priority }) => priority),
      [0, 10],
    );
    assert.deepEqual(
      requestOf(withProviders(draft, moved(draft.providers, 0, 1))).providers.map(({ name, priority }) => [name, priority]),
      [
        [second.name, 0],
        [first.name, 1],
      ],
    );
  });
});
