import { duration } from '../../../../kit/wording.ts';
import { conditionOfStatus, knownStatuses } from '../../conditions.ts';
import { modelName } from '../../kinds.ts';
import { listed } from '../../wording.ts';
import { cloudForm, cloudKind } from '../cloud.ts';
import { baseOf, keyEnv, speaksAnthropic, warnIfUnknown } from '../kind-names.ts';
import { oneRetryCount } from '../retry-count.ts';
import { type ExportedProvider, type Exporter, type Source, slug, warnOfOwnOrders, warnOfUnsupportedFields } from '../target.ts';

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
export const exportEnvoy: Exporter = (source) => {
  const { chain, providers, warnings } = source;
  const name = slug(chain.name);
  const secrets = providers.map(secretOf);
  const clouds = providers.map((exported) => formOf(exported, secrets[exported.index]!));
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
    routeManifest(name, source),
    policyManifest(name, source),
    ...providers.flatMap((exported) => {
      const { index } = exported;
      return backendManifests(exported, `${name}-${index}`, secrets[index]!, clouds[index]!);
    }),
  ];
  warnOfOwnOrders(source, 'Envoy AI Gateway');
  warnOfUnsupportedFields(source, { params: true });
  const needed = [...new Map(secrets.map((secret) => [secret.name, secret])).values()];
  const list = listed(needed.map((secret) => `${secret.name} (${secret.field}: ${secret.env})`));
  warnings.add('secrets', null, `The cluster needs a Secret for each key: ${list}.`);
  return manifests;
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

function secretOf(exported: ExportedProvider): Secret {
  const cloud = cloudKind(exported.provider);
  if (cloud === 'bedrock') return { name: `${exported.slug}-aws`, field: 'credentials', env: 'a credentials file of AWS' };
  if (cloud === 'vertex_ai')
    return { name: `${exported.slug}-gcp`, field: 'service_account.json', env: 'the key file of a service account' };
  const env = keyEnv(exported);
  return { name: slug(env, 'key'), field: 'apiKey', env };
}

/** How a provider of a cloud is reached; null for other providers. */
interface CloudForm {
  base: string;
  schema: Record<string, string>;
  security: Record<string, unknown>;
}

function formOf(exported: ExportedProvider, { name }: Secret): CloudForm | null {
  const { provider } = exported;
  const secretRef = { name, namespace: 'default' };
  return cloudForm<CloudForm>(exported, 'Envoy', {
    azure: (params) => ({
      base: provider.api_base ?? params.required('api_base', 'https://resource.invalid'),
      schema: { name: 'AzureOpenAI', ...params.named({ version: 'api_version' }, (variable) => variable) },
      security: { type: 'AzureAPIKey', azureAPIKey: { secretRef } },
    }),
    bedrock(params) {
      const region = params.required('aws_region_name', 'us-east-1');
      // Their values are in the credentials file.
      params.named({ id: 'aws_access_key_id', key: 'aws_secret_access_key', token: 'aws_session_token' }, (variable) => variable);
      return {
        base: `https://bedrock-runtime.${region}.amazonaws.com`,
        schema: { name: 'AWSBedrock' },
        security: { type: 'AWSCredentials', awsCredentials: { region, credentialsFile: { secretRef } } },
      };
    },
    vertex_ai(params) {
      const projectName = params.required('vertex_project', 'project');
      const region = params.required('vertex_location', 'us-central1');
      params.named({ file: 'vertex_credentials' }, (variable) => variable);
      return {
        base: `https://${region === 'global' ? '' : `${region}-`}aiplatform.googleapis.com`,
        schema: { name: /^claude/.test(modelName(provider)) ? 'GCPAnthropic' : 'GCPVertexAI' },
        security: { type: 'GCPCredentials', gcpCredentials: { projectName, region, credentialsFile: { secretRef } } },
      };
    },
  });
}

function routeManifest(name: string, { chain, providers }: Source): Manifest {
  return namespaced(`${aiGroup}/v1beta1`, 'AIGatewayRoute', name, {
    parentRefs: [{ name, kind: 'Gateway', group: gatewayGroup }],
    rules: [
      {
        matches: [{ headers: [{ type: 'Exact', name: 'x-ai-eg-model', value: chain.name }] }],
        backendRefs: providers.map(({ provider, index }) => ({
          name: `${name}-${index}`,
          modelNameOverride: modelName(provider),
          priority: index,
        })),
      },
    ],
  });
}

/** The retry policy of the route: `numRetries` is the total for all providers. */
function policyManifest(name: string, source: Source): Manifest {
  const { chain, warnings } = source;
  const { providers } = chain;
  const attempts = 1 + oneRetryCount(source, 'Envoy');
  const timeout = Math.max(...providers.map(({ timeout_ms }) => timeout_ms));
  const longest = `Envoy has one timeout for all providers; the export has the longest, ${duration(timeout)}.`;
  if (providers.some(({ timeout_ms }) => timeout_ms !== timeout)) warnings.loss('timeout', 'providers', longest);
  const statuses = triedAgain(source, attempts > 1);
  return namespaced(`${envoyGroup}/v1alpha1`, 'BackendTrafficPolicy', name, {
    targetRefs: [{ group: gatewayGroup, kind: 'HTTPRoute', name }],
    retry: {
      numAttemptsPerPriority: attempts,
      numRetries: attempts * providers.length - 1,
      perRetry: { timeout: gatewayDuration(timeout), backOff: { baseInterval: '500ms', maxInterval: '5s' } },
      retryOn: {
        ...(statuses.length > 0 ? { httpStatusCodes: statuses } : {}),
        triggers: ['retriable-status-codes', ...connectionTriggers(source)],
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
function triedAgain({ providers, routing, warnings }: Source, retries: boolean): number[] {
  const triedBy = ({ reactionTo }: ExportedProvider) =>
    knownStatuses.filter((status) => {
      const reaction = reactionTo(conditionOfStatus(status), status);
      return reaction.failsOver || (retries && reaction.retries > 0);
    });
  const statuses = triedBy(providers[0]!);
  if (providers.slice(0, -1).some((other) => String(triedBy(other)) !== String(statuses))) {
    const sentence = 'Envoy has one retry policy for all providers; the first provider decides which statuses are tried again.';
    warnings.loss('one_policy', 'fallback_rules', sentence);
  }
  for (const { condition, next_provider } of routing.providers[0]!.decisions) {
    const byStatus = knownStatuses.some((status) => conditionOfStatus(status) === condition);
    if (byStatus || condition === 'connection_error' || next_provider === null) continue;
    warnings.loss('no_status', null, `Envoy decides by status, and ${condition} has none of its own, so Envoy does not fail over on it.`);
  }
  return statuses;
}

function connectionTriggers({ providers, warnings }: Source): string[] {
  const { reactionTo, isLast } = providers[0]!;
  const { failsOver, retries } = reactionTo('connection_error');
  if (failsOver || retries > 0) return ['connect-failure', 'reset'];
  const sentence = 'Envoy distinguishes its own timeout from a failed connection only by the reset trigger, which the export omits.';
  if (!isLast && reactionTo('timeout').failsOver) warnings.loss('connection_error', null, sentence);
  return [];
}

/** The host by which Kubernetes reaches a provider: its own, or a placeholder to be replaced. */
function hostOf({ provider: { name }, loss }: ExportedProvider, { protocol, hostname }: URL, backend: string) {
  // A reserved name (RFC 2606) reaches nothing until somebody replaces it.
  const placeholder = `${backend}.invalid`;
  const isAddress = 'ip' in endpoint(hostname, 443);
  const host = isAddress || gatewayName.test(hostname) ? hostname : placeholder;
  if (protocol === 'https:' && isAddress) {
    const why = `Envoy checks a certificate by a host name, and this address has none; replace ${placeholder} by the name in its certificate`;
    loss('api_base', 'api_base', `${name}: ${why}.`);
    return { host, certificate: placeholder };
  }
  const sentence = `${name}: Kubernetes does not accept ${hostname} as a host name; replace ${placeholder} by another name of it.`;
  if (host !== hostname) loss('api_base', 'api_base', sentence);
  return { host, certificate: host };
}

function backendManifests(exported: ExportedProvider, name: string, secret: Secret, cloud: CloudForm | null): Manifest[] {
  const { provider, loss } = exported;
  const url = new URL(cloud?.base ?? baseOf(exported));
  const isSecure = url.protocol === 'https:';
  const prefix = url.pathname.replace(/\/$/, '');
  if (cloud === null) warnIfUnknown(exported);
  if (provider.max_tokens !== null) loss('max_tokens', 'max_tokens', `${provider.name}: Envoy takes max_tokens only from each request.`);
  const { host, certificate } = hostOf(exported, url, name);
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
      endpoints: [endpoint(host, url.port === '' ? (isSecure ? 443 : 80) : Number(url.port))],
    }),
    ...(isSecure
      ? [
          namespaced(`${gatewayGroup}/v1`, 'BackendTLSPolicy', `${name}-tls`, {
            targetRefs: [{ group: envoyGroup, kind: 'Backend', name }],
            validation: { wellKnownCACertificates: 'System', hostname: certificate },
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
