import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { parse } from 'yaml';

import { withoutComments } from './corpus.ts';
import { isFull, isNewest, litellmFolder } from './extent.ts';
import { problemOf, programs, rehearsedFiles, rehearseFile } from './files.ts';

const path = (name: string) => new URL(name, import.meta.url).pathname;
const { litellm, portkey } = programs;

interface Ended {
  code: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into the parts of a result.
  result: any;
  errors: string;
}

/** Runs `fallback-service rehearse`. */
function run(...args: string[]): Promise<{ code: number; stdout: string; errors: string }> {
  return new Promise((resolve) => {
    const words = [path('../bin/fallback-service.js'), 'rehearse', ...args];
    execFile(process.execPath, words, { maxBuffer: 64 * 1024 * 1024 }, (error, stdout, errors) =>
      resolve({ code: error === null ? 0 : Number(error.code), stdout, errors }),
    );
  });
}

/** Runs it with the JSON of its result. */
async function rehearse(...args: string[]): Promise<Ended> {
  const { stdout, ...ended } = await run('--json', ...args);
  return { ...ended, result: stdout === '' ? undefined : JSON.parse(stdout) };
}

async function written(t: TestContext, name: string, text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'interop-rehearsal-'));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, name);
  await writeFile(file, text);
  return file;
}

/** Each scene agrees, or a finding explains the difference. */
function assertTrue({ code, result, errors }: Ended): void {
  assert.ok(result !== undefined, errors);
  const sentences = result.differences.map(({ sentence }: { sentence: string }) => sentence);
  assert.ok(code === 0 || code === 3, sentences.join('\n') || result.error);
  assert.equal(result.error, null);
  assert.equal(result.agreement.prompts, result.prompt_count);
  assert.ok(result.attempts_total >= result.prompt_count, 'the gateway has called the fake providers');
}

describe("LiteLLM's proxy, started by rehearse, does what the import of its file says", () => {
  const files = isFull ? ['default-fallbacks', 'chain-of-groups', 'content-policy'] : ['chain-of-groups'];
  for (const [name, endpoint] of [...files.map((name) => [name, 'chat'] as const), ['chain-of-groups', 'messages'] as const]) {
    test(`${name}, called by ${endpoint} with tools, whole and streamed`, async (t) => {
      const file = parse(readFileSync(path(`corpus/litellm/${name}.yaml`), 'utf8')) as { model_list: { litellm_params: object }[] };
      // Without a timeout the gateway waits longer than the rehearsal, which then can't tell what it does.
      const model_list = file.model_list.map(({ litellm_params, ...model }) => ({
        ...model,
        litellm_params: { timeout: 5, ...litellm_params },
      }));
      const config = await written(t, 'config.yaml', JSON.stringify({ ...file, model_list }));
      assertTrue(await rehearse('--config', config, '--endpoint', endpoint, '--tools', '--run', litellm));
    });
  }

  const outage = (...more: string[]) => ['--rate', '60', '--outage', ...more, '--run', litellm];
  const deployment = (model_name: string, name = model_name) => ({
    model_name,
    litellm_params: { model: `openai/${name}`, api_key: 'k', timeout: 5 },
    model_info: { display_name: name },
  });
  const settings = { num_retries: 0, fallbacks: [{ a: ['b'] }] };
  const limited = { ...settings, allowed_fails: 0, cooldown_time: 6 };
  const alone = [deployment('a'), deployment('b')];
  const two = [deployment('a', 'a1'), deployment('a', 'a2'), deployment('b')];
  const outages: [string, object, outage: string, code: number][] = [
    ['a model that is alone', { model_list: alone, router_settings: limited }, 'a server_error', 0],
    ['a group of two', { model_list: two, router_settings: limited }, 'a1 server_error', 0],
    // Its own rules are no cool-down of a chain, which the import says. One status 401 is enough for them.
    ['cool-downs by its own rules', { model_list: alone, router_settings: settings }, 'a auth_error', 3],
  ];
  for (const [name, file, failure, expected] of isFull ? outages : outages.slice(0, 1))
    test(`in an outage that lasts, with ${name} [F123]`, async (t) => {
      const config = await written(t, 'config.yaml', JSON.stringify(file));
      const { code, result, errors } = await rehearse('--config', config, ...outage(`${failure} 3-12`, '--for', '25'));
      assert.ok(result !== undefined, errors);
      const sentences = result.differences.map(({ sentence }: { sentence: string }) => sentence);
      assert.equal(code, expected, [...sentences, result.error].join('\n'));
      assert.deepEqual([result.error, result.agreement.not_tested], [null, 0]);
      const outs = result.timeline.seconds.flatMap(({ out }: { out: { provider: string }[] }) => out.map(({ provider }) => provider));
      assert.deepEqual([...new Set(outs)], expected === 3 ? [] : [failure.split(' ')[0]]);
      const kinds = result.differences.map(({ kind }: { kind: string }) => kind);
      assert.deepEqual([...new Set(kinds)], expected === 3 ? ['cooldown'] : []);
    });

  test('a file with a wrong expectation is found out: one retry fewer than its chain', async (t) => {
    const deployment = (name: string) => ({ model_name: name, litellm_params: { model: `openai/${name}`, api_key: 'k', timeout: 5 } });
    const file = { model_list: [deployment('a'), deployment('b')], router_settings: { num_retries: 1, fallbacks: [{ a: ['b'] }] } };
    const config = await written(t, 'config.yaml', JSON.stringify(file));
    // The program gets another number of retries than the file that was imported.
    const wrong = `sh -c "sed -i 's/num_retries: 1/num_retries: 0/' {config} && exec ${litellmFolder}/bin/litellm --config {config} --port {port}"`;
    const { code, result } = await rehearse('--config', config, '--preset', 'primary_down', '--run', wrong);
    assert.equal(code, 1);
    assert.equal(result.verdict, 'differs');
    const named = result.differences.map(({ provider, condition }: { provider: string; condition: string }) => [provider, condition]);
    assert.ok(named.some(([provider, condition]: string[]) => provider === 'a' && condition === 'server_error'));
  });
});

describe('The export of a chain, rehearsed', () => {
  const chain = {
    name: 'production',
    providers: [
      { name: 'gpt-4o', model_id: 'openai/gpt-4o', timeout_ms: 3000 },
      { name: 'claude', model_id: 'anthropic/claude-sonnet-4-5', timeout_ms: 3000 },
      { name: 'llama', model_id: 'llama-3.3-70b', api_base: 'https://llm.example.com/v1', timeout_ms: 3000 },
    ],
    fallback_rules: [
      { condition: 'rate_limit', action: 'retry', max_retries: 2 },
      { condition: 'timeout', action: 'failover' },
    ],
  };
  for (const [name, run] of Object.entries({ litellm, portkey })) {
    test(`with ${name}`, async (t) => {
      assertTrue(await rehearse('--config', await written(t, 'chain.json', JSON.stringify(chain)), '--run', run));
    });
  }
});

describe("Portkey's gateway, started by rehearse, does what the import of its file says", () => {
  for (const name of ['two-providers', 'retries-and-fallback']) {
    test(name, async (t) => {
      const file = JSON.parse(withoutComments(readFileSync(path(`corpus/portkey/${name}.jsonc`), 'utf8'))) as object;
      const text = JSON.stringify({ request_timeout: 5_000, ...file });
      const config = await written(t, 'portkey.json', text);
      assertTrue(await rehearse('--config', config, '--format', 'portkey', '--tools', '--run', portkey));
    });
  }
});

describe("Portkey's gateway leaves out no target in an outage that lasts, which a finding says [F144, F166]", () => {
  const breaker = { failure_threshold: 0, cooldown_interval: 30_000 };
  const target = (model: string) => ({ provider: 'openai', api_key: 'k', override_params: { model } });
  const cooldown = { allowed_fails: 0, window_ms: 30_000, seconds: 30 };
  const model = (name: string) => ({ name, model_id: `openai/${name}`, timeout_ms: 5_000 });
  const files = {
    'its file has a circuit breaker at a target and at the strategy': {
      strategy: { mode: 'fallback', cb_config: breaker },
      request_timeout: 5_000,
      targets: [{ ...target('a'), cb_config: breaker }, target('b')],
    },
    'the chain has a cool-down': { name: 'cooled', providers: [model('a'), model('b')], cooldown },
  };
  for (const [name, file] of Object.entries(files))
    test(name, async (t) => {
      const config = await written(t, 'config.json', JSON.stringify(file));
      const outage = ['--rate', '60', '--outage', 'a server_error 1-3', '--for', '6'];
      const { code, result, errors } = await rehearse('--config', config, '--format', 'portkey', ...outage, '--run', portkey);
      assert.equal(code, 3, errors);
      const said = result.differences.map(({ kind, provider }: { kind: string; provider: string }) => `${kind} ${provider}`);
      assert.deepEqual([...new Set(said)], ['cooldown a']);
      // It called the target in each second, also behind the failures.
      const called = result.timeline.seconds.map(({ calls }: { calls: { provider: string }[] }) => calls[0]?.provider);
      assert.deepEqual(called, ['a', 'a', 'a', 'a', 'a', 'a']);
    });
});

describe('A small file ends as it should', () => {
  for (const file of rehearsedFiles.filter(({ inCi }) => inCi))
    test(file.file, async () => {
      const ended = await rehearseFile(file, programs[file.program]);
      assert.equal(problemOf(file, ended), null, ended.output);
    });

  if (isFull)
    test('tags.yaml does not pass if the gateway has lost its fallbacks', async () => {
      const cut = `sh -c "sed -i '/^  fallbacks:/,/- spare/d' {config} && exec ${litellmFolder}/bin/litellm --config {config} --port {port}"`;
      const { code, stdout } = await run('--config', path('small/tags.yaml'), '--run', cut);
      assert.equal(code, 1, stdout);
    });
});

describe('docs/rehearsal.md shows what really happens', () => {
  const document = readFileSync(path('../docs/rehearsal.md'), 'utf8');
  /** The rows of whole answers: of streams, the newest LiteLLM does other things than the pinned one. */
  const wholeRows = (text: string) =>
    text.split('\n').flatMap((line) => {
      const [same, answer = '', ...cells] = line.split(/ {2,}/);
      return ['both', 'whole'].includes(answer) ? [[same, ...cells]] : [];
    });
  const shown = [...document.matchAll(/```text\n([^`]*)\n```/g)].map(([, text]) => text);
  for (const [index, [file, args, code]] of (
    [
      ['config.yaml', ['--run', litellm], 3],
      ['chain.json', ['--no-stream', '--run', portkey], 3],
    ] as const
  ).entries()) {
    test(file, async () => {
      const ended = await run('--config', path(`../examples/rehearsal/${file}`), ...args);
      assert.equal(ended.code, code, ended.errors);
      // Which of its scenes a busy gateway is too slow for is no matter of what it does.
      const output = ended.stdout.trimEnd().replace(/^.* agreed only when sent again\.\n/m, '');
      if (isNewest && file === 'config.yaml') assert.deepEqual(wholeRows(output), wholeRows(shown[index]!));
      else assert.equal(output, shown[index]);
    });
  }

  test('portkey.json', async () => {
    const { code, result, errors } = await rehearse('--config', path('../examples/rehearsal/portkey.json'), '--run', portkey);
    assert.equal(code, 0, errors);
    assert.match(document, new RegExp(`all ${result.agreement.prompts} scenes agree`));
  });
});
