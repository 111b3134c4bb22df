import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { concerns } from '../src/fallback/model/finding.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { reasonsOf } from '../src/fallback/rules/finding-list.ts';
import { litellmKinds } from '../src/fallback/rules/kind-lists.ts';
import { kinds } from '../src/fallback/rules/kinds.ts';
import { chainOf, exported, hangs, nameOf, ruleSets } from './chains.ts';
import { type Behaviour, startFakes, type WayName, ways } from './fakes.ts';
import { startLitellm } from './litellm.ts';
import { simulate } from './simulation.ts';

const fakes = await startFakes(3);
const litellm = await startLitellm();
after(async () => {
  litellm.stop();
  await fakes.stop();
});

const wayNames = Object.keys(ways) as WayName[];
/** Each failure of the first provider, and a few of several ones. */
const scenes: Behaviour[][] = [
  [undefined, undefined, undefined],
  ...wayNames.map((way): Behaviour[] => [{ way }, undefined, undefined]),
  [{ way: 'rate_limit', times: 2 }, { way: 'overloaded' }, undefined],
  [{ way: 'reset', times: 1 }, undefined, undefined],
  [{ way: 'server_error' }, { way: 'server_error' }, { way: 'server_error' }],
  // LiteLLM repeats some calls of claude by itself.
  [{ way: 'rate_limit' }, { way: 'reset' }, undefined],
  // It reads some failures of claude otherwise than those of the first one.
  [{ way: 'server_error' }, { way: 'forbidden' }, undefined],
];

/** The rules to try with hanging providers; others would only add waits. */
const hangingRules = 'retry rate limits, hand over time-outs';

/** Each failure of the second provider, for rules that distinguish providers. */
const secondScenes = wayNames.map((way): Behaviour[] => [{ way: 'server_error' }, { way }, undefined]);

const names = (detail: string, condition: string) => new RegExp(`\\b${condition}\\b`).test(detail);

describe("LiteLLM's proxy behaves like the simulation, except for what the export says", () => {
  for (const [name, rules] of Object.entries(ruleSets)) {
    test(name, async () => {
      const { providers } = chainOf(fakes, rules);
      const { warnings } = exported(chainOf(fakes, rules), 'litellm');
      const reasons = warnings.flatMap((warning) =>
        reasonsOf(
          warning,
          providers.map((provider) => provider.name),
        ),
      );
      const seen = new Set<string>();
      const tried = rules.some((rule) => rule.providers !== undefined) ? [...scenes, ...secondScenes] : scenes;
      for (const behaviours of tried.filter((scene) => name === hangingRules || !hangs(scene))) {
        const chain = chainOf(fakes, rules, { hanging: hangs(behaviours) });
        const expected = await simulate(chain, behaviours);
        fakes.play(behaviours);
        const { answer, error } = await litellm.ask(exported(chain, 'litellm').content, chain.name);
        const served = answer === null || answer === '' ? null : Number(answer.slice(1));
        if (served === expected.served && String(fakes.calls()) === String(expected.calls)) continue;
        // A warning excuses a difference if it is about the failure after which the calls differ: of that provider, or of the one before it.
        const parted = fakes.calls().findIndex((count, index) => count !== expected.calls[index]);
        const failed = behaviours.flatMap((one, index) =>
          one === undefined || (parted !== -1 && (index > parted || index < parted - 1))
            ? []
            : [{ provider: providers[index]!.name, condition: ways[one.way].fault.condition }],
        );
        const said = reasons.filter((reason) => reason.loss && failed.some((one) => concerns(reason, one)));
        assert.notDeepEqual(said, [], `${nameOf(behaviours)}: ${fakes.calls()} and not ${expected.calls}, ${error}`);
        for (const { detail } of said) seen.add(detail);
      }
      const unseen = warnings.filter(
        // Every answer here is whole.
        ({ code, detail }) =>
          code !== 'streams' && Object.values(ways).some(({ fault }) => names(detail, fault.condition!)) && !seen.has(detail),
      );
      assert.deepEqual(unseen, [], 'each warning is true of some failure');
    });
  }
});

test('LiteLLM calls a provider of each kind at its own address', async () => {
  for (const provider of Object.keys(kinds)) {
    const one = { name: 'one', model_id: 'm', provider, api_base: fakes.base(0), api_key_env: 'OPENAI_API_KEY' };
    fakes.play([undefined]);
    const { answer, error } = await litellm.ask(exported(define({ name: 'chain', providers: [one] }), 'litellm').content, 'chain');
    assert.equal(answer, 'p0', `${provider}: ${error}`);
  }
});

test('LiteLLM repeats by itself the calls of which the export says so, and no others', async () => {
  for (const provider of Object.keys(kinds)) {
    const one = { name: 'one', model_id: 'm', provider, api_base: fakes.base(0), api_key_env: 'OPENAI_API_KEY' };
    const { content, warnings } = exported(define({ name: 'chain', providers: [one] }), 'litellm');
    const said = warnings.find(({ code }) => code === 'repeats')?.detail ?? '';
    for (const way of ['reset', 'server_error', 'rate_limit'] as const) {
      fakes.play([{ way }]);
      await litellm.ask(content, 'chain');
      const times = names(said, ways[way].fault.condition!) ? /each call (\d) times/.exec(said)![1] : 1;
      assert.equal(fakes.calls()[0], Number(times), `${provider}: ${way}`);
    }
  }
});

test("the list of LiteLLM's providers is that of the program", () => {
  assert.deepEqual([...litellmKinds].sort(), [...new Set(litellm.providers)].sort());
});
