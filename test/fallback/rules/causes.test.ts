import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { type ChainRequest, type Condition, conditions } from '../../../src/fallback/model/chain.ts';
import { ofWaits } from '../../../src/fallback/model/finding.ts';
import type { Difference } from '../../../src/fallback/model/rehearsal.ts';
import { noAnswer } from '../../../src/fallback/model/request.ts';
import { type PromptResult, testExample } from '../../../src/fallback/model/test.ts';
import { explained } from '../../../src/fallback/rehearse/explain.ts';
import { exitCodeOf } from '../../../src/fallback/rehearse/report.ts';
import { define } from '../../../src/fallback/rules/chain.ts';
import { receivedOf } from '../../../src/fallback/rules/received.ts';
import { courseOf } from '../../../src/fallback/rules/rehearsal.ts';
import { importChain } from '../../../src/fallback/rules/targets/import.ts';
import { redirectFile } from '../../../src/fallback/rules/targets/portkey/own-file.ts';

const attempt = (provider: string, condition: Condition | null) => ({ provider, condition, status_code: condition === null ? 200 : 500 });
const receivedWith = (status: number | null, error: string | null) =>
  receivedOf(undefined, { status, error, time_to_first_token_ms: null });
const program = { label: 'Portkey', version: null, measured: [] };

/** A prompt that the rehearsal ended. */
const ended = { success: false, served_by: null, error: 'timeout' as const, received: receivedWith(200, noAnswer) };

const difference: Difference = {
  provider: 'a',
  condition: 'server_error',
  status_code: 500,
  kind: 'calls',
  stream: true,
  second: null,
  expected: courseOf([attempt('a', 'server_error'), attempt('b', null)], 'b'),
  actual: courseOf([attempt('a', 'server_error')], null),
  prompts: 1,
  first_index: 0,
  sentence: 'a answers 500: it differs.',
};

describe('A finding by which the gateway calls nobody, or never a provider,', () => {
  test('explains no difference in which it does [F162]', () => {
    const because = (kind: string, calls: readonly string[]) => {
      const actual = courseOf(
        calls.map((name) => attempt(name, null)),
        null,
      );
      const findings = conditions.map((condition) => ({ kind, provider: 'a', condition, loss: true, detail: 'It does not call it.' }));
      const differences = [{ ...difference, condition: null, actual }];
      return explained({ ...testExample, differences }, findings, [])[0]!.because.length;
    };
    for (const kind of ['refused_file', 'no_default'])
      assert.deepEqual([because(kind, []), because(kind, ['b']), because(kind, ['a'])], [1, 0, 0], kind);
    const ofUnknown = [[], ['b'], ['a', 'b']].map((calls) => because('unknown_provider', calls));
    assert.deepEqual(ofUnknown, [1, 1, 0]);
  });

  test('is what an import says of a provider that Portkey does not know: a gateway that knows it after all is not excused [F162]', () => {
    const target = (provider: string) => ({ provider, override_params: { model: provider } });
    const { request, findings } = importChain({
      format: 'portkey',
      value: { strategy: { mode: 'fallback' }, targets: ['openai', 'new-one'].map(target) },
    });
    const chain = define(request as ChainRequest);
    const codeOf = (condition: Condition | null, calls: readonly string[]) => {
      const actual = courseOf(
        calls.map((name) => attempt(name, null)),
        null,
      );
      const differences = [{ ...difference, provider: 'openai', condition, actual }];
      const result = { ...testExample, chain, differences, verdict: 'differs' as const };
      return exitCodeOf({ result, differences: explained(result, findings, []), program, notes: [] });
    };
    assert.deepEqual([codeOf(null, []), codeOf(null, ['new-one']), codeOf('server_error', ['openai'])], [3, 1, 1]);
  });
});

describe('A finding that a gateway waits longer', () => {
  const silent = attempt('a', 'timeout');
  const said = [silent, silent, attempt('b', null)];
  /** The exit code where the chain calls a twice and then b, and a does not answer a stream. */
  const codeOf = (calls: readonly string[], prompt: object, groups: ReadonlyMap<string, string> = new Map()) => {
    const attempts = calls.map((name) => attempt(name, name === 'b' ? null : 'timeout'));
    const shown = { index: 0, agrees: false, attempts, expected: { attempts: said, served_by: 'b' } };
    const results = [{ ...testExample.results[0]!, ...shown, ...prompt }] as unknown as PromptResult[];
    const about = { condition: 'timeout' as const, expected: courseOf(said, 'b'), actual: courseOf(attempts, null) };
    const differences = [{ ...difference, ...about, status_code: null }];
    const result = { ...testExample, results, differences, verdict: 'differs' as const };
    const finding = { kind: ofWaits, provider: 'a', condition: 'timeout' as const, loss: true, stream: true as const, detail: 'It waits.' };
    return exitCodeOf({ result, differences: explained(result, [finding], [], { groups }), program, notes: [] });
  };
  const late = { success: true, served_by: null, error: null, received: receivedWith(200, null) };

  test('explains a prompt that the rehearsal ended there, and one that the late answer served [F165, F168]', () => {
    for (const prompt of [ended, late]) assert.deepEqual([codeOf(['a'], prompt), codeOf(['a', 'a'], prompt)], [3, 3]);
    const group = new Map(['a', 'other'].map((name) => [name, 'group']));
    assert.deepEqual([codeOf(['other'], ended, group), codeOf(['other'], ended)], [3, 1]);
  });

  test('explains neither a gateway that answers 408 without a failover nor further calls [F165, F168]', () => {
    const refused = { ...ended, received: receivedWith(408, 'HTTP 408') };
    for (const calls of [['a'], ['a', 'a']]) assert.equal(codeOf(calls, refused), 1);
    for (const calls of [
      ['a', 'a', 'a'],
      ['a', 'b'],
      ['a', 'other'],
    ])
      assert.equal(codeOf(calls, ended), 1, String(calls));
  });

  test('is what imports say of the timeouts of streams, and of files without a timeout [F165, F168]', () => {
    const target = { provider: 'openai', override_params: { model: 'a' } };
    const litellm = (timeout: object) => ({ model_list: [{ model_name: 'a', litellm_params: { model: 'openai/a', ...timeout } }] });
    const kindsOf = (format: 'portkey' | 'litellm', value: unknown) =>
      importChain({ format, value }).findings.flatMap(({ kind, condition, loss }) => (loss && condition === 'timeout' ? [kind] : []));
    for (const request_timeout of [1000, undefined]) assert.deepEqual(kindsOf('portkey', { ...target, request_timeout }), [ofWaits]);
    for (const timeout of [{ timeout: 1, stream_timeout: 9 }, {}]) assert.ok(kindsOf('litellm', litellm(timeout)).includes(ofWaits));
  });
});

describe('That Portkey draws one of several targets', () => {
  const target = (name: string) => ({ name, provider: 'openai', api_key: 'k', override_params: { model: name } });
  const value = {
    strategy: { mode: 'fallback' },
    targets: [{ strategy: { mode: 'loadbalance' }, targets: [target('a'), target('b')] }, target('c')],
  };
  const { apart } = redirectFile(value, 'http://127.0.0.1', { keepState: false });
  const { request, findings } = importChain({ format: 'portkey', value });
  const chain = define(request as ChainRequest);
  const failing = (...names: string[]) => names.map((name) => attempt(name, 'server_error'));
  const expected = { attempts: [...failing('a'), attempt('b', null)], served_by: 'b' };
  const drawn = { attempts: [...failing('a'), attempt('c', null)], served_by: 'c', success: true, error: null };
  const because = (prompts: readonly object[], changes: Partial<Difference> = {}) => {
    const results = prompts.map((prompt, index) => ({ ...testExample.results[0]!, index, agrees: false, expected, ...drawn, ...prompt }));
    const about = { expected: courseOf(expected.attempts, 'b'), actual: courseOf(drawn.attempts, 'c'), stream: null };
    const result = { ...testExample, chain, results, differences: [{ ...difference, ...about, ...changes }] };
    return explained(result as never, findings, [], { apart })[0]!.because.length;
  };

  test('explains no call after the answer, and no call of a provider that the chain leaves out [F161]', () => {
    assert.deepEqual([because([{}]), because([{}], { condition: null })], [1, 1]);
    assert.equal(because([{}], { condition: null, expected: courseOf([], null) }), 0);
    const actual = (name: string) => courseOf([...failing(name), attempt('c', null)], 'c');
    const cooldown = { kind: 'cooldown' } as const;
    assert.deepEqual([because([{}], { ...cooldown, actual: actual('b') }), because([{}], { ...cooldown, actual: actual('a') })], [1, 0]);
  });

  test('explains no gateway that gives no answer after its last call [F161]', () => {
    const failed = { attempts: failing('a', 'c'), served_by: null, success: false };
    assert.deepEqual([because([{ ...failed, error: 'server_error' }]), because([{ ...failed, ...ended }])], [1, 0]);
  });

  test('explains a difference only if it does in each of its prompts [F161]', () => {
    const twice = { ...drawn, attempts: [...failing('b', 'a'), attempt('c', null)] };
    const last = { actual: courseOf([attempt('c', null)], 'c') };
    assert.deepEqual([because([{}, {}], last), because([{}, twice], last)], [1, 0]);
    // Prompts that agree, and differ otherwise, have nothing to do with it.
    for (const other of [
      { agrees: true },
      { attempts: failing('b', 'a') },
      { expected: { attempts: [attempt('a', null)], served_by: 'a' } },
    ])
      assert.equal(because([{}, { ...twice, ...other }], last), 1, JSON.stringify(other));
  });
});
