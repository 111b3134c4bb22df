import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, describe, test } from 'node:test';

import type { ChainDefinition, ChainRequest } from '../src/fallback/model/chain.ts';
import { chainOf, exported, hangs, nameOf } from './chains.ts';
import { type Behaviour, startFakes, type WayName, ways } from './fakes.ts';
import { startGateway } from './portkey.ts';
import { simulate } from './simulation.ts';

const fakes = await startFakes(3);
const gateway = await startGateway();
after(async () => {
  gateway.stop();
  await fakes.stop();
});

/** Sends a prompt through the gateway with an exported configuration, into which it inserts the keys. */
async function send(content: string): Promise<{ status: number; served: number | null; text: string }> {
  const config = JSON.stringify(JSON.parse(content)).replaceAll(/\$\{\w+\}/g, 'fake');
  const response = await fetch(`http://127.0.0.1:${gateway.port}/v1/chat/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-portkey-config': config },
    body: JSON.stringify({ messages: [{ role: 'user', content: 'Say OK.' }], max_tokens: 16 }),
  });
  const text = await response.text();
  if (response.status !== 200) return { status: response.status, served: null, text };
  const { choices } = JSON.parse(text) as { choices: { message: { content: string } }[] };
  return { status: 200, served: Number(choices[0]!.message.content.slice(1)), text };
}

/** Portkey's own waits, so that its retries match the chain's. */
const waits = { wait_ms: 1000, respect_retry_after: false } as const;

/** Failures that share a status with others or have 200: the export warns about them; they are tested separately below. */
const hidden: WayName[] = ['too_long', 'unsupported', 'wrong_path', 'held_back', 'empty', 'broken'];
const seen = (Object.keys(ways) as WayName[]).filter((way) => !hidden.includes(way));

const each = seen.flatMap((way): Behaviour[][] => [[{ way }, undefined, undefined]]);
const deeper: Behaviour[][] = [
  [undefined, undefined, undefined],
  [{ way: 'server_error' }, { way: 'overloaded' }, undefined],
  [{ way: 'hang' }, { way: 'reset' }, undefined],
  [{ way: 'unauthorized' }, { way: 'bad_request' }, undefined],
  [{ way: 'server_error' }, { way: 'unavailable' }, { way: 'rate_limit' }],
];

const suites: { name: string; rules: NonNullable<ChainRequest['fallback_rules']>; scenes: Behaviour[][] }[] = [
  { name: 'the defaults', rules: [], scenes: [...each, ...deeper] },
  {
    name: 'retries of one condition',
    rules: [
      { condition: 'rate_limit', action: 'retry', max_retries: 1, ...waits },
      { condition: 'timeout', action: 'failover' },
    ],
    scenes: [
      [{ way: 'rate_limit' }, undefined, undefined],
      [{ way: 'rate_limit', times: 1 }, undefined, undefined],
      [{ way: 'hang' }, undefined, undefined],
      [{ way: 'rate_limit' }, { way: 'overloaded' }, undefined],
      [{ way: 'unauthorized' }, undefined, undefined],
    ],
  },
  { name: 'any failure fails over', rules: [{ condition: 'any', action: 'failover' }], scenes: [...each, ...deeper] },
  {
    name: 'a provider with its own rules',
    rules: [
      { condition: 'auth_error', action: 'fail', providers: ['gpt-4o'] },
      { condition: 'timeout', action: 'fail', providers: ['claude'] },
    ],
    scenes: [
      [{ way: 'unauthorized' }, undefined, undefined],
      [{ way: 'server_error' }, { way: 'unauthorized' }, undefined],
      [{ way: 'rate_limit' }, { way: 'gateway_timeout' }, undefined],
      [{ way: 'gateway_timeout' }, { way: 'hang' }, undefined],
    ],
  },
];

describe("Portkey's gateway behaves like the simulation", () => {
  for (const { name, rules, scenes } of suites) {
    test(name, async () => {
      for (const behaviours of scenes) {
        const chain = chainOf(fakes, rules, { hanging: hangs(behaviours) });
        const { content } = exported(chain, 'portkey');
        const expected = await simulate(chain, behaviours);
        fakes.play(behaviours);
        const { served, text } = await send(content);
        assert.deepEqual({ calls: fakes.calls(), served }, expected, `${nameOf(behaviours)}: ${text}`);
      }
    });
  }
});

describe('If it behaves differently, the export has a warning', () => {
  const chain = (): ChainDefinition =>
    chainOf(fakes, [
      { condition: 'rate_limit', action: 'retry', max_retries: 1, ...waits },
      { condition: 'content_filter', action: 'failover' },
    ]);
  const cases: { behaviour: Behaviour; code: string; calls: number[] }[] = [
    { behaviour: { way: 'too_long' }, code: 'same_status', calls: [1, 0, 0] },
    { behaviour: { way: 'held_back' }, code: 'content_filter', calls: [1, 0, 0] },
    { behaviour: { way: 'empty' }, code: 'invalid_response', calls: [1, 0, 0] },
    { behaviour: { way: 'broken' }, code: 'invalid_response', calls: [1, 0, 0] },
    { behaviour: { way: 'reset' }, code: 'connection_retries', calls: [2, 1, 0] },
  ];
  for (const { behaviour, code, calls } of cases) {
    test(`${behaviour!.way}: ${code}`, async () => {
      const definition = chain();
      const behaviours = [behaviour, undefined, undefined];
      const { content, warnings, lossless } = exported(definition, 'portkey');
      fakes.play(behaviours);
      await send(content);
      assert.deepEqual(fakes.calls(), calls);
      assert.notDeepEqual((await simulate(definition, behaviours)).calls, calls);
      assert.ok(warnings.some((warning) => warning.code === code));
      assert.equal(lossless, false);
    });
  }
});

test('the gateway listens only on loopback', async () => {
  const hex = gateway.port.toString(16).toUpperCase().padStart(4, '0');
  const listening = ['tcp', 'tcp6']
    .flatMap((table) => readFileSync(`/proc/net/${table}`, 'utf8').split('\n').slice(1))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local = '', , state]) => local.endsWith(`:${hex}`) && state === '0A')
    .map(([, local]) => local);
  assert.deepEqual(listening, [`0100007F:${hex}`]);
});

test('the gateway refuses an invalid configuration', async () => {
  const { status } = await send('{"strategy":{"mode":"sideways"},"targets":[]}');
  assert.equal(status, 400);
});
