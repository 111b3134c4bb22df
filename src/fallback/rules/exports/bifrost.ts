import type { Provider } from '../../model/chain.ts';
import { kinds, modelName } from '../kinds.ts';
import type { WarningList } from '../warning-list.ts';
import { duration } from '../wording.ts';
import { oneBudget } from './budget.ts';
import { CloudParams, cloudKind } from './cloud.ts';
import { addressed, hasNoKey, keyEnv, nameOfKind, speaksAnthropic } from './kind-names.ts';
import { at, type Exporter, endsOf, jsonText, slug, slugs, warnOfEnds, warnOfUnsupportedFields } from './target.ts';

/**
 * A Bifrost gateway configuration (`config.json`): the providers with their keys and network settings, and a routing
 * rule for the chain's name as the model.
 * https://docs.getbifrost.ai/features/fallbacks
 */
export const bifrost: Exporter = (source, warnings) => {
  const { chain } = source;
  const max_retries = oneBudget(source, 'Bifrost', warnings);
  const names = slugs(chain.providers);
  const providers: Record<string, unknown> = {};
  const routes = chain.providers.map((provider, index) => {
    const entry = providerEntry(provider, index, names[index]!, max_retries, warnings);
    const name = entryName(providers, provider, names[index]!, entry);
    const isNative = name === nameOfKind('bifrost', provider.provider);
    providers[name] = isNative ? entry : { ...entry, custom_provider_config: customConfig(provider) };
    return { provider: name, model: modelName(provider) };
  });
  warnOfEnds(endsOf(source), 'Bifrost falls back on any failure', warnings);
  warnOfUnsupportedFields(source, warnings, { params: true });
  const [first, ...backups] = routes;
  const rule = {
    id: slug(chain.name),
    name: chain.name,
    enabled: true,
    cel_expression: `model == ${JSON.stringify(chain.name)}`,
    targets: [{ ...first, weight: 1 }],
    fallbacks: backups.map(({ provider, model }) => `${provider}/${model}`),
    scope: 'global',
    priority: 0,
  };
  const config = { $schema: 'https://www.getbifrost.ai/schema', providers, governance: { routing_rules: [rule] } };
  return { filename: `${slug(chain.name)}.bifrost.json`, content_type: 'application/json', config, content: jsonText(config) };
};

function providerEntry(provider: Provider, index: number, name: string, max_retries: number, warnings: WarningList) {
  const seconds = Math.ceil(provider.timeout_ms / 1000);
  if (seconds * 1000 !== provider.timeout_ms) {
    warnings.loss(
      'timeout',
      at(index, 'timeout_ms'),
      `${provider.name}: Bifrost counts timeouts in whole seconds; the export has ${duration(seconds * 1000)}.`,
    );
  }
  if (provider.max_tokens !== null)
    warnings.loss('max_tokens', at(index, 'max_tokens'), `${provider.name}: Bifrost takes max_tokens only from each request.`);
  const cloud = cloudConfig(provider, index, warnings);
  const base = cloud === null ? baseUrl(addressed('bifrost', provider, index, warnings).base, provider, index, warnings) : {};
  const value = hasNoKey(provider) ? {} : { value: `env.${keyEnv(provider, index, name, warnings)}` };
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
function cloudConfig(provider: Provider, index: number, warnings: WarningList): Record<string, unknown> | null {
  const params = new CloudParams(provider, index, 'Bifrost', warnings);
  const named = (names: Record<string, string>) => params.named(names, (variable) => `env.${variable}`);
  const config = (): Record<string, unknown> | null => {
    switch (cloudKind(provider)) {
      case 'azure': {
        const { endpoint = provider.api_base ?? params.required('api_base', 'https://resource.openai.azure.com'), ...others } = named({
          ...{ endpoint: 'api_base', api_version: 'api_version' },
          ...(provider.params.client_id && provider.params.client_secret && provider.params.tenant_id
            ? { client_id: 'client_id', client_secret: 'client_secret', tenant_id: 'tenant_id' }
            : {}),
        });
        return { azure_key_config: { endpoint, ...others } };
      }
      case 'bedrock': {
        const { region = params.required('aws_region_name', 'us-east-1'), ...others } = named({
          ...{ region: 'aws_region_name', access_key: 'aws_access_key_id', secret_key: 'aws_secret_access_key' },
          ...{ session_token: 'aws_session_token', role_arn: 'aws_role_name', session_name: 'aws_session_name' },
        });
        return { bedrock_key_config: { region, ...others } };
      }
      case 'vertex_ai': {
        const {
          project_id = params.required('vertex_project', 'project'),
          region = params.required('vertex_location', 'us-central1'),
          ...others
        } = named({ project_id: 'vertex_project', region: 'vertex_location', auth_credentials: 'vertex_credentials' });
        return { vertex_key_config: { project_id, region, ...others } };
      }
      case null:
        return null;
    }
  };
  const found = config();
  params.warnOfOthers();
  return found;
}

/** The base URL without its version path, which Bifrost adds. */
function baseUrl(base: string | null, provider: Provider, index: number, warnings: WarningList): Record<string, unknown> {
  if (base === null) return {};
  const base_url = base.replace(/\/v1\/?$/, '');
  if (base_url === base) {
    warnings.loss(
      'api_base',
      at(index, 'api_base'),
      `${provider.name}: Bifrost adds /v1 to base_url, and this address does not end in /v1.`,
    );
  }
  const { hostname } = new URL(base);
  return isPrivate(hostname) ? { base_url, allow_private_network: true } : { base_url };
}

const isPrivate = (host: string) =>
  /^(localhost|.*\.local(host)?|\[?::1\]?|127\..*|10\..*|192\.168\..*|172\.(1[6-9]|2\d|3[01])\..*)$/.test(host);

/** The name of an entry: that of the kind if Bifrost knows it and address and settings match, else the provider's own. */
function entryName(taken: Record<string, unknown>, provider: Provider, own: string, entry: object): string {
  const { provider: kind, api_base } = provider;
  const known = api_base === null || cloudKind(provider) !== null ? nameOfKind('bifrost', kind) : null;
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
      cloudKind(provider) === null ? (speaksAnthropic(provider) ? 'anthropic' : 'openai') : nameOfKind('bifrost', provider.provider),
    allowed_requests: { chat_completion: true, chat_completion_stream: true },
  };
}
