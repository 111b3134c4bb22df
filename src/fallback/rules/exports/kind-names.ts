import type { Provider } from '../../model/chain.ts';
import { apiBase, knownKind, protocolOf } from '../kinds.ts';
import type { WarningList } from '../warning-list.ts';
import { at } from './target.ts';

/** The targets with their own names for kinds of providers. */
export type NamingTarget = 'litellm' | 'portkey' | 'bifrost';

/** The targets' names of the kinds that they know. */
const names: Readonly<Record<NamingTarget, Readonly<Record<string, string>>>> = {
  litellm: {
    ...same([
      'openai',
      'anthropic',
      'mistral',
      'groq',
      'gemini',
      'deepseek',
      'openrouter',
      'xai',
      'cohere',
      'perplexity',
      'cerebras',
      'deepinfra',
    ]),
    together: 'together_ai',
    fireworks: 'fireworks_ai',
    nvidia: 'nvidia_nim',
  },
  portkey: {
    ...same(['openai', 'anthropic', 'groq', 'deepseek', 'openrouter', 'cohere', 'cerebras', 'deepinfra']),
    mistral: 'mistral-ai',
    gemini: 'google',
    together: 'together-ai',
    fireworks: 'fireworks-ai',
    xai: 'x-ai',
    perplexity: 'perplexity-ai',
  },
  bifrost: same(['openai', 'anthropic', 'mistral', 'groq', 'gemini', 'openrouter', 'xai', 'cohere', 'perplexity', 'cerebras']),
};

function same(kinds: readonly string[]): Record<string, string> {
  return Object.fromEntries(kinds.map((kind) => [kind, kind]));
}

/** A target's name of a kind; null if the target does not know the kind. */
export function nameOfKind(target: NamingTarget, kind: string | null): string | null {
  return kind !== null && Object.hasOwn(names[target], kind) ? names[target][kind]! : null;
}

/** The kind with this name at a target; null for an unknown name. */
export function kindNamed(target: NamingTarget, name: string): string | null {
  return Object.keys(names[target]).find((kind) => names[target][kind] === name) ?? null;
}

/**
 * A provider's kind and address for a target. A provider without a kind, or of a kind that the target does not know, is
 * exported as `openai` with the address of its API, with a warning.
 */
export function addressed(
  target: NamingTarget,
  provider: Provider,
  index: number,
  warnings: WarningList,
): { kind: string; base: string | null } {
  const kind = nameOfKind(target, provider.provider);
  if (kind !== null) return { kind, base: provider.api_base };
  warnOfKind(provider, index, warnings);
  return { kind: names[target].openai!, base: apiBase(provider) };
}

/** Warns that a provider of an unknown kind is exported as OpenAI-compatible. */
export function warnOfKind({ name, provider, api_base }: Provider, index: number, warnings: WarningList): void {
  const why = provider === null ? 'has no known kind' : `is of kind ${provider}, which the target does not know`;
  const where = provider === null && api_base === null ? ' at api.openai.com' : '';
  warnings.loss('provider_kind', at(index, 'provider'), `${name} ${why}; it is exported as OpenAI-compatible${where}.`);
}

/**
 * The name of the environment variable with a provider's key. Targets require one. If the chain names none, this is the
 * usual variable of the kind, or one derived from the provider's name, with a warning.
 */
export function keyEnv(provider: Provider, index: number, slugged: string, warnings: WarningList): string {
  if (provider.api_key_env !== null) return provider.api_key_env;
  const usual = provider.api_base === null ? knownKind(provider.provider)?.api_key_env : null;
  const assumed =
    usual ??
    `${slugged
      .toUpperCase()
      .replaceAll('-', '_')
      .replace(/^(?=\d)/, '_')}_API_KEY`;
  warnings.loss(
    'key_assumed',
    at(index, 'api_key_env'),
    `${provider.name} has no api_key_env, which the target needs; the export refers to the environment variable ${assumed}.`,
  );
  return assumed;
}

/** The base URL of a provider's API with its version path; OpenAI's if none is known. */
export const baseOf = (provider: Provider): string => apiBase(provider) ?? knownKind('openai')!.api_base;

/** Whether a provider uses Anthropic's messages API; all others use OpenAI's. */
export const speaksAnthropic = (provider: Provider): boolean => protocolOf(provider) === 'anthropic';
