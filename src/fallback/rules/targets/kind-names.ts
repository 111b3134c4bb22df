import type { Provider } from '../../model/chain.ts';
import { litellmKinds } from '../kind-lists.ts';
import { apiBase, foreignKind, knownKind, protocolOf, usualKey } from '../kinds.ts';
import { variableOf } from '../params.ts';
import type { ExportedProvider } from './target.ts';

/** A target's names of kinds of providers. */
export interface KindNames {
  /** The names that it knows. */
  readonly known: ReadonlySet<string>;
  /** Its names that differ from ours, by ours; other names may have dashes for our underscores. */
  readonly aliases: Readonly<Record<string, string>>;
}

/** A target's name of a kind; null if the target does not know the kind. */
export function nameOfKind({ known, aliases }: KindNames, kind: string | null): string | null {
  if (kind === null) return null;
  if (Object.hasOwn(aliases, kind)) return aliases[kind]!;
  return [kind, kind.replaceAll('_', '-')].find((name) => known.has(name)) ?? null;
}

/** The kind with this name at a target; null for an unknown name. Chains spell the names of kinds as LiteLLM does, with underscores. */
export function kindNamed({ known, aliases }: KindNames, name: string): string | null {
  const aliased = Object.keys(aliases).find((kind) => aliases[kind] === name);
  if (aliased !== undefined) return aliased;
  if (!known.has(name)) return null;
  const underscored = name.replaceAll('-', '_');
  return litellmKinds.has(underscored) ? underscored : name;
}

/** An address that leads nowhere (RFC 2606), for an export that can't have the real address: no key reaches a host that nobody named. */
export const unnamedAddress = 'https://address.invalid/v1';

/** The variable that has a provider's address; undefined if none has. */
export const addressVariable = ({ api_base, params }: Provider): string | undefined =>
  api_base === null ? variableOf(params.api_base) : undefined;

/** The base URL of a provider's API in an export. If neither the chain nor the kind names a host, it is an address that leads nowhere, and a warning says so. */
export function baseOf(exported: ExportedProvider): string {
  const { provider, loss } = exported;
  const known = knownBase(provider);
  if (known !== null) return known;
  const variable = addressVariable(provider);
  const why = variable === undefined ? 'has no address' : `has its address in ${variable}, which the target can't read`;
  loss('api_base', 'api_base', `${provider.name} ${why}; replace ${unnamedAddress} in the export.`);
  return unnamedAddress;
}

/** The base URL of a provider's API, which the chain or its kind names; null if neither does. */
export const knownBase = (provider: Provider): string | null =>
  apiBase(provider) ?? (isOpenai(provider) ? knownKind('openai')!.api_base : null);

/** Whether a provider without a kind and an address is taken for a provider of OpenAI: it names OpenAI's key or none, and no virtual key of Portkey. */
const isOpenai = ({ provider, api_key_env, params }: Provider): boolean =>
  provider === null &&
  params.api_base === undefined &&
  params.virtual_key === undefined &&
  (api_key_env === null || api_key_env === knownKind('openai')!.api_key_env);

/**
 * A provider's kind and address for a target. A provider without a kind, or of a kind that the target does not know, is
 * exported as `openai` with the address of its API, with a warning.
 */
export function addressed(names: KindNames, exported: ExportedProvider): { kind: string; base: string | null } {
  const { provider } = exported;
  const kind = nameOfKind(names, provider.provider);
  if (kind !== null) return { kind, base: provider.api_base };
  warnOfKind(exported);
  return { kind: 'openai', base: addressVariable(provider) === undefined && !isOpenai(provider) ? baseOf(exported) : apiBase(provider) };
}

/** Warns that a provider of an unknown kind is exported as OpenAI-compatible. */
function warnOfKind(exported: ExportedProvider): void {
  const { loss, advise } = exported;
  const { name, provider, api_base } = exported.provider;
  const why = provider === null ? 'has no known kind' : `is of kind ${provider}, which this export has no name for`;
  const where = isOpenai(exported.provider) && api_base === null ? ' at api.openai.com' : '';
  // With an address and without a kind, the chain's own calls are OpenAI-compatible too.
  const warn = provider === null && api_base !== null ? advise : loss;
  warn('provider_kind', 'provider', `${name} ${why}; it is exported as OpenAI-compatible${where}.`);
}

/** Warns if a provider of a kind that is not called by its name is exported as OpenAI-compatible. */
export function warnIfUnknown(exported: ExportedProvider): void {
  if (knownKind(exported.provider.provider) === undefined) warnOfKind(exported);
}

/**
 * The name of the environment variable with a provider's key. Targets require one. If the chain names none, this is the
 * usual variable of the kind, or one derived from the provider's name, with a warning.
 */
export function keyEnv({ provider: { name, provider, api_base, api_key_env }, slug, advise }: ExportedProvider): string {
  if (api_key_env !== null) return api_key_env;
  const derived = slug
    .toUpperCase()
    .replaceAll('-', '_')
    .replace(/^(?=\d)/, '_');
  const assumed = usualKey(provider, api_base) ?? `${derived}_API_KEY`;
  const sentence = `${name} has no api_key_env, which the target needs; the export refers to the environment variable ${assumed}.`;
  advise('key_assumed', 'api_key_env', sentence);
  return assumed;
}

/** Whether a provider has no key of its own, since its credentials come from the environment of the target. */
export const hasNoKey = ({ provider, api_key_env, params }: Provider): boolean =>
  api_key_env === null &&
  (foreignKind(provider)?.api_key_env === null || params.virtual_key !== undefined || params.azure_ad_token !== undefined);

/** Whether a provider uses Anthropic's messages API; all others use OpenAI's. */
export const speaksAnthropic = (provider: Provider): boolean => protocolOf(provider) === 'anthropic';
