import { invalid } from '../../../kit/errors.ts';
import { readJson } from '../../../kit/json.ts';
import type { ChainDefinition, Params, Provider } from '../../model/chain.ts';
import type { Export } from '../../model/export.ts';
import type { Finding } from '../../model/finding.ts';
import { type ExportFormat, measuredOf, type RehearsalFormat, rehearsalFormats, targets } from '../../model/targets.ts';
import { cooldownOf } from '../cooldown.ts';
import { FindingList, reasonsOf } from '../finding-list.ts';
import { isAzure, knownKind, twoProtocolKinds } from '../kinds.ts';
import { variableOf } from '../params.ts';
import { rehearsable } from '../rehearsal.ts';
import { routingOf } from '../routing.ts';
import { listed } from '../wording.ts';
import { exportChain, gatewayFor } from './export.ts';
import { fakeAddress, rehearsalKey } from './gateway.ts';
import type { ExportInput } from './target.ts';
import { yamlText } from './yaml.ts';

const isFormat = (format: ExportFormat): format is RehearsalFormat => (rehearsalFormats as readonly string[]).includes(format);

/** @throws ServiceError 400 for a format whose addresses can't be replaced */
export function requireRehearsalFormat(format: ExportFormat): RehearsalFormat {
  if (isFormat(format)) return format;
  throw invalid(
    'format',
    `An export for a rehearsal has one of the formats ${listed(rehearsalFormats)}; ${format} has no addresses to replace.`,
  );
}

/** A chain to export for a rehearsal. */
interface RehearsalInput extends Pick<ExportInput, 'chain' | 'prefer'> {
  /** Whether the gateway remembers failures, as outages in time need it; scenes would disturb one another. */
  readonly keepState?: boolean;
}

/**
 * Exports a chain for a rehearsal: every address leads to the fake providers below `base`, and every key is the literal
 * `rehearsal`. Providers that can't be redirected are left out, with a warning.
 * @throws ServiceError 400 if no provider is left
 */
export function exportForRehearsal(
  format: RehearsalFormat,
  { chain: whole, prefer, keepState = false }: RehearsalInput,
  base: string,
): Export {
  const { chain, left } = requireRehearsable(whole);
  const redirected = { ...chain, providers: chain.providers.map((provider) => redirect(provider, format, base)) };
  const made = exportChain(format, { chain: redirected, routing: routingOf(redirected), prefer });
  const content = withLiteralKeys(made.content);
  const config = typeof made.config === 'string' ? content : literal(made.config);
  const warnings = [...made.warnings, ...left.map(leftOut)];
  const common = { ...made, lossless: made.lossless && left.length === 0 };
  const { memory } = gatewayFor(format) ?? {};
  if (memory === undefined || keepState || !hasCooldowns(chain)) return { ...common, content, config, warnings };
  const without = memory.without(config);
  const note = { code: 'no_cooldowns', field: null, detail: memory.note('keep_state=true'), loss: false };
  return { ...common, content: yamlText(without), config: without, warnings: [...warnings, note] };
}

/** What an export for a rehearsal does otherwise than its chain, by failures; the chain has no provider that is left out. */
export function findingsOfExport(format: RehearsalFormat, input: RehearsalInput): Finding[] {
  const { warnings } = exportForRehearsal(format, input, 'http://127.0.0.1');
  const { chain } = input;
  const names = chain.providers.map(({ name }) => name);
  const list = new FindingList(measuredOf(format));
  for (const { kind = 'stream', detail, ...about } of gatewayFor(format)?.ofStreams?.(chain) ?? [])
    if (about.loss) list.add(kind, null, detail, about);
  // Warnings are about what the format can have, which nobody has to measure.
  for (const warning of warnings)
    for (const { detail, ...about } of reasonsOf(warning, names))
      if (about.loss) list.add(warning.code, null, detail, { ...about, measured: false });
  return list.items;
}

const hasCooldowns = (chain: ChainDefinition): boolean => chain.providers.some((provider) => cooldownOf(chain, provider) !== null);

/** The chain without the providers that can't be redirected. @throws ServiceError 400 if no provider is left */
export function requireRehearsable(chain: ChainDefinition): ReturnType<typeof rehearsable> {
  const found = rehearsable(chain);
  if (found.chain.providers.length > 0) return found;
  throw invalid('providers', `No provider of the chain can be rehearsed: ${listed(found.left)} can't be redirected to fake providers.`);
}

/** The sentence about a provider that is left out. */
export const leftOutSentence = (name: string): string =>
  `${name} is left out of the rehearsal, because its protocol can't be redirected to a fake provider.`;

const leftOut = (name: string) => ({ code: 'left_out', field: null, detail: leftOutSentence(name), loss: true });

function redirect(provider: Provider, format: RehearsalFormat, base: string): Provider {
  const { provider: kind, name } = provider;
  // A resource of Azure that is called by its name can't be redirected, so its fake provider is one of OpenAI's kind.
  const staysAzure = isAzure(kind) && targets[format].rehearsal!.hasAzureAddress;
  const address = fakeAddress(base, name);
  return {
    ...provider,
    provider: staysAzure ? kind : isPlayedAs(kind) ? kind : 'openai',
    api_base: staysAzure ? address : `${address}/v1`,
    api_key_env: rehearsalKey,
    params: staysAzure ? azureParams(provider.params) : plainParams(provider.params),
  };
}

const azureParams = ({ api_version }: Params): Params => (api_version === undefined ? {} : { api_version });

/** Whether fake providers have the protocol by which programs call a kind. */
const isPlayedAs = (kind: string | null): boolean => knownKind(kind) !== undefined && !twoProtocolKinds.has(kind ?? '');

/** The parameters that need no secret and no account. */
function plainParams({ headers }: Params): Params {
  if (typeof headers !== 'object') return {};
  const plain = Object.entries(headers).filter(([, value]) => variableOf(value) === undefined);
  return plain.length === 0 ? {} : { headers: Object.fromEntries(plain) };
}

/** References to a variable named `rehearsal`, as the formats write them. */
const references = [`os.environ/${rehearsalKey}`, `\${${rehearsalKey}}`, `process.env["${rehearsalKey}"]`] as const;

function withLiteralKeys(content: string): string {
  const [environ, braces, node] = references;
  return content.replaceAll(environ, rehearsalKey).replaceAll(braces, rehearsalKey).replaceAll(node, `"${rehearsalKey}"`);
}

/** A configuration whose references are replaced by the key itself. */
const literal = (config: unknown): unknown => readJson(withLiteralKeys(JSON.stringify(config)));
