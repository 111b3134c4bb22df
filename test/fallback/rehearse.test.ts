import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type ChainRequest, type Condition, conditions } from '../../src/fallback/model/chain.ts';
import { testExample } from '../../src/fallback/model/test.ts';
import { explained } from '../../src/fallback/rehearse/explain.ts';
import { type OutageOptions, timelineFrom } from '../../src/fallback/rehearse/outages.ts';
import { filledIn, RehearsalError, startProgram, wordsOf } from '../../src/fallback/rehearse/program.ts';
import { exitCodeOf, reportOf } from '../../src/fallback/rehearse/report.ts';
import { define } from '../../src/fallback/rules/chain.ts';
import { routingOf } from '../../src/fallback/rules/routing.ts';
import { exportChain } from '../../src/fallback/rules/targets/export.ts';
import { importChain } from '../../src/fallback/rules/targets/import.ts';
import { redirectFile } from '../../src/fallback/rules/targets/litellm/own-file.ts';
import { redirectFile as redirectPortkey } from '../../src/fallback/rules/targets/portkey/own-file.ts';
import { gateways } from '../../src/fallback/rules/targets/table.ts';
import { temporaryFolder } from '../support/folder.ts';
import { startGateway } from '../support/gateway.ts';
import { listenFor } from '../support/listen.ts';
import { runProgram } from '../support/program.ts';

const bin = new URL('../../bin/fallback-service.js', import.meta.url).pathname;
const gateway = new URL('../support/gateway-program.ts', import.meta.url).pathname;

const litellm = `
model_list:
  - model_name: gpt-4o
    litellm_params: {model: openai/gpt-4o, api_key: os.environ/OPENAI_API_KEY, timeout: 3}
  - model_name: claude
    litellm_params: {model: anthropic/claude-sonnet-4-5, api_key: os.environ/ANTHROPIC_API_KEY, timeout: 3}
router_settings:
  num_retries: 1
  fallbacks: [{gpt-4o: [claude]}]
general_settings:
  master_key: sk-1234
`;

/** Writes a file that is removed after the test. */
function written(t: TestContext, name: string, text: string | Buffer): string {
  const path = join(temporaryFolder(t), name);
  writeFileSync(path, text);
  return path;
}

const runIn = async (environment: Record<string, string>, ...args: string[]) => {
  const env = { ...process.env, ...environment };
  const { exitCode: code, ...output } = await runProgram([process.execPath, bin, 'rehearse', ...args], { env });
  return { code, ...output };
};
const run = (...args: string[]) => runIn({}, ...args);
const base = 'http://127.0.0.1:8000/rehearsal/abc';
const started = (flaw = '') => `'${process.execPath}' ${gateway} {config} {port} ${flaw}`;

describe('fallback-service rehearse', () => {
  test('exits with 0 and prints a table of scenes if the gateway does what the file says', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const folder = temporaryFolder(t);
    const { code, stdout, stderr } = await runIn({ TMPDIR: folder }, '--config', config, '--preset', 'primary_down', '--run', started());
    assert.equal(code, 0, stderr + stdout);
    assert.match(stdout, /^same +both +gpt-4o is down: server_error +gpt-4o x2, claude +gpt-4o x2, claude$/m);
    assert.match(stdout, /^All 6 scenes agree\.$/m);
    assert.match(stdout, /Cool-downs are switched off/);
    assert.match(stdout, /Left out of the file for the rehearsal: general_settings\./);
    assert.deepEqual(readdirSync(folder), [], 'its temporary folder is removed');
  });

  test('exits with 1 and names the difference if nothing explains it', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const { code, stdout } = await run('--config', config, '--preset', 'primary_down', '--run', started("'one retry too few'"));
    assert.equal(code, 1, stdout);
    assert.match(
      stdout,
      /- gpt-4o answers 500: the chain retries once and goes to claude; the gateway called gpt-4o once and claude once\./,
    );
    assert.match(stdout, /^0 of 6 scenes agree, 6 differ\.$/m);
  });

  test('prints the result as JSON with --json', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const { code, stdout } = await run('--config', config, '--preset', 'healthy', '--prompts', '2', '--json', '--run', started());
    assert.equal(code, 0, stdout);
    const result = JSON.parse(stdout);
    assert.deepEqual([result.mode, result.verdict, result.prompt_count, result.explained], ['rehearsal', 'pass', 2, []]);
  });

  test('says that a file without timeouts is rehearsed with those of the chain [F151]', async (t) => {
    const config = written(t, 'config.yaml', litellm.replaceAll(', timeout: 3', ''));
    const { code, stdout } = await run('--config', config, '--preset', 'healthy', '--prompts', '1', '--run', started());
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^Where the file has no timeout, the rehearsed gateway and the chain have one of 10 s/m);
  });

  test('sends the shapes of the requests of a file once each, without their texts [F137]', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const body = (text: string) => ({
      model: 'x',
      messages: [{ role: 'user', content: text }],
      tools: [{ type: 'function', function: { name: 'f' } }],
    });
    const lines = [body('hello'), { time: 1, request: body('howdy') }, { ...body('hello'), temperature: 1 }];
    const requests = written(t, 'requests.jsonl', lines.map((line) => JSON.stringify(line)).join('\n'));
    const { code, stdout } = await run('--config', config, '--preset', 'healthy', '--requests', requests, '--json', '--run', started());
    assert.equal(code, 0, stdout);
    const { results } = JSON.parse(stdout);
    assert.deepEqual(
      results.map(({ request, received }: { request: { stream: boolean; shape: number }; received: { tool_calls: object[] } }) => [
        request.stream,
        request.shape,
        received.tool_calls.length,
      ]),
      [
        [true, 0, 1],
        [true, 1, 1],
        [false, 0, 1],
        [false, 1, 1],
      ],
    );
  });

  test('rehearses the export with --no-own, and of a chain in JSON [F109]', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const own = await run('--config', config, '--no-own', '--preset', 'primary_down', '--no-stream', '--run', started());
    assert.equal(own.code, 0, own.stdout);
    const providers = [
      { name: 'a', model_id: 'openai/gpt-4o' },
      { name: 'b', model_id: 'openai/gpt-4o' },
    ];
    const rules = [{ condition: 'any', action: 'retry', max_retries: 1 }];
    const chain = written(t, 'chain.json', JSON.stringify({ name: 'c', providers, fallback_rules: rules }));
    const json = await run('--config', chain, '--preset', 'healthy', '--run', started());
    assert.equal(json.code, 0, json.stdout + json.stderr);
    assert.match(json.stderr, /^Neither --format nor the words of --run name a gateway; it is taken for LiteLLM\.$/m);
    // The format names the gateway: Portkey reads no such file, so that the program gets one in JSON.
    const named = await run('--config', chain, '--format', 'portkey', '--preset', 'healthy', '--run', started());
    assert.doesNotMatch(named.stderr, /Neither/);
    assert.match(named.stderr, /model_list|undefined/);
    const litellmNamed = await run('--config', chain, '--format', 'litellm', '--preset', 'healthy', '--run', started());
    assert.equal(litellmNamed.code, 0, litellmNamed.stderr);
    assert.doesNotMatch(litellmNamed.stderr, /Neither/);
  });

  test('says the version of the gateway, and says of a running one only what is known of it [F108, F109]', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const token = '0123456789abcdef0123456789abcdef';
    const { port, close } = await listenFor(t, createServer());
    await close();
    const base = `http://127.0.0.1:${port}/rehearsal/${token}`;
    const retries = new Map([429, 500, 502, 503, null].map((status) => [status, 1]));
    const { url } = await startGateway(t, [
      { base: `${base}/gpt-4o/v1`, retries },
      { base: `${base}/claude/v1`, protocol: 'anthropic', retries },
    ]);
    const shared = ['--config', config, '--preset', 'healthy', '--prompts', '1', '--port', String(port), '--token', token];
    const { code, stdout, stderr } = await run(...shared, '--gateway', url);
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^The gateway is LiteLLM 1\.2\.3; the findings were measured with 1\.106\.2 and 1\.110\.2\.$/m);
    assert.equal(stderr, `The gateway must lead its calls to the fake providers at ${base}/{provider}.\n`);
    assert.doesNotMatch(stdout, /Cool-downs|Left out/);
  });

  test('plays outages in time with --outage, second by second [F122]', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const args = ['--config', config, '--rate', '120', '--for', '2', '--run', started()];
    const { code, stdout, stderr } = await run('--outage', 'gpt-4o auth_error 0-1', ...args);
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^same +0 +gpt-4o, claude +gpt-4o, claude$/m);
    assert.match(stdout, /^same +1 +gpt-4o +gpt-4o$/m);
    assert.match(stdout, /^All 4 prompts agree\.$/m);
    const idle = await run('--outage', 'claude auth_error 0-2', ...args);
    assert.equal(idle.code, 1, 'no call met the outage');
  });

  test('with --outage keeps the cool-downs of the file, and finds a gateway that forgets them [F123]', async (t) => {
    const config = written(t, 'config.yaml', litellm.replace('num_retries: 1', 'num_retries: 1\n  allowed_fails: 0\n  cooldown_time: 2'));
    const args = ['--config', config, '--rate', '120', '--for', '6', '--outage', 'gpt-4o auth_error 0-4'];
    const kept = await run(...args, '--json', '--run', started());
    assert.equal(kept.code, 0, kept.stdout + kept.stderr);
    const seconds: { out: { provider: string }[] }[] = JSON.parse(kept.stdout).timeline.seconds;
    assert.deepEqual([...new Set(seconds.flatMap(({ out }) => out.map(({ provider }) => provider)))], ['gpt-4o']);
    const forgetful = await run(...args, '--run', started("'forgets a cool-down'"));
    assert.equal(forgetful.code, 1, forgetful.stdout);
    assert.match(forgetful.stdout, /the gateway called gpt-4o, which the chain leaves out until .* s since its auth_error/);
  });

  test('sends no scene again to a running gateway, which may remember its failures [F159]', async (t) => {
    const config = written(t, 'config.yaml', litellm.replaceAll('timeout: 3', 'timeout: 0.1'));
    let asked = 0;
    const slow = createServer(({ method }, response) => {
      asked += method === 'POST' ? 1 : 0;
      // So much later than the limits allow, a scene is sent again to a gateway without a memory.
      setTimeout(() => response.writeHead(500).end(), 500);
    });
    const { url } = await listenFor(t, slow);
    const args = ['--config', config, '--preset', 'healthy', '--prompts', '1', '--no-stream', '--json'];
    const { code, stdout, stderr } = await run(...args, '--gateway', `${url}/v1`);
    assert.equal(code, 1, stderr);
    assert.deepEqual([asked, JSON.parse(stdout).agreement.sent_again], [1, 0]);
  });

  test('exits with 2 for wrong usage, for a file that cannot be imported, and for a gateway that ends [F64]', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const latin1 = written(t, 'config.yaml', Buffer.from(`${litellm}\n# caf\xe9\n`, 'latin1'));
    const several = written(t, 'several.yaml', `${litellm}\n`.replace('[{gpt-4o: [claude]}]', '[{gpt-4o: [claude]}, {claude: [gpt-4o]}]'));
    const cases: [string[], RegExp][] = [
      [['--config', config], /Give either --run/],
      [['--config', `${config}.missing`, '--run', started()], /can't be read/],
      [['--config', latin1, '--run', started()], /config\.yaml can't be read: it is not in UTF-8; save it in this encoding/],
      [['--config', config, '--requests', latin1, '--run', started()], /config\.yaml can't be read: it is not in UTF-8/],
      [['--config', config, '--format', 'toml', '--run', started()], /--format must be one of/],
      [['--config', config, '--preset', 'all', '--run', started()], /--preset must be one of/],
      [['--config', config, '--prompts', 'many', '--run', started()], /--prompts must be a whole number/],
      [['--config', several, '--group', 'none', '--run', started()], /can't be imported as litellm/],
      [['--config', config, '--run', started('ends')], /ended with exit code 7 before it answered[\s\S]*the gateway has no licence/],
      [['--config', config, '--run', 'no-such-program-here'], /could not be started/],
      [['--config', config, '--run', "'no end"], /ends inside a quote/],
      [['--config', config, '--both', '--stream', '--run', started()], /Give either --both or --stream/],
      [
        ['--config', config, '--endpoint', 'completions', '--run', started()],
        /--endpoint must be one of chat, messages, responses|--endpoint must be one of/,
      ],
      [['--config', config, '--requests', `${config}.missing`, '--run', started()], /can't be read/],
      [['--config', config, '--requests', config, '--run', started()], /Line 2 of .* is no request of a chat model in JSON/],
    ];
    for (const [args, said] of cases) {
      const { code, stderr } = await run(...args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, said);
    }
  });

  test('ends the gateway and its children', async (t) => {
    const config = written(t, 'config.yaml', litellm);
    const pidFile = `${config}.pid`;
    // The child ignores SIGTERM, and loses its parent.
    const shell = `sh -c "(trap '' TERM; exec sleep 300 >/dev/null 2>&1) & echo $! > ${pidFile}; exec ${process.execPath} ${gateway} {config} {port}"`;
    const { code, stdout, stderr } = await run('--config', config, '--preset', 'healthy', '--run', shell);
    assert.equal(code, 0, stdout + stderr);
    assert.match(readFileSync(pidFile, 'utf8'), /^\d+\n$/);
    // A container may have nobody who removes ended processes; they have the state Z.
    const { stdout: state } = await runProgram(['sh', '-c', `ps -o stat= -p $(cat ${pidFile})`]);
    assert.match(state.trim(), /^(Z.*)?$/);
  });

  test('ends a gateway that is interrupted before it answers', async (t) => {
    const interrupting = new AbortController();
    let pid = 0;
    // The program tells its number, and is interrupted; otherwise nothing answers.
    const server = createServer(({ url, socket }) => {
      pid ||= Number(/^\/pid\/(\d+)$/.exec(url!)?.[1] ?? 0);
      if (pid > 0) interrupting.abort(new RehearsalError('Ended by SIGINT.'));
      socket.destroy();
    });
    const { url: origin } = await listenFor(t, server);
    const script = `fetch('${origin}/pid/' + process.pid).catch(() => undefined); setInterval(() => undefined, 60_000);`;
    const program = startProgram([process.execPath, '-e', script], origin, process.env, interrupting.signal);
    await assert.rejects(program, /^Error: Ended by SIGINT\.$/);
    assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' });
  });
});

describe('A command line', () => {
  test('has outages with their rate and time, or says what is wrong with them [F122]', () => {
    assert.deepEqual(timelineFrom({ outage: ['my model timeout 1-20 retry-after 5'], rate: '30' }), {
      ...{ rate_per_minute: 30, seconds: 120 },
      outages: [{ provider: 'my model', condition: 'timeout', from_s: 1, to_s: 20, retry_after_ms: 5000 }],
    });
    assert.equal(timelineFrom({}), undefined);
    const refused = (options: OutageOptions, said: RegExp) => assert.throws(() => timelineFrom(options), said);
    refused({ for: '5' }, /--for is for outages; give --outage as well/);
    refused({ outage: ['gpt-4o 1-2'] }, /--outage must be a provider, a condition and seconds/);
    refused({ outage: ['gpt-4o broken 1-2'] }, /--outage must have one of the conditions/);
    refused({ outage: ['gpt-4o timeout 1-2'], preset: 'healthy' }, /--preset cannot be given together/);
    refused({ outage: ['gpt-4o timeout 1-2'], for: 'long' }, /--for must be a whole number/);
  });

  test('is split into words without a shell, with what is filled in', () => {
    assert.deepEqual(wordsOf(`a 'b c' "d \\" e" f\\ g $HOME *`), ['a', 'b c', 'd " e', 'f g', '$HOME', '*']);
    assert.deepEqual(filledIn(['--port={port}', '{config}', '{other}'], { port: '1', config: 'a b' }), ['--port=1', 'a b', '{other}']);
    assert.throws(() => wordsOf('a "b'), RehearsalError);
  });
});

describe('A finding', () => {
  const difference = {
    provider: 'gpt-4o',
    condition: 'server_error' as const,
    kind: 'calls' as const,
    status_code: 500,
    stream: false,
    second: null,
    expected: {
      calls: [
        { provider: 'gpt-4o', calls: 4 },
        { provider: 'claude', calls: 1 },
      ],
      served_by: 'claude',
    },
    actual: {
      calls: [
        { provider: 'gpt-4o', calls: 2 },
        { provider: 'claude', calls: 1 },
      ],
      served_by: 'claude',
    },
    prompts: 1,
    first_index: 3,
    sentence: 'gpt-4o answers 500: the chain retries 3 times and goes to claude; the gateway called gpt-4o 2 times and claude once.',
  };
  const result = { ...testExample, differences: [difference], verdict: 'differs' as const };
  const said = { detail: 'It retries twice.', loss: true, provider: 'gpt-4o', condition: 'server_error' as const };
  const program = { label: 'LiteLLM', version: null, measured: [] };
  const codeWith = (finding: object) => {
    const differences = explained(result, [{ ...said, ...finding }], []);
    return exitCodeOf({ result, differences, program, notes: [] });
  };

  test('explains a difference of its provider, condition, status and stream only, and only as a loss: exit code 3 [F65]', () => {
    assert.equal(codeWith({}), 3);
    assert.equal(codeWith({ status_codes: [500, 502] }), 3);
    assert.equal(codeWith({ status_codes: [502] }), 1);
    assert.equal(codeWith({ stream: true }), 1);
    assert.equal(codeWith({ kind: 'load_balanced' }), 1);
    assert.equal(codeWith({ provider: null }), 1);
    assert.equal(codeWith({ provider: 'claude' }), 1);
    assert.equal(codeWith({ condition: 'timeout' }), 1);
    assert.equal(codeWith({ condition: null }), 1);
    assert.equal(codeWith({ loss: false }), 1);
  });

  test('about every failure of a provider explains as well that it is not called at the start [F111]', () => {
    const start = { ...difference, condition: null };
    const because = (about: readonly Condition[], provider = 'gpt-4o') =>
      explained(
        { ...result, differences: [start] },
        about.map((condition) => ({ ...said, provider, condition })),
        [],
      )[0]!.because;
    assert.deepEqual(because(conditions), ['It retries twice.']);
    assert.deepEqual(because(conditions.slice(1)), []);
    assert.deepEqual(because(conditions, 'claude'), []);
  });

  test('of an export names its provider by its field and its conditions in its sentence', () => {
    const warning = { code: 'retries', field: 'providers.0.timeout_ms', detail: 'LiteLLM retries server_error.', loss: true };
    const because = (changes: object) => explained(result, [], [{ ...warning, ...changes }])[0]!.because;
    assert.deepEqual(because({}), ['LiteLLM retries server_error.']);
    assert.deepEqual(because({ field: 'providers.1' }), []);
    assert.deepEqual(because({ detail: 'LiteLLM retries timeout.' }), []);
    assert.deepEqual(because({ loss: false }), []);
    const sentence = (names: string) => ({ field: null, detail: `On server_error of ${names}, LiteLLM makes each call 3 times.` });
    assert.equal(because(sentence('claude and gpt-4o')).length, 1);
    assert.equal(because(sentence('claude')).length, 0);
    // The last name of a sentence has a full stop behind it.
    const detail = 'Portkey sees only status 500, so that server_error is alike of claude and gpt-4o.';
    assert.equal(because({ field: null, detail }).length, 1);
  });

  test('about cool-downs as such explains differences of cool-downs alone, of its provider or of all [F126]', () => {
    const because = (finding: object, kind: 'calls' | 'cooldown' | 'draws' = 'cooldown') =>
      explained(
        { ...result, differences: [{ ...difference, kind, condition: 'auth_error' }] },
        [{ ...said, kind: 'cooldowns', condition: null, ...finding }],
        [],
      )[0]!.because.length;
    assert.deepEqual([because({}), because({ provider: null }), because({ provider: 'claude' })], [1, 1, 0]);
    assert.deepEqual([because({}, 'calls'), because({ kind: 'memory' }), because({ loss: false })], [0, 0, 0]);
    // Draws do not depend on how a failure goes on.
    assert.deepEqual([because({}, 'draws'), because({ kind: 'calls', condition: 'auth_error' }, 'draws')], [1, 0]);
  });

  test('of an export about cool-downs as such explains differences of cool-downs alone [F167]', () => {
    const cooldown = { allowed_fails: 0, window_ms: 1000, seconds: 30 };
    const chain = define({
      name: 'c',
      providers: [
        { name: 'a', model_id: 'openai/a' },
        { name: 'b', model_id: 'openai/b' },
      ],
      cooldown,
    });
    const because = (format: 'portkey' | 'litellm', kind: 'calls' | 'cooldown') => {
      const { warnings } = exportChain(format, { chain, routing: routingOf(chain), prefer: 'failover' });
      const differing = { ...difference, provider: 'a', kind, condition: 'server_error' as const };
      return explained({ ...result, chain, differences: [differing] }, [], warnings)[0]!.because.filter((one) => /cool-down/.test(one))
        .length;
    };
    assert.deepEqual([because('portkey', 'cooldown'), because('portkey', 'calls')], [1, 0]);
    assert.deepEqual([because('litellm', 'cooldown') > 0, because('litellm', 'calls')], [true, 0]);
  });

  test('does not excuse a gateway that cannot be used [F65]', () => {
    const differences = explained(result, [said], []);
    assert.equal(exitCodeOf({ result: { ...result, error: 'The gateway could not be called.' }, differences, program, notes: [] }), 1);
  });

  test('is not asked for if the rehearsal did not finish: exit code 1 [F65]', () => {
    for (const status of ['cancelled', 'failed', 'running'] as const)
      for (const verdict of [null, 'pass'] as const)
        assert.equal(exitCodeOf({ result: { ...result, status, verdict, error: 'It ended.' }, differences: [], program, notes: [] }), 1);
    assert.equal(exitCodeOf({ result: { ...result, status: 'completed', verdict: 'pass' }, differences: [], program, notes: [] }), 0);
  });
});

test('A rehearsal with outages in which no call should fail tests nothing: exit code 1 [F122]', () => {
  const agreement = { prompts: 1, agreeing: 1, differing: 0, not_tested: 0, sent_again: 0, stray_calls: 0 };
  const timeline = { rate_per_minute: 60, outages: [], seconds: [], only_last: [], first_back_s: null, cost: null };
  const program = { label: 'LiteLLM', version: null, measured: [] };
  const codeWith = (condition: Condition | null) => {
    const expected = { served_by: 'claude', attempts: [{ provider: 'gpt-4o', condition }] };
    const results = [{ ...testExample.results[0]!, expected, tested: true }];
    const result = { ...testExample, status: 'completed' as const, verdict: 'pass' as const, timeline, agreement, results };
    return exitCodeOf({ result, differences: [], program, notes: [] });
  };
  assert.deepEqual([codeWith(null), codeWith('server_error')], [1, 0]);
});

test('A rehearsal none of whose failures was met tests nothing: exit code 1, unless nothing should fail; its report says what was not tested [F154]', () => {
  const program = { label: 'LiteLLM', version: null, measured: [] };
  const scenes = (tested: readonly boolean[], condition: Condition | null = 'server_error') => {
    const expected = { served_by: 'claude', attempts: [{ provider: 'gpt-4o', condition }] };
    const results = tested.map((one, index) => ({ ...testExample.results[0]!, index, agrees: true, expected, tested: one }));
    const not_tested = tested.filter((one) => !one).length;
    const agreement = {
      prompts: tested.length,
      agreeing: tested.length - not_tested,
      differing: 0,
      not_tested,
      sent_again: 0,
      stray_calls: 0,
    };
    const result = { ...testExample, status: 'completed' as const, verdict: 'pass' as const, agreement, results };
    return { result, differences: [], program, notes: [] };
  };
  assert.deepEqual(
    [scenes([false, false]), scenes([false, true]), scenes([true], null)].map((one) => exitCodeOf(one)),
    [1, 0, 0],
  );
  const report = reportOf(scenes([false, true]));
  assert.match(report, /^not tested /m);
  assert.match(report, /^1 of 2 scenes agrees, 0 differ, 1 was not tested, because no call failed\.$/m);
});

test('The report of a rehearsal says what was left out, once, and how many scenes agreed only when sent again [F118, F157]', () => {
  const agreement = { prompts: 9, agreeing: 9, differing: 0, not_tested: 0, sent_again: 2, stray_calls: 0 };
  const program = { label: 'LiteLLM', version: null, measured: [] };
  const lines = (sent_again: number, assumptions: string[] = []) => {
    const result = { ...testExample, results: [], assumptions, agreement: { ...agreement, sent_again } };
    return reportOf({ result, differences: [], program, notes: assumptions.slice(1) })
      .split('\n')
      .slice(-3);
  };
  assert.deepEqual(lines(2), ['', '2 scenes agreed only when sent again.', 'All 9 scenes agree.']);
  const left = ['Only the first scenes are played.', 'b is left out.'];
  assert.deepEqual(lines(0, left), [...left.toReversed(), 'All 9 scenes agree.']);
  assert.deepEqual(lines(0).slice(1), ['', 'All 9 scenes agree.']);
});

describe('A file of LiteLLM for a rehearsal', () => {
  const file = (deployments: [string, object][], more: object = {}) => ({
    model_list: deployments.map(([model_name, litellm_params]) => ({ model_name, litellm_params })),
    ...more,
  });
  const parametersOf = ({ file: made }: ReturnType<typeof redirectFile>) =>
    (made.model_list as { litellm_params: Record<string, unknown> }[]).map(({ litellm_params }) => litellm_params);

  test('keeps its groups, fallbacks and settings, and replaces addresses and keys [F64]', () => {
    const settings = { num_retries: 3, fallbacks: [{ a: ['b'] }], redis_host: 'r' };
    const value = file(
      [
        ['a', { model: 'openai/gpt-4o', api_key: 'sk-real', api_base: 'https://x/v1', rpm: 5 }],
        ['a', { model: 'azure/dep', api_key: 'os.environ/K', api_base: 'https://r.openai.azure.com', api_version: '2024-10-21' }],
        ['b', { model: 'anthropic/claude', organization: 'org', extra_headers: { 'x-a': 'b' } }],
        ['b', { model: 'gemini/flash', weight: 2 }],
      ],
      {
        router_settings: settings,
        litellm_settings: { success_callback: ['langfuse'], drop_params: true },
        general_settings: { master_key: 'x' },
      },
    );
    const made = redirectFile(value, base, { keepState: false, providers: [] });
    assert.deepEqual(parametersOf(made), [
      { model: 'openai/gpt-4o', api_base: `${base}/a/v1`, api_key: 'rehearsal' },
      { model: 'azure/dep', api_version: '2024-10-21', api_base: `${base}/a-2`, api_key: 'rehearsal' },
      { model: 'anthropic/claude', extra_headers: { 'x-a': 'b' }, api_base: `${base}/b`, api_key: 'rehearsal' },
      { model: 'openai/flash', weight: 2, api_base: `${base}/b-2/v1`, api_key: 'rehearsal' },
    ]);
    assert.deepEqual(made.file.router_settings, { num_retries: 3, fallbacks: [{ a: ['b'] }], disable_cooldowns: true });
    assert.deepEqual(made.file.litellm_settings, { drop_params: true });
    assert.equal(made.file.general_settings, undefined);
    assert.deepEqual([...made.groups.keys()], ['a', 'a-2', 'b', 'b-2']);
    assert.equal(made.groups.get('a'), made.groups.get('a-2'));
    assert.match(made.notes.join(' '), /Rehearsed by OpenAI's protocol, .* don't have: b-2\./);
    assert.match(made.notes.join(' '), /general_settings, litellm_settings\.success_callback and router_settings\.redis_host/);
    assert.doesNotMatch(JSON.stringify(made.file), /sk-real|os\.environ/);
  });

  test('has no address and no key of the file at any depth, so that nothing is sent elsewhere [F64]', () => {
    const vendor = { api_base: 'https://vendor.test/v1', api_key: 'sk-real', base_url: 'https://vendor.test' };
    const called = { model: 'openai/other', ...vendor };
    const more = {
      router_settings: {
        fallbacks: [{ a: [called, 'b'] }, { api_key: ['b'] }],
        default_litellm_params: { ...vendor, timeout: 5 },
        model_group_alias: { organization: 'a' },
      },
      litellm_settings: { context_window_fallbacks: [{ a: [called] }], api_key: 'sk-real', api_base: vendor.api_base },
    };
    const own = { model: 'openai/m', ...vendor, fallbacks: [called, 'b'], extra_body: { nested: [{ ...vendor, key: 'os.environ/K' }] } };
    const made = redirectFile(file([['a', own]], more), 'http://fakes', { keepState: true, providers: ['a'] });
    assert.doesNotMatch(JSON.stringify(made.file), /vendor|sk-real|os\.environ/);
    assert.deepEqual(parametersOf(made)[0], {
      model: 'openai/m',
      fallbacks: [{ model: 'openai/other', api_base: 'http://fakes/a/v1', api_key: 'rehearsal' }, 'b'],
      extra_body: { nested: [{ key: 'rehearsal' }] },
      api_base: 'http://fakes/a/v1',
      api_key: 'rehearsal',
    });
    const { router_settings: router, litellm_settings: settings } = made.file as { router_settings: unknown; litellm_settings: unknown };
    assert.deepEqual(router, {
      fallbacks: [{ a: [{ model: 'openai/other' }, 'b'] }, { api_key: ['b'] }],
      default_litellm_params: { timeout: 5 },
      model_group_alias: { organization: 'a' },
    });
    assert.deepEqual(settings, { context_window_fallbacks: [{ a: [{ model: 'openai/other' }] }] });
  });

  test('keeps cool-downs with keepState', () => {
    const madeOf = (more?: object) =>
      redirectFile(file([['a', { model: 'openai/gpt-4o' }]], more), base, { keepState: true, providers: [] });
    const made = madeOf();
    assert.deepEqual(made.file.router_settings, {});
    assert.deepEqual(made.notes, []);
    const given = [made, madeOf({ router_settings: { cooldown_time: 60 } }), madeOf({ litellm_settings: { cooldown_time: 7 } })];
    assert.deepEqual(
      given.map(({ cooldownMs }) => cooldownMs),
      [5000, 60_000, 7000],
    );
  });

  test('has nothing that other systems or modules of Python would have to provide [F102, F153]', () => {
    const litellm_settings = {
      custom_provider_map: [{ provider: 'mine', custom_handler: 'x.y' }],
      callbacks: ['langfuse'],
      num_retries: 1,
    };
    const value = file([['a', { model: 'mine/m' }]], { litellm_settings });
    const { file: made, notes } = redirectFile(value, base, { keepState: true, providers: ['a'] });
    assert.deepEqual(made.litellm_settings, { num_retries: 1 });
    assert.match(notes.join(), /Rehearsed by OpenAI's protocol, .* don't have: a\..*litellm_settings\.custom_provider_map/);
    assert.deepEqual(made.model_list, [
      { model_name: 'a', litellm_params: { model: 'openai/m', api_base: `${base}/a/v1`, api_key: 'rehearsal' } },
    ]);
    const unknown = (whole: object) =>
      importChain({ format: 'litellm', value: whole }).findings.some(({ kind }) => kind === 'unknown_provider');
    assert.deepEqual([unknown(value), unknown({ ...value, litellm_settings: {} })], [false, true], 'LiteLLM calls its module');
  });

  test('is imported without the cool-downs that its rehearsal switches off [F102]', () => {
    const whole = file(
      [
        ['a', { model: 'openai/m' }],
        ['a', { model: 'openai/n' }],
      ],
      { router_settings: { num_retries: 1 } },
    );
    const cooling = (value: unknown) => importChain({ format: 'litellm', value }).findings.some(({ kind }) => kind === 'cooldowns');
    assert.deepEqual([cooling(whole), cooling(gateways.litellm.memory!.without(whole))], [true, false]);
  });

  test('has no deployment of a protocol that cannot be redirected, and no fallback to its group', () => {
    const settings = { fallbacks: [{ a: ['b', 'c'] }, { b: ['a'] }], default_fallbacks: ['b', 'c'] };
    const made = redirectFile(
      file(
        [
          ['a', { model: 'openai/gpt-4o' }],
          ['b', { model: 'bedrock/claude' }],
          ['c', { model: 'openai/gpt-4o' }],
        ],
        { router_settings: settings },
      ),
      base,
      { keepState: true, providers: [] },
    );
    assert.deepEqual(made.file.router_settings, { fallbacks: [{ a: ['c'] }], default_fallbacks: ['c'] });
    assert.deepEqual([...made.models.values()], ['a', 'c']);
    assert.deepEqual(made.notes, ["Left out, because their protocols can't be redirected to fake providers: b."]);
  });
});

describe('A file without timeouts, for which its gateway would wait without an end', () => {
  test('gets those of the chain where LiteLLM reads them [F151]', () => {
    const entry = (parameters: object) => ({ model_name: 'a', litellm_params: { model: 'openai/m', ...parameters } });
    const model_list = [entry({}), entry({ timeout: 3 })];
    const limited = gateways.litellm.withTimeouts!({ model_list, router_settings: { timeout: null } }, 10_000) as typeof file;
    const file = { model_list: [entry({ timeout: 10 }), entry({ timeout: 3 })], router_settings: { timeout: null } };
    assert.deepEqual(limited, file);
    for (const set of [file, { model_list, router_settings: { timeout: 5 } }, { model_list, litellm_settings: { request_timeout: 5 } }])
      assert.equal(gateways.litellm.withTimeouts!(set, 10_000), null);
  });

  test('gets those of the chain where Portkey reads them [F151]', () => {
    const inner = { strategy: { mode: 'loadbalance' }, request_timeout: 2000, targets: [{ provider: 'openai' }] };
    const file = { strategy: { mode: 'fallback' }, targets: [{ provider: 'openai' }, inner, { provider: 'groq', request_timeout: 3000 }] };
    assert.deepEqual(gateways.portkey.withTimeouts!(file, 10_000), {
      ...file,
      targets: [{ provider: 'openai', request_timeout: 10_000 }, ...file.targets.slice(1)],
    });
    assert.equal(gateways.portkey.withTimeouts!({ ...file, request_timeout: 5000 }, 10_000), null);
    assert.deepEqual(gateways.portkey.withTimeouts!({ provider: 'openai' }, 10_000), { provider: 'openai', request_timeout: 10_000 });
  });

  for (const [format, value] of [
    ['litellm', { model_list: [{ model_name: 'a', litellm_params: { model: 'openai/m' } }] }],
    ['portkey', { provider: 'openai', api_key: 'k', override_params: { model: 'a' } }],
  ] as const)
    test(`is a loss of ${format} for each of its providers, about timeouts alone [F151]`, () => {
      const { findings } = importChain({ format, value });
      const found = findings.filter(({ kind, condition }) => kind === 'timeout' && condition !== null);
      assert.deepEqual(
        found.map(({ provider, condition, loss }) => [provider, condition, loss]),
        [['a', 'timeout', true]],
      );
    });
});

describe('The own file of Portkey in a rehearsal', () => {
  const at = (name: string) => `${base}/${encodeURIComponent(name)}/v1`;

  test('keeps strategies, retries and parameters, replaces addresses and keys, and leaves out the rest [F102]', () => {
    const value = {
      retry: { attempts: 2, on_status_codes: [429] },
      cache: { mode: 'simple' },
      strategy: { mode: 'fallback', on_status_codes: [429, 500] },
      targets: [
        {
          strategy: { mode: 'loadbalance' },
          targets: [
            { provider: 'deepseek', api_key: 'k1', weight: 0.5, override_params: { model: 'one' } },
            { provider: '@slug', virtual_key: 'k2', weight: 0.5, override_params: { model: 'two' } },
          ],
        },
        { provider: 'anthropic', api_key: 'k3', request_timeout: 2000, override_params: { model: 'claude' } },
        { provider: 'bedrock', aws_region: 'eu', override_params: { model: 'left' } },
      ],
    };
    const { file, groups, notes } = redirectPortkey(value, base, { keepState: false });
    assert.deepEqual(file, {
      retry: value.retry,
      strategy: value.strategy,
      targets: [
        {
          strategy: { mode: 'loadbalance' },
          targets: [
            {
              provider: 'deepseek',
              custom_host: at('one').slice(0, -'/v1'.length),
              api_key: 'rehearsal',
              weight: 0.5,
              override_params: { model: 'one' },
            },
            { provider: 'openai', custom_host: at('two'), api_key: 'rehearsal', weight: 0.5, override_params: { model: 'two' } },
          ],
        },
        {
          provider: 'anthropic',
          custom_host: at('claude'),
          api_key: 'rehearsal',
          request_timeout: 2000,
          override_params: { model: 'claude' },
        },
      ],
    });
    assert.deepEqual([...groups.keys()], ['one', 'two']);
    assert.ok(!JSON.stringify(file).includes('k1'));
    assert.deepEqual(notes, [
      "Left out, because their protocols can't be redirected to fake providers: left.",
      "Rehearsed by OpenAI's protocol, because Portkey calls them by one that fake providers don't have: two.",
      'Left out of the file for the rehearsal: cache and aws_region.',
    ]);
  });
});

test('a file of Portkey keeps its circuit breakers for outages in time alone, wherever they are [F166]', () => {
  const cb_config = { failure_threshold: 2, cooldown_interval: 30_000 };
  const target = { provider: 'openai', override_params: { model: 'one' }, cb_config };
  const value = { strategy: { mode: 'fallback', cb_config }, cb_config, targets: [target] };
  const [kept, without] = [true, false].map((keepState) => redirectPortkey(value, base, { keepState }));
  const given = kept!.file as typeof value;
  assert.deepEqual([given.cb_config, given.strategy, given.targets[0]!.cb_config], [cb_config, value.strategy, cb_config]);
  assert.deepEqual(kept!.notes, []);
  assert.doesNotMatch(JSON.stringify(without!.file), /cb_config/);
  assert.equal((without!.file as typeof value).strategy.mode, 'fallback');
  assert.deepEqual(without!.notes, ['Left out of the file for the rehearsal: cb_config.']);
});

test('a kind that is played by the protocol of OpenAI keeps what Portkey would see of its failures as reasons [F114]', () => {
  const target = (provider: string) => ({ provider, api_key: 'k', override_params: { model: provider } });
  const { reasons = [] } = redirectPortkey(
    { strategy: { mode: 'fallback' }, targets: ['google', 'openai', 'anthropic'].map(target) },
    base,
    { keepState: false },
  );
  assert.deepEqual(
    reasons.map(({ provider, condition, loss }) => [provider, condition, loss]),
    [['google', 'auth_error', true]],
  );
  assert.equal(reasons[0]!.detail, "gemini sends status 400 for auth_error; google is rehearsed by OpenAI's protocol, with 401.");
});

test('a kind that is played by the protocol of OpenAI keeps what LiteLLM would read of its failures as reasons [F114]', () => {
  const model = (name: string) => ({ model_name: name, litellm_params: { model: `${name}/m` } });
  const names = ['gemini', 'openai', 'anthropic', 'cohere'];
  const { reasons = [] } = redirectFile({ model_list: names.map(model) }, base, { keepState: false, providers: names });
  assert.deepEqual([...new Set(reasons.map(({ provider }) => provider))], ['gemini', 'cohere']);
  assert.ok(reasons.every(({ loss }) => loss));
  const unlike = conditions.filter((condition) => reasons.some((one) => one.provider === 'gemini' && one.condition === condition));
  assert.ok(unlike.length > 0 && unlike.length < conditions.length, `${unlike}`);
  assert.match(
    reasons[0]!.detail,
    /^LiteLLM reads \w+ of the kind gemini otherwise than that of OpenAI, by whose protocol gemini is rehearsed\.$/,
  );
});

test('a file of Portkey that balances explains what the chain does without the targets that are not drawn, and no lost fallbacks [F161]', () => {
  const target = (name: string) => ({ name, provider: 'openai', api_key: 'k', override_params: { model: name } });
  const value = {
    strategy: { mode: 'fallback' },
    targets: [
      {
        strategy: { mode: 'loadbalance' },
        targets: [target('a'), { strategy: { mode: 'fallback' }, targets: [target('b'), target('c')] }],
      },
      target('d'),
    ],
  };
  const { apart } = redirectPortkey(value, base, { keepState: false });
  assert.deepEqual(
    [...apart!].map(([name, others]) => [name, ...others]),
    [['a', 'b', 'c'], ['b', 'a'], ['c', 'a'], ['d']],
  );
  const { request, findings } = importChain({ format: 'portkey', value });
  const chain = define(request as ChainRequest);
  const attempt = (provider: string, condition: Condition | null) => ({ provider, condition, status_code: condition === null ? 200 : 500 });
  const because = (calls: readonly string[], served_by: string | null, kind: 'calls' | 'received' = 'calls') => {
    const attempts = calls.map((name) => attempt(name, name === served_by ? null : 'server_error'));
    const prompt = { ...testExample.results[0]!, index: 0, attempts, served_by, success: served_by !== null };
    const course = { calls: [], served_by: null };
    const difference = { provider: 'a', condition: 'server_error' as const, status_code: 500, kind, stream: false, second: null };
    const differences = [{ ...difference, expected: course, actual: course, prompts: 1, first_index: 0, sentence: 'It differs.' }];
    const result = { ...testExample, chain, results: [prompt], differences };
    return explained(result as never, findings, [], { apart })[0]!.because.length > 0;
  };
  assert.deepEqual([because(['a', 'd'], 'd'), because(['b', 'c', 'd'], 'd'), because(['b', 'c'], 'c')], [true, true, true]);
  assert.deepEqual([because(['a'], null), because(['b', 'd'], 'd'), because(['a', 'b', 'c', 'd'], 'd')], [false, false, false]);
  assert.equal(because(['a', 'd'], 'd', 'received'), false);
});

test('a provider that Portkey does not know keeps its name in a rehearsal, so that the gateway itself refuses it [F162]', () => {
  const target = (provider: string) => ({ provider, api_key: 'k', override_params: { model: 'm' } });
  const { file } = redirectPortkey({ strategy: { mode: 'fallback' }, targets: ['openai', 'new-one', '@slug'].map(target) }, base, {
    keepState: false,
  });
  const made = file.targets as { provider: string; api_key: string; custom_host: string }[];
  assert.deepEqual(
    made.map(({ provider, api_key, custom_host }) => [provider, api_key, custom_host.startsWith(base)]),
    ['openai', 'new-one', 'openai'].map((name) => [name, 'rehearsal', true]),
  );
});

describe('A wildcard of LiteLLM in a rehearsal', () => {
  test('leads to the fake provider of the model that is called, and that model is asked for [F102]', () => {
    const entry = { model_name: 'openai/*', litellm_params: { model: 'openai/*' } };
    const options = { keepState: false, providers: ['openai/gpt-4o', 'last'], group: 'openai/gpt-4o' };
    const { file, models } = redirectFile(
      { model_list: [entry, { model_name: 'last', litellm_params: { model: 'openai/last' } }] },
      base,
      options,
    );
    assert.deepEqual(
      [...models],
      [
        ['openai/gpt-4o', 'openai/gpt-4o'],
        ['last', 'last'],
      ],
    );
    const [first] = file.model_list as { model_name: string; litellm_params: { api_base: string } }[];
    assert.equal(first!.model_name, 'openai/*');
    assert.equal(first!.litellm_params.api_base, `${base}/openai%2Fgpt-4o/v1`);
  });

  test('has each of its keys as a member of the group of each model that is called [F152]', () => {
    const keys = ['ONE', 'OTHER'].map((key) => ({
      model_name: '*-fast',
      litellm_params: { model: 'openai/*-quick', api_key: `os.environ/${key}` },
    }));
    const value = { model_list: keys, router_settings: { fallbacks: [{ 'a-fast': ['b-fast'] }] } };
    const { request } = importChain({ format: 'litellm', value, group: 'a-fast' });
    const providers = (request as { providers: { name: string }[] }).providers.map(({ name }) => name);
    assert.deepEqual(providers, ['a-fast', 'a-fast-2', 'b-fast', 'b-fast-2']);
    const { file, groups, models } = redirectFile(value, base, { keepState: true, providers, group: 'a-fast' });
    const made = file.model_list as { model_name: string; litellm_params: { model: string; api_base: string } }[];
    assert.deepEqual(
      made.map(({ model_name, litellm_params: { model, api_base } }) => [model_name, model, api_base.slice(base.length)]),
      [
        ['*-fast', 'openai/*-quick', '/a-fast/v1'],
        ['b-fast', 'openai/b-quick', '/b-fast/v1'],
        ['*-fast', 'openai/*-quick', '/a-fast-2/v1'],
        ['b-fast', 'openai/b-quick', '/b-fast-2/v1'],
      ],
    );
    assert.equal(groups.get('a-fast'), groups.get('a-fast-2'));
    assert.equal(groups.get('b-fast'), groups.get('b-fast-2'));
    assert.deepEqual([...models.values()], ['a-fast', 'b-fast', 'a-fast', 'b-fast']);
  });
});
