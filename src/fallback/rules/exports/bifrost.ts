import type { Provider } from '../../model/chain.ts';
import { kinds, modelName } from '../kinds.ts';
import type { WarningList } from '../warning-list.ts';
import { duration } from '../wording.ts';
import { oneBudget } from './budget.ts';
import { addressed, keyEnv, nameOfKind, speaksAnthropic } from './kind-names.ts';
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
    providers[name] = name === provider.provider ? entry : { ...entry, custom_provider_config: customConfig(provider) };
    return { provider: name, model: modelName(provider) };
  });
  warnOfEnds(endsOf(source), 'Bifrost falls back on any failure', warnings);
  warnOfUnsupportedFields(source, warnings);
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
  const base = baseUrl(addressed('bifrost', provider, index, warnings).base, provider, index, warnings);
  return {
    keys: [{ name: `${name}-key`, value: `env.${keyEnv(provider, index, name, warnings)}`, models: ['*'], weight: 1 }],
    network_config: {
      ...base,
      default_request_timeout_in_seconds: seconds,
      max_retries,
      ...(max_retries > 0 ? { retry_backoff_initial: 500, retry_backoff_max: 5000 } : {}),
    },
  };
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
function entryName(taken: Record<string, unknown>, provider: Provider, own: string, entry: { keys: { value: string }[] }): string {
  const { provider: kind, api_base } = provider;
  const known = api_base === null ? nameOfKind('bifrost', kind) : null;
  if (known !== null && (taken[known] === undefined || sameSettings(taken[known], entry))) return known;
  let name = own in kinds ? `${own}-custom` : own;
  while (taken[name] !== undefined) name = `${name}-2`;
  return name;
}

const sameSettings = (one: unknown, other: unknown) => JSON.stringify(strip(one)) === JSON.stringify(strip(other));
const strip = (entry: unknown) => {
  const { keys, network_config } = entry as { keys: { value: string }[]; network_config: unknown };
  return { value: keys[0]!.value, network_config };
};

function customConfig(provider: Provider): Record<string, unknown> {
  return {
    base_provider_type: speaksAnthropic(provider) ? 'anthropic' : 'openai',
    allowed_requests: { chat_completion: true, chat_completion_stream: true },
  };
}
