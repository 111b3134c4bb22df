import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Ajv2019 } from 'ajv/dist/2019.js';
import fc from 'fast-check';
import { parseAllDocuments } from 'yaml';

import type { ChainRequest } from '../src/fallback/model/chain.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { anyChain, threeProviders } from '../test/support/chains.ts';
import { exported } from './chains.ts';
import { bifrostSchema, envoySchemas } from './schemas.ts';

type Shape = Record<string, unknown>;
const ajv = new Ajv2019({
  allErrors: true,
  strict: true,
  strictTypes: false,
  strictRequired: false,
  allowUnionTypes: true,
  formats: { uri: (text) => URL.canParse(text) },
});

const clouds: ChainRequest = {
  name: 'clouds',
  providers: [
    {
      name: 'azure',
      model_id: 'azure/gpt',
      api_base: 'https://one.openai.azure.com',
      api_key_env: 'K',
      params: { api_version: '2024-10-21' },
    },
    {
      ...{ name: 'bedrock', model_id: 'bedrock/anthropic.claude-v2' },
      params: { aws_region_name: 'eu-west-1', aws_access_key_id: 'os.environ/AWS_KEY', aws_secret_access_key: 'os.environ/AWS_SECRET' },
    },
    { name: 'vertex', model_id: 'vertex_ai/gemini-2.5-pro', params: { vertex_project: 'p' } },
    { name: 'azure-2', model_id: 'azure/gpt', api_base: 'https://two.openai.azure.com', api_key_env: 'K' },
  ],
};

/** Checks a property for arbitrary chains and both preferences. */
const everyChain = (check: (request: ChainRequest, prefer: 'failover' | 'retry') => void) =>
  fc.assert(fc.property(anyChain, fc.constantFrom('failover' as const, 'retry' as const), check), { numRuns: 150 });

describe('Bifrost (checked against its published schema, not run)', () => {
  const isBifrost = ajv.compile(bifrostSchema);
  const isProvider = ajv.compile({ $ref: `${bifrostSchema.$id}#/$defs/provider` });

  test('every export is accepted, its rule names existing providers, and its keys are references', () => {
    everyChain((request, prefer) => {
      const config = JSON.parse(exported(define(request), 'bifrost', prefer).content) as {
        providers: Record<string, Shape & { keys: { value?: string }[] }>;
        governance: { routing_rules: { targets: { provider: string }[]; fallbacks: string[] }[] };
      };
      assert.ok(isBifrost(config), ajv.errorsText(isBifrost.errors));
      const [rule] = config.governance.routing_rules;
      for (const name of [rule!.targets[0]!.provider, ...rule!.fallbacks.map((fallback) => fallback.split('/', 1)[0]!)]) {
        assert.ok(Object.hasOwn(config.providers, name), name);
      }
      for (const [name, provider] of Object.entries(config.providers)) {
        // The schema says nothing of providers with names of their own; they are the same objects as those of known kinds.
        assert.ok(isProvider(provider), `${name}: ${ajv.errorsText(isProvider.errors)}`);
        for (const { value } of provider.keys) if (value !== undefined) assert.match(value, /^env\.[A-Za-z_]\w*$/);
      }
    });
  });

  test('Azure, Bedrock and Vertex AI are exported as such, with their accounts', () => {
    const { content, warnings } = exported(define(clouds), 'bifrost');
    const config = JSON.parse(content);
    assert.equal(isBifrost(config), true, ajv.errorsText(isBifrost.errors));
    const { azure, bedrock, vertex, 'azure-2': second } = config.providers;
    assert.deepEqual(azure.keys[0].azure_key_config, { endpoint: 'https://one.openai.azure.com', api_version: '2024-10-21' });
    assert.deepEqual(bedrock.keys[0].bedrock_key_config, { region: 'eu-west-1', access_key: 'env.AWS_KEY', secret_key: 'env.AWS_SECRET' });
    assert.deepEqual(vertex.keys[0].vertex_key_config, { project_id: 'p', region: 'us-central1' });
    assert.equal(second.custom_provider_config.base_provider_type, 'azure');
    assert.deepEqual(
      warnings.filter(({ code }) => code === 'params').map(({ field }) => field),
      ['providers.2.params.vertex_location'],
    );
  });

  test('the schema finds a misspelt field', () => {
    const text = exported(define(threeProviders), 'bifrost').content;
    assert.equal(isBifrost(JSON.parse(text.replace('max_retries', 'maxRetries'))), false);
    assert.equal(isBifrost(JSON.parse(text.replace('"*"', '"sk-1", 1'))), false);
  });
});

describe('Envoy AI Gateway (checked against its published schemas, not run)', () => {
  // Kubernetes' formats, such as `int32`, repeat what the limits say.
  const kubernetes = new Ajv2019({ allErrors: true, strict: false, validateFormats: false });
  const validators = Object.fromEntries(Object.entries(envoySchemas).map(([kind, schema]) => [kind, kubernetes.compile(schema)]));

  function faultsOf(text: string): string[] {
    return parseAllDocuments(text).flatMap((document) => {
      const manifest = document.toJS() as { apiVersion: string; kind: string };
      const validate = validators[`${manifest.apiVersion}/${manifest.kind}`];
      if (validate === undefined) return [`unknown kind ${manifest.apiVersion}/${manifest.kind}`];
      const isValid: boolean = validate(manifest);
      return isValid ? [] : [`${manifest.kind}: ${ajv.errorsText(validate.errors)}`];
    });
  }

  test('every export is accepted by a cluster, and its references exist', () => {
    everyChain((request, prefer) => {
      const { content } = exported(define(request), 'envoy-ai-gateway', prefer);
      assert.deepEqual(faultsOf(content), []);
      const manifests = parseAllDocuments(content).map(
        (document) => document.toJS() as { kind: string; metadata: { name: string }; spec: Shape },
      );
      const named = new Set(manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`));
      assert.equal(named.size, manifests.length, 'no two objects of one kind have one name');
      for (const { spec } of manifests) {
        for (const { kind, name } of referencesIn(spec)) {
          // The gateway creates a route with the name of the AIGatewayRoute.
          assert.ok(named.has(`${kind === 'HTTPRoute' ? 'AIGatewayRoute' : kind}/${name}`), `${kind}/${name}`);
        }
      }
    });
  });

  test('Azure, Bedrock and Vertex AI are exported as such, with their accounts', () => {
    const { content } = exported(define(clouds), 'envoy-ai-gateway');
    assert.deepEqual(faultsOf(content), []);
    for (const part of [
      /schema:\n\s+name: AzureOpenAI\n\s+version: "2024-10-21"/,
      /type: AWSCredentials\n\s+awsCredentials:\n\s+region: eu-west-1/,
      /hostname: bedrock-runtime\.eu-west-1\.amazonaws\.com/,
      /type: GCPCredentials\n\s+gcpCredentials:\n\s+projectName: p\n\s+region: us-central1/,
      /hostname: us-central1-aiplatform\.googleapis\.com/,
    ])
      assert.match(content, part);
  });

  test('the schemas find a misspelt field', () => {
    const { content } = exported(define(threeProviders), 'envoy-ai-gateway');
    assert.match(faultsOf(content.replace('numAttemptsPerPriority', 'numAttemptPerPriority')).join(), /BackendTrafficPolicy/);
    assert.match(faultsOf(content.replace('networking.k8s.io/v1\n', 'networking.k8s.io/v1alpha9\n')).join(), /unknown kind/);
    assert.match(faultsOf(content.replace(/timeout: \w+/, 'timeout: 120000ms')).join(), /timeout must match pattern/);
  });

  test('a host that no certificate or no cluster can name gets a placeholder that reaches nothing, and a warning', () => {
    for (const api_base of [
      'https://[::1]/v1',
      'https://10.0.0.1/v1',
      'http://my_host:8080/v1',
      `https://${'a.'.repeat(130)}example.com/v1`,
    ]) {
      const chain = define({ name: 'a', providers: [{ name: 'a', model_id: 'openai/m', api_base }] });
      const { content, warnings } = exported(chain, 'envoy-ai-gateway');
      assert.deepEqual(faultsOf(content), [], api_base);
      assert.match(content, /a-0\.invalid/);
      assert.ok(warnings.some(({ code, detail }) => code === 'api_base' && detail.includes('a-0.invalid')));
    }
  });

  test('every timeout is a duration of GEP-2257, in the largest units', () => {
    const timeoutOf = (timeout_ms: number) => {
      const { content } = exported(define({ name: 'a', providers: [{ name: 'a', model_id: 'openai/m', timeout_ms }] }), 'envoy-ai-gateway');
      return /timeout: (\w+)/.exec(content)![1];
    };
    assert.deepEqual([1, 30_000, 90_000, 120_000, 599_999, 600_000].map(timeoutOf), ['1ms', '30s', '1m30s', '2m', '9m59s999ms', '10m']);
  });
});

function referencesIn(value: unknown): { kind: string; name: string }[] {
  if (typeof value !== 'object' || value === null) return [];
  const { kind, name } = value as Shape;
  const own = typeof kind === 'string' && typeof name === 'string' ? [{ kind, name }] : [];
  return [...own, ...Object.values(value).flatMap(referencesIn)];
}
