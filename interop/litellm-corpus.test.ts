import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';

import { corpusOf, scenes, startInternet, unexplained } from './corpus.ts';
import { startLitellm } from './litellm.ts';

const files = corpusOf('litellm');
const internet = await startInternet();
const keys = [
  ...new Set(files.flatMap(({ text, exported }) => [...`${text}${exported}`.matchAll(/os\.environ\/(\w+)/g)].map(([, key]) => key!))),
];
const litellm = await startLitellm({ origin: internet.origin, keys });
after(async () => {
  litellm.stop();
  await internet.stop();
});

describe('A file that was imported and exported again makes the calls that it made before, except for what the findings say', () => {
  for (const file of files) {
    test(file.name, { timeout: 60_000 }, async () => {
      const runs = [];
      for (const scene of scenes) {
        const before = internet.play(scene);
        const first = await litellm.ask(file.text, file.chain.name);
        const after = internet.play(scene);
        const second = await litellm.ask(file.exported, file.chain.name);
        for (const { error } of [first, second]) {
          if (scene.way === null) assert.equal(error, null);
          assert.doesNotMatch(error ?? '', /^no answer/);
        }
        runs.push({ scene, before: internet.calls(before), after: internet.calls(after) });
      }
      assert.deepEqual(unexplained(file, runs), []);
    });
  }
});
