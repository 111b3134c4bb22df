import { duration } from '../../../../kit/wording.ts';
import type { Provider } from '../../../model/chain.ts';
import { kinds, modelName } from '../../kinds.ts';
import { type CloudParams, cloudForm, cloudKind } from '../cloud.ts';
import { addressed, addressVariable, baseOf, hasNoKey, keyEnv, nameOfKind, speaksAnthropic } from '../kind-names.ts';
import { oneRetryCount } from '../retry-count.ts';
import {
  type ExportedProvider,
  type Exporter,
  slug,
  warnOfEnds,
  warnOfInterrupted,
  warnOfOwnOrders,
  warnOfUnsupportedFields,
} from '../target.ts';
import { kindNames } from './names.ts';

/**
 * A Bifrost gateway configuration (`config.json`): the providers with their keys and network settings, and a routing
 * rule for the chain's name as the model.
 * https://docs.getbifrost.ai/features/fallbacks
 */
export const exportBifrost: Exporter = (source) => {
  const { name } = source.chain;
  const max_retries = oneRetryCount(source, 'Bifrost');
  const providers: Record<string, unknown> = {};
  const [first, ...backups] = source.providers.map((exported) => {
    const { provider } = exported;
    const entry = providerEntry(exported, max_retries);
    const called = entryName(providers, exported, entry);
    const isNative = called === nameOfKind(kindNames, provider.provider);
    providers[called] = isNative ? entry : { ...entry, custom_provider_config: customConfig(provider) };
    return { provider: called, model: modelName(provider) };
  });
  warnOfEnds(source, 'Bifrost falls back on any failure');
  warnOfOwnOrders(source, 'Bifrost');
  warnOfInterrupted(source, 'Bifrost');
  warnOfUnsupportedFields(source, { params: true });
  const rule = {
    id: slug(name),
    name,
    enabled: true,
    cel_expression: `model == ${JSON.stringify(name)}`,
    targets: [{ ...first, weight: 1 }],
    fallbacks: backups.map(({ provider, model }) => `${provider}/${model}`),
    scope: 'global',
    priority: 0,
  };
  return { $schema: 'https://www.getbifrost.ai/schema', providers, governance: { routing_rules: [rule] } };
};

function providerEntry(exported: ExportedProvider, max_retries: number) {
  const { provider, slug: name, loss } = exported;
  const seconds = Math.ceil(provider.timeout_ms / 1000);
  const counted = duration(seconds * 1000);
  if (seconds * 1000 !== provider.timeout_ms)
    loss('timeout', 'timeout_ms', `${provider.name}: Bifrost counts timeouts in whole seconds; the export has ${counted}.`);
  if (provider.max_tokens !== null) loss('max_tokens', 'max_tokens', `${provider.name}: Bifrost takes max_tokens only from each request.`);
  const cloud = cloudConfig(exported);
  const base =
    cloud === null
      ? baseUrl(addressVariable(provider) === undefined ? addressed(kindNames, exported).base : baseOf(exported), exported)
      : {};
  const value = hasNoKey(provider) ? {} : { value: `env.${keyEnv(exported)}` };
  return {
    keys: [{ name: `${name}-key`, ...value, models: ['*'], weight: 1, ...cloud }],
    network_config: {
      ...base,
      default_request_timeout_in_seconds: seconds,
      max_retries,
      ...(max_retries > 0 ? { retry_backoff_initial: 500, retry_backoff_max: 5000 } : {}),
    },
  };
}

/** The part of a key with the account of a cloud; null for other providers. https://docs.getbifrost.ai/providers/supported-providers/overview */
function cloudConfig(exported: ExportedProvider): Record<string, unknown> | null {
  const { provider } = exported;
  const named = (params: CloudParams, names: Record<string, string>) => params.named(names, (variable) => `env.${variable}`);
  return cloudForm<Record<string, unknown>>(exported, 'Bifrost', {
    azure(params) {
      const { endpoint = provider.api_base ?? params.required('api_base', 'https://resource.openai.azure.com'), ...others } = named(
        params,
        {
          ...{ endpoint: 'api_base', api_version: 'api_version' },
          ...(provider.params.client_id && provider.params.client_secret && provider.params.tenant_id
            ? { client_id: 'client_id', client_secret: 'client_secret', tenant_id: 'tenant_id' }
            : {}),
        },
      );
      return { azure_key_config: { endpoint, ...others } };
    },
    bedrock(params) {
      const { region = params.required('aws_region_name', 'us-east-1'), ...others } = named(params, {
        ...{ region: 'aws_region_name', access_key: 'aws_access_key_id', secret_key: 'aws_secret_access_key' },
        ...{ session_token: 'aws_session_token', role_arn: 'aws_role_name', session_name: 'aws_session_name' },
      });
      return { bedrock_key_config: { region, ...others } };
    },
    vertex_ai(params) {
      const {
        project_id = params.required('vertex_project', 'project'),
        region = params.required('vertex_location', 'us-central1'),
        ...others
      } = named(params, { project_id: 'vertex_project', region: 'vertex_location', auth_credentials: 'vertex_credentials' });
      return { vertex_key_config: { project_id, region, ...others } };
    },
  });
}

/** The base URL without its version path, which Bifrost adds. */
function baseUrl(base: string | null, { provider, loss }: ExportedProvider): Record<string, unknown> {
  if (base === null) return {};
  const base_url = base.replace(/\/v1\/?$/, '');
  if (base_url === base)
    loss('api_base', 'api_base', `${provider.name}: Bifrost adds /v1 to base_url, and this address does not end in /v1.`);
  return isPrivate(new URL(base).hostname) ? { base_url, allow_private_network: true } : { base_url };
}

const isPrivate = (host: string) =>
  /^(localhost|.*\.local(host)?|\[?::1\]?|127\..*|10\..*|192\.168\..*|172\.(1[6-9]|2\d|3[01])\..*)$/.test(host);

/** The name of an entry: the name of the kind if Bifrost knows the kind and address and settings match, else the provider's own name. */
function entryName(taken: Record<string, unknown>, { provider, slug: own }: ExportedProvider, entry: object): string {
  const { provider: kind, api_base } = provider;
  const known = api_base === null || cloudKind(provider) !== null ? nameOfKind(kindNames, kind) : null;
  if (known !== null && (taken[known] === undefined || sameSettings(taken[known], entry))) return known;
  let name = own in kinds ? `${own}-custom` : own;
  while (taken[name] !== undefined) name = `${name}-2`;
  return name;
}

const sameSettings = (one: unknown, other: unknown) => JSON.stringify(strip(one)) === JSON.stringify(strip(other));
const strip = (entry: unknown) => {
  const { keys, network_config } = entry as { keys: { name: string }[]; network_config: unknown };
  return { keys: keys.map(({ name: _, ...key }) => key), network_config };
};

function customConfig(provider: Provider): Record<string, unknown> {
  return {
    base_provider_type:
      cloudKind(provider) === null ? (speaksAnthropic(provider) ? 'anthropic' : 'openai') : nameOfKind(kindNames, provider.provider),
    allowed_requests: { chat_completion: true, chat_completion_stream: true },
  };
}
