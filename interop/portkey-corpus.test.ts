import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';

import { portkeyKinds } from '../src/fallback/rules/kind-lists.ts';
import { type Calls, corpusOf, type Scene, scenes, startInternet, unexplained, withoutComments } from './corpus.ts';
import { startGateway } from './portkey.ts';

const internet = await startInternet();
const gateway = await startGateway(internet.origin);
after(async () => {
  gateway.stop();
  await internet.stop();
});

/** What Portkey keeps behind virtual keys and slugs, which only its hosted gateway knows. */
const vault: Readonly<Record<string, object>> = {
  'openai-prod': { provider: 'openai', api_key: 'vault' },
  'anthropic-prod': { provider: 'anthropic', api_key: 'vault' },
  'groq-prod': { provider: 'groq', api_key: 'vault' },
};

/** A configuration as the hosted gateway sees it, with keys that name the run. */
function unlocked(text: string, run: number): string {
  return JSON.stringify(JSON.parse(withoutComments(text)), (_, value: unknown) => {
    if (typeof value !== 'object' || value === null) return value;
    const { virtual_key, provider, ...target } = value as { virtual_key?: string; provider?: string };
    const slug = virtual_key ?? (provider?.startsWith('@') ? provider : undefined);
    return slug === undefined ? value : { ...vault[slug.replace('@', '')], ...target };
  })
    .replaceAll(/\$\{(\w+)\}/g, `$1.run${run}`)
    .replaceAll('"vault"', `"vault.run${run}"`);
}

async function callsOf(text: string, scene: Scene): Promise<Calls> {
  const run = internet.play(scene);
  const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-portkey-config': unlocked(text, run) },
    body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Say OK.' }], max_tokens: 16 }),
  });
  const answer = await response.text();
  if (scene.way === null) assert.equal(response.status, 200, answer);
  return internet.calls(run);
}

describe('A file that was imported and exported again makes the calls that it made before, except for what the findings say', () => {
  for (const file of corpusOf('portkey')) {
    test(file.name, async () => {
      const runs = await Promise.all(
        scenes.map(async (scene) => {
          const [before, after] = await Promise.all([callsOf(file.text, scene), callsOf(file.exported, scene)]);
          return { scene, before, after };
        }),
      );
      assert.deepEqual(unexplained(file, runs), []);
    });
  }
});

/** The accepted values of `provider` in the gateway, whose minified program has them as one list of constants. */
function providersOfGateway(): string[] {
  const program = readFileSync(new URL('node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url), 'utf8');
  const lists = [...program.matchAll(/=\[((?:"[\w-]+"|[\w$]+)(?:,(?:"[\w-]+"|[\w$]+)){60,})\]/g)];
  const list = lists.find(([, members]) => members!.includes('"milvus"'))!;
  const before = program.slice(0, list.index);
  return list[1]!.split(',').map((member) => {
    if (member.startsWith('"')) return member.slice(1, -1);
    const name = member.replaceAll('$', '\\$');
    return [...before.matchAll(new RegExp(`[, ]${name}="([^"]*)"`, 'g'))].at(-1)![1]!;
  });
}

test("the list of Portkey's providers is that of the gateway", () => {
  assert.deepEqual([...portkeyKinds].sort(), [...new Set(providersOfGateway())].sort());
});
