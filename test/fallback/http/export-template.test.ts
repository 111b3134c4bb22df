import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { threeProviders } from '../../support/chains.ts';
import { createChain, shareFallback, type TestFallback } from '../../support/fallback.ts';
import { countTurns } from '../../support/until.ts';

const render = (service: TestFallback, body: Record<string, unknown>) => service.call('POST', '/export-template', { body });

describe('POST /export-template', () => {
  test('200: a template has the chain and each of the variables by name [F73]', async () => {
    const service = await shareFallback();
    const { id } = await createChain(service, { ...threeProviders });
    const template =
      '{{ chain.name }} {{ chain.version }} for {{ team }}: {% for p in chain.providers %}{{ p.name }}={{ p.api_base | default: "-" }} {% endfor %}';
    const { status, body } = await render(service, { chain_id: id, template, variables: { team: 'desk' } });
    assert.equal(status, 200);
    assert.deepEqual(body, {
      output: 'production-chain 1 for desk: gpt-4o=- claude=- llama=https://llm.example.com/v1 ',
      content_type: 'text/plain; charset=utf-8',
      warnings: [],
    });
  });

  test('200: a chain that is not stored can be sent along [F73]', async () => {
    const service = await shareFallback();
    const { status, body } = await render(service, {
      chain: threeProviders,
      template: '{{ chain.providers | map: "model_id" | join: "," }}',
    });
    assert.deepEqual([status, body.output], [200, 'openai/gpt-4o,anthropic/claude-sonnet-4-5,llama-3.3-70b']);
    assert.equal((await service.call('GET', '/chains')).headers['x-total-count'], '0');
  });
});

describe('Named templates', () => {
  test('env has each variable once, without a value [F73]', async () => {
    const service = await shareFallback();
    const { body } = await render(service, { chain: threeProviders, template_name: 'env' });
    assert.deepEqual(body.output.split('\n').slice(1), ['OPENAI_API_KEY=', 'ANTHROPIC_API_KEY=', 'LLAMA_API_KEY=', '']);
  });

  test('runbook is Markdown with the order of providers [F73]', async () => {
    const service = await shareFallback();
    const { body } = await render(service, { chain: threeProviders, template_name: 'runbook' });
    assert.match(body.output, /One prompt takes at most \d+ attempts and (\d+ min )?[\d.]+ s\./);
    assert.ok(!/1 times|\d ms \|/.test(body.output), body.output);
    assert.equal(body.content_type, 'text/markdown; charset=utf-8');
    assert.match(body.output, /^# production-chain\n/);
    assert.match(body.output, /\| rate_limit \| up to 3 times \| claude is tried \|/);
    assert.match(body.output, /\| invalid_request \| no \| the caller gets the error \|/);
  });

  test('a provider without a variable is a warning', async () => {
    const service = await shareFallback();
    const chain = { name: 'c', providers: [{ name: 'one', model_id: 'openai/m' }] };
    for (const template_name of ['env', 'runbook', 'curl']) {
      const { body } = await render(service, { chain, template_name });
      assert.deepEqual(body.warnings[0].code, 'no_key');
    }
  });
});

describe('POST /export-template refuses', () => {
  const chain = threeProviders;
  const faults: [string, Record<string, unknown>, string, RegExp][] = [
    ['no chain', { template: 'x' }, 'chain_id', /chain_id or chain is required/],
    ['half a chain', { chain: { name: 'a' }, template: 'x' }, 'chain.providers', /^chain\.providers is required\.$/],
    ['two chains', { chain_id: 'a', chain, template: 'x' }, 'chain', /Only one of/],
    ['no template', { chain }, 'template', /template or template_name is required/],
    ['two templates', { chain, template: 'x', template_name: 'env' }, 'template_name', /Only one of/],
    ['an unknown name of a template', { chain, template_name: 'helm' }, 'template_name', /must be one of env, runbook, curl/],
    ['an unknown variable', { chain, template: 'a\n{{ team }}' }, 'template', /^Line 2, column 4: Undefined variable: team\.$/],
    ['a variable that would hide the chain', { chain, template: 'x', variables: { chain: 1 } }, 'variables.chain', /would hide/],
    ['a template beyond 64 KiB', { chain, template: 'x'.repeat(65_537) }, 'template', /65536/],
    ['a template beyond 64 KiB in bytes', { chain, template: 'ü'.repeat(40_000) }, 'template', /at most 65536 bytes/],
    ['an output beyond 1 MiB', { chain, template: `{% for i in (1..5000) %}${'x'.repeat(1000)}{% endfor %}` }, 'template', /1048576 bytes/],
    ['a file', { chain, template: "{% include '/etc/passwd' %}" }, 'template', /Tag "include" not found/],
    [
      'a chain with a fault',
      { chain: { ...chain, fallback_rules: [{ condition: 'any', action: 'fail', providers: ['x'] }] }, template: 'x' },
      'chain.fallback_rules.0.providers.0',
      /names no provider/,
    ],
  ];
  for (const [what, body, field, detail] of faults) {
    test(`with 400 ${what}`, async () => {
      const service = await shareFallback();
      const answer = await render(service, body);
      assert.equal(answer.status, 400);
      assert.equal(answer.body.field, field);
      assert.match(answer.body.detail, detail);
      assert.ok(!answer.text.includes('must be null'), answer.text);
    });
  }

  test('with 413 a body of ten megabytes', async () => {
    const service = await shareFallback();
    const answer = await render(service, { chain, template: 'x'.repeat(10_000_000) });
    assert.deepEqual([answer.status, answer.body.code], [413, 'PAYLOAD_TOO_LARGE']);
  });

  test('with 400 an endless loop, which does not hold up others', async () => {
    const service = await shareFallback();
    const loop = '{% for a in (1..9999) %}{% for b in (1..9999) %}{% for c in (1..9999) %}{% endfor %}{% endfor %}{% endfor %}';
    await countTurns(async (turn) => {
      const { status, body } = await render(service, { chain, template: loop });
      assert.deepEqual([status, body.field, body.line], [400, 'template', 1]);
      assert.ok(turn() > 100, `the event loop turned ${turn()} times`);
    });
  });
});
