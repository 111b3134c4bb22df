import assert from 'node:assert/strict';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';
import { generateText, streamText } from 'ai';

import type { ChainDefinition } from '../src/fallback/model/chain.ts';
import { chainOf, exported, hangs, nameOf, ruleSets } from './chains.ts';
import { type Behaviour, type Fakes, startFakes, type WayName, ways } from './fakes.ts';
import { simulate } from './simulation.ts';

let files = 0;
const folder = new URL('./generated/', import.meta.url);
mkdirSync(folder, { recursive: true });
const fakes = { langchain: await startFakes(3), 'ai-sdk': await startFakes(3) };
after(async () => {
  rmSync(folder, { recursive: true });
  for (const providers of Object.values(fakes)) await providers.stop();
});
for (const name of ['OPENAI_API_KEY', 'ANTHROPIC_API_KEY', 'LLAMA_API_KEY']) process.env[name] = 'fake';

/** Returns the text of an answer, which is `p` and the provider's index. */
type Ask = () => Promise<string>;

/** Calls the generated code of a format. */
const callers: Record<'langchain' | 'ai-sdk', (module: Record<string, unknown>) => Ask> = {
  langchain: ({ chain }) => {
    const runnable = chain as { invoke(input: string): Promise<{ content: unknown }> };
    return async () => {
      const { content } = await runnable.invoke('Say OK.');
      return typeof content === 'string' ? content : String((content as { text: string }[])[0]!.text);
    };
  },
  'ai-sdk': ({ chainModel }) => {
    const model = chainModel as () => Parameters<typeof generateText>[0]['model'];
    return async () => (await generateText({ model: model(), prompt: 'Say OK.', maxRetries: 0 })).text;
  },
};

/** Each failure of the first provider: always, on the first call only, and with the second provider failing too. */
const scenes: Behaviour[][] = [
  [undefined, undefined, undefined],
  ...(Object.keys(ways) as WayName[]).flatMap((way): Behaviour[][] => [
    [{ way }, undefined, undefined],
    [{ way, times: 1 }, { way: 'overloaded' }, undefined],
  ]),
  [{ way: 'rate_limit', times: 2 }, undefined, undefined],
  [{ way: 'rate_limit' }, { way: 'overloaded' }, undefined],
  [{ way: 'server_error' }, { way: 'server_error' }, { way: 'server_error' }],
  [{ way: 'hang' }, { way: 'hang' }, { way: 'reset' }],
  [{ way: 'unauthorized' }, { way: 'rate_limit', times: 1 }, { way: 'unavailable', times: 1 }],
];

/** The rules to try with hanging providers; others would only add waits. */
const hangingRules = ['retry rate limits, hand over time-outs', 'by status and by provider'];

for (const format of ['langchain', 'ai-sdk'] as const) {
  describe(`The code for ${format} behaves like the simulation`, () => {
    for (const [name, rules] of Object.entries(ruleSets)) {
      for (const hanging of hangingRules.includes(name) ? [false, true] : [false]) {
        test(hanging ? `${name}, with providers that hang` : name, async () => {
          const chain = chainOf(fakes[format], rules, { hanging });
          const ask = callers[format](await load(exported(chain, format).content));
          for (const behaviours of scenes.filter((scene) => hangs(scene) === hanging)) await compare(chain, behaviours, fakes[format], ask);
        });
      }
    }
  });
}

test('A stream of the AI SDK begins at the provider that the simulation says', async () => {
  const chain = chainOf(fakes['ai-sdk'], ruleSets['retry rate limits, hand over time-outs']!);
  const { chainModel } = (await load(exported(chain, 'ai-sdk').content)) as { chainModel: () => Parameters<typeof streamText>[0]['model'] };
  const streamed: Behaviour[][] = [
    [undefined, undefined, undefined],
    [{ way: 'rate_limit', times: 2 }, undefined, undefined],
    [{ way: 'rate_limit' }, { way: 'overloaded' }, undefined],
  ];
  for (const behaviours of streamed) {
    await compare(chain, behaviours, fakes['ai-sdk'], async () => {
      let text = '';
      for await (const piece of streamText({ model: chainModel(), prompt: 'Say OK.', maxRetries: 0 }).textStream) text += piece;
      return text;
    });
  }
});

/** Loads a module's text. Node loads each file once, so each module needs its own file. */
async function load(content: string): Promise<Record<string, unknown>> {
  files += 1;
  const file = new URL(`chain-${files}.mjs`, folder);
  writeFileSync(file, content);
  return (await import(file.href)) as Record<string, unknown>;
}

async function compare(chain: ChainDefinition, behaviours: readonly Behaviour[], providers: Fakes, ask: Ask): Promise<void> {
  const expected = await simulate(chain, behaviours);
  providers.play(behaviours);
  const served = await ask().then(
    (text) => Number(text.slice(1)),
    () => null,
  );
  assert.deepEqual({ calls: providers.calls(), served }, expected, `${nameOf(behaviours)}: ${JSON.stringify(expected)} is simulated`);
}
