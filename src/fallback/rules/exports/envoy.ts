import type { Provider } from '../../model/chain.ts';
import { conditionOf, knownStatuses } from '../conditions.ts';
import { knownKind, modelName } from '../kinds.ts';
import type { WarningList } from '../warning-list.ts';
import { duration, listed } from '../wording.ts';
import { oneBudget } from './budget.ts';
import { CloudParams, cloudKind } from './cloud.ts';
import { baseOf, keyEnv, speaksAnthropic, warnOfKind } from './kind-names.ts';
import { at, type Exporter, reactionTo, type Source, slug, slugs, warnOfUnsupportedFields, yamlText } from './target.ts';

/** A Kubernetes object. */
interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string };
  spec: Record<string, unknown>;
}

const gatewayGroup = 'gateway.networking.k8s.io';
const envoyGroup = 'gateway.envoyproxy.io';
const aiGroup = 'aigateway.envoyproxy.io';

/**
 * Kubernetes manifests for Envoy AI Gateway: a route with the providers as backends by priority, a retry policy for the
 * route, and for each provider its backend, TLS and key. The keys are Secrets of the cluster.
 * https://aigateway.envoyproxy.io/docs/capabilities/traffic/provider-fallback
 */
export const envoyAiGateway: Exporter = (source, warnings) => {
  const { chain } = source;
  const name = slug(chain.name);
  const secrets = slugs(chain.providers).map((provider, index) => secretOf(chain.providers[index]!, index, provider, warnings));
  const clouds = chain.providers.map((provider, index) => cloudForm(provider, index, secrets[index]!.name, warnings));
  const manifests: Manifest[] = [
    {
      apiVersion: `${gatewayGroup}/v1`,
      kind: 'GatewayClass',
      metadata: { name },
      spec: { controllerName: `${envoyGroup}/gatewayclass-controller` },
    },
    namespaced(`${gatewayGroup}/v1`, 'Gateway', name, {
      gatewayClassName: name,
      listeners: [{ name: 'http', protocol: 'HTTP', port: 80 }],
    }),
    routeManifest(chain.name, name, chain.providers),
    policyManifest(name, source, warnings),
    ...chain.providers.flatMap((provider, index) =>
      backendManifests(provider, `${name}-${index}`, { ...secrets[index]!, cloud: clouds[index]! }, index, warnings),
    ),
  ];
  warnOfUnsupportedFields(source, warnings, { params: true });
  const needed = [...new Map(secrets.map((secret) => [secret.name, secret])).values()];
  warnings.add(
    'secrets',
    null,
    `The cluster needs a Secret for each key: ${listed(needed.map((secret) => `${secret.name} (${secret.field}: ${secret.env})`))}.`,
  );
  const content = manifests.map(yamlText).join('---\n');
  return { filename: `${name}.envoy.yaml`, content_type: 'application/yaml', config: manifests, content };
};

function namespaced(apiVersion: string, kind: string, name: string, spec: Record<string, unknown>): Manifest {
  return { apiVersion, kind, metadata: { name, namespace: 'default' }, spec };
}

interface Secret {
  name: string;
  /** Its field. */
  field: string;
  /** What the field has: the value of a variable, or a file. */
  env: string;
}

function secretOf(provider: Provider, index: number, slugged: string, warnings: WarningList): Secret {
  const cloud = cloudKind(provider);
  if (cloud === 'bedrock') return { name: `${slugged}-aws`, field: 'credentials', env: 'a credentials file of AWS' };
  if (cloud === 'vertex_ai') return { name: `${slugged}-gcp`, field: 'service_account.json', env: 'the key file of a service account' };
  const env = keyEnv(provider, index, slugged, warnings);
  return { name: slug(env, 'key'), field: 'apiKey', env };
}

/** How a provider of a cloud is reached; null for other providers. */
interface CloudForm {
  base: string;
  schema: Record<string, string>;
  security: Record<string, unknown>;
}

function cloudForm(provider: Provider, index: number, secret: string, warnings: WarningList): CloudForm | null {
  const params = new CloudParams(provider, index, 'Envoy', warnings);
  const secretRef = { name: secret, namespace: 'default' };
  const form = (): CloudForm | null => {
    switch (cloudKind(provider)) {
      case 'azure':
        return {
          base: provider.api_base ?? params.required('api_base', 'https://resource.invalid'),
          schema: { name: 'AzureOpenAI', ...params.named({ version: 'api_version' }, (variable) => variable) },
          security: { type: 'AzureAPIKey', azureAPIKey: { secretRef } },
        };
      case 'bedrock': {
        const region = params.required('aws_region_name', 'us-east-1');
        // Their values are in the credentials file.
        params.named({ id: 'aws_access_key_id', key: 'aws_secret_access_key', token: 'aws_session_token' }, (variable) => variable);
        return {
          base: `https://bedrock-runtime.${region}.amazonaws.com`,
          schema: { name: 'AWSBedrock' },
          security: { type: 'AWSCredentials', awsCredentials: { region, credentialsFile: { secretRef } } },
        };
      }
      case 'vertex_ai': {
        const projectName = params.required('vertex_project', 'project');
        const region = params.required('vertex_location', 'us-central1');
        params.named({ file: 'vertex_credentials' }, (variable) => variable);
        return {
          base: `https://${region === 'global' ? '' : `${region}-`}aiplatform.googleapis.com`,
          schema: { name: /^claude/.test(modelName(provider)) ? 'GCPAnthropic' : 'GCPVertexAI' },
          security: { type: 'GCPCredentials', gcpCredentials: { projectName, region, credentialsFile: { secretRef } } },
        };
      }
      case null:
        return null;
    }
  };
  const found = form();
  params.warnOfOthers();
  return found;
}

function routeManifest(model: string, name: string, providers: readonly Provider[]): Manifest {
  return namespaced(`${aiGroup}/v1beta1`, 'AIGatewayRoute', name, {
    parentRefs: [{ name, kind: 'Gateway', group: gatewayGroup }],
    rules: [
      {
        matches: [{ headers: [{ type: 'Exact', name: 'x-ai-eg-model', value: model }] }],
        backendRefs: providers.map((provider, priority) => ({
          name: `${name}-${priority}`,
          modelNameOverride: modelName(provider),
          priority,
        })),
      },
    ],
  });
}

/** The retry policy of the route: `numRetries` is the total for all providers. */
function policyManifest(name: string, source: Source, warnings: WarningList): Manifest {
  const { providers } = source.chain;
  const attempts = 1 + oneBudget(source, 'Envoy', warnings);
  const timeout = Math.max(...providers.map(({ timeout_ms }) => timeout_ms));
  if (providers.some(({ timeout_ms }) => timeout_ms !== timeout)) {
    warnings.loss('timeout', 'providers', `Envoy has one timeout for all providers; the export has the longest, ${duration(timeout)}.`);
  }
  const statuses = triedAgain(source, attempts > 1, warnings);
  return namespaced(`${envoyGroup}/v1alpha1`, 'BackendTrafficPolicy', name, {
    targetRefs: [{ group: gatewayGroup, kind: 'HTTPRoute', name }],
    retry: {
      numAttemptsPerPriority: attempts,
      numRetries: attempts * providers.length - 1,
      perRetry: { timeout: gatewayDuration(timeout), backOff: { baseInterval: '500ms', maxInterval: '5s' } },
      retryOn: {
        ...(statuses.length > 0 ? { httpStatusCodes: statuses } : {}),
        triggers: ['retriable-status-codes', ...connectionTriggers(source, warnings)],
      },
    },
  });
}

/** A duration of the Gateway API (GEP-2257): up to five digits before each unit, the largest unit first. */
function gatewayDuration(ms: number): string {
  const parts = [
    [Math.floor(ms / 60_000), 'm'],
    [Math.floor(ms / 1000) % 60, 's'],
    [ms % 1000, 'ms'],
  ] as const;
  return parts.map(([count, unit]) => (count === 0 ? '' : `${count}${unit}`)).join('');
}

/** The statuses on which Envoy retries, at the same or another provider. */
function triedAgain(source: Source, retries: boolean, warnings: WarningList): number[] {
  const indexes = source.chain.providers.length === 1 ? [0] : source.chain.providers.slice(0, -1).map((_, index) => index);
  const triedBy = (index: number) =>
    knownStatuses.filter((status) => {
      const reaction = reactionTo(source, index, conditionOf(status), status);
      return reaction.failsOver || (retries && reaction.retries > 0);
    });
  const statuses = triedBy(indexes[0]!);
  if (indexes.some((index) => String(triedBy(index)) !== String(statuses))) {
    warnings.loss(
      'one_policy',
      'fallback_rules',
      'Envoy has one retry policy for all providers; the first provider decides which statuses are tried again.',
    );
  }
  for (const { condition, next_provider } of source.routing.providers[0]!.decisions) {
    const byStatus = knownStatuses.some((status) => conditionOf(status) === condition);
    if (!byStatus && condition !== 'connection_error' && next_provider !== null) {
      warnings.loss('no_status', null, `Envoy decides by status, and ${condition} has none of its own, so Envoy does not fail over on it.`);
    }
  }
  return statuses;
}

function connectionTriggers(source: Source, warnings: WarningList): string[] {
  const reaction = reactionTo(source, 0, 'connection_error');
  if (reaction.failsOver || reaction.retries > 0) return ['connect-failure', 'reset'];
  if (source.chain.providers.length > 1 && reactionTo(source, 0, 'timeout').failsOver) {
    warnings.loss(
      'connection_error',
      null,
      'Envoy distinguishes its own timeout from a failed connection only by the reset trigger, which the export omits.',
    );
  }
  return [];
}

function backendManifests(
  provider: Provider,
  name: string,
  secret: { name: string; cloud: CloudForm | null },
  index: number,
  warnings: WarningList,
): Manifest[] {
  const { cloud } = secret;
  const { protocol, hostname, port, pathname } = new URL(cloud?.base ?? baseOf(provider));
  const secure = protocol === 'https:';
  const prefix = pathname.replace(/\/$/, '');
  if (cloud === null && knownKind(provider.provider) === undefined) warnOfKind(provider, index, warnings);
  if (provider.max_tokens !== null)
    warnings.loss('max_tokens', at(index, 'max_tokens'), `${provider.name}: Envoy takes max_tokens only from each request.`);
  const isAddress = 'ip' in endpoint(hostname, 443);
  // A reserved name (RFC 2606) reaches nothing until somebody replaces it.
  const placeholder = `${name}.invalid`;
  const host = isAddress || gatewayName.test(hostname) ? hostname : placeholder;
  if (secure && isAddress) {
    warnings.loss(
      'api_base',
      at(index, 'api_base'),
      `${provider.name}: Envoy checks a certificate by a host name, and this address has none; replace ${placeholder} by the name in its certificate.`,
    );
  } else if (host !== hostname) {
    warnings.loss(
      'api_base',
      at(index, 'api_base'),
      `${provider.name}: Kubernetes does not accept ${hostname} as a host name; replace ${placeholder} by another name of it.`,
    );
  }
  const anthropic = speaksAnthropic(provider);
  const schema = cloud?.schema ?? { name: anthropic ? 'Anthropic' : 'OpenAI', ...(prefix === '' || prefix === '/v1' ? {} : { prefix }) };
  const secretRef = { name: secret.name, namespace: 'default' };
  return [
    namespaced(`${aiGroup}/v1beta1`, 'AIServiceBackend', name, { schema, backendRef: { name, kind: 'Backend', group: envoyGroup } }),
    namespaced(`${aiGroup}/v1beta1`, 'BackendSecurityPolicy', `${name}-key`, {
      targetRefs: [{ group: aiGroup, kind: 'AIServiceBackend', name }],
      ...(cloud?.security ??
        (anthropic ? { type: 'AnthropicAPIKey', anthropicAPIKey: { secretRef } } : { type: 'APIKey', apiKey: { secretRef } })),
    }),
    namespaced(`${envoyGroup}/v1alpha1`, 'Backend', name, {
      endpoints: [endpoint(host, port === '' ? (secure ? 443 : 80) : Number(port))],
    }),
    ...(secure
      ? [
          namespaced(`${gatewayGroup}/v1`, 'BackendTLSPolicy', `${name}-tls`, {
            targetRefs: [{ group: envoyGroup, kind: 'Backend', name }],
            validation: { wellKnownCACertificates: 'System', hostname: isAddress ? placeholder : host },
          }),
        ]
      : []),
  ];
}

/** A host name that the Gateway API accepts: labels of RFC 1123, of at most 253 characters. */
const gatewayName = /^(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

/** The endpoint of a backend, by name or by address. */
function endpoint(hostname: string, port: number): Record<string, unknown> {
  const address = hostname.replace(/^\[|\]$/g, '');
  return /^[\d.]+$|:/.test(address) ? { ip: { address: unabridged(address), port } } : { fqdn: { hostname, port } };
}

/** An IPv6 address with all of its groups, since Envoy Gateway does not accept every short form. */
function unabridged(address: string): string {
  const [head, tail] = address.split('::').map((part) => (part === '' ? [] : part.split(':')));
  if (head === undefined || tail === undefined) return address;
  return [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail].join(':');
}
