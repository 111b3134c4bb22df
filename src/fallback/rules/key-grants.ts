import { isLoopback } from '../../kit/loopback.ts';
import type { Provider } from '../model/chain.ts';
import { apiBase, kinds } from './kinds.ts';

const keyPrefix = /^(sk[-_]|pk[-_]|rk[-_]|gsk_|xai-|hf_|ghp_|gho_|github_pat_|AIza|AKIA|ASIA|pplx-|r8_|csk-|nvapi-|ya29\.|eyJ|Bearer\s)/;

/** Whether a text looks like a key rather than a variable's name: it has the prefix of a key, or is long and mixed. */
export function looksLikeKey(text: string): boolean {
  if (keyPrefix.test(text)) return true;
  if (text.length < 20 || /^[A-Z0-9_]+$/.test(text)) return false;
  const words = text.split('_');
  // A name has short words; a key has one long run of letters and digits.
  return words.some((word) => word.length >= 20 && /\d/.test(word) && /[A-Za-z]/.test(word));
}

/** A permission to send a variable's value to a host. */
export interface KeyGrant {
  /** The variable's name; a trailing `*` matches anything. */
  readonly variable: string;
  /** The host in lower case. */
  readonly host: string;
  /** The port; null for any. */
  readonly port: number | null;
}

/** The default grants: each known kind's variable at its own host. */
export const defaultGrants: readonly KeyGrant[] = Object.values(kinds).flatMap(({ api_base, api_key_env }) => {
  return api_key_env === null ? [] : [{ variable: api_key_env, host: new URL(api_base).hostname, port: 443 }];
});

const grantForm = /^([A-Za-z_][A-Za-z0-9_]*\*?|\*)@(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::(\d{1,5}))?$/;

/**
 * Parses a grant of a setting: `NAME@host` or `NAME@host:port`.
 * @throws Error whose message completes "SERVICE_LIVE_KEYS must be ..."
 */
export function parseGrant(item: string): KeyGrant {
  const [, variable, host, port] = grantForm.exec(item) ?? [];
  if (variable === undefined || host === undefined || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535) {
    const shown = looksLikeKey(item.split('@')[0]!) ? 'an item of it' : `"${item}"`;
    throw new Error(`a list of grants; ${shown} is not of the form NAME@host or NAME@host:port, such as OPENAI_API_KEY@api.openai.com`);
  }
  return { variable, host: host.toLowerCase(), port: port === undefined ? null : Number(port) };
}

/**
 * Whether the variable's value may be sent to a URL. The service's own variables are never sent. Plain http needs a grant
 * with that port, or a loopback host.
 */
export function mayLeave(variable: string, address: string, grants: readonly KeyGrant[]): boolean {
  if (isOwnVariable(variable)) return false;
  const { protocol, hostname, port } = new URL(address);
  const host = hostname.toLowerCase();
  const actual = port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port);
  return grants.some(
    (grant) =>
      grant.host === host &&
      (grant.port === null ? protocol === 'https:' || isLoopback(host) : grant.port === actual) &&
      (grant.variable.endsWith('*') ? variable.startsWith(grant.variable.slice(0, -1)) : grant.variable === variable),
  );
}

/** Whether a variable is one of the service's own settings, which chains may not use. Ignores case, as Windows does. */
export const isOwnVariable = (variable: string): boolean => /^SERVICE_/i.test(variable);

/** Why a provider's key may not be sent to its URL, as a sentence; undefined if it may or if there is no key. */
export function keyRefusal(
  provider: Pick<Provider, 'name' | 'provider' | 'model_id' | 'api_base' | 'api_key_env'>,
  grants: readonly KeyGrant[],
): string | undefined {
  const { api_key_env: variable, name } = provider;
  const base = apiBase(provider);
  if (variable === null || base === null || mayLeave(variable, base, grants)) return undefined;
  const { host } = new URL(base);
  if (isOwnVariable(variable))
    return `${variable} is a setting of this service and is never sent to a provider, so ${name} cannot be called at ${host} with it.`;
  return `${variable} may not be sent to ${host}: SERVICE_LIVE_KEYS does not list ${variable}@${host}.`;
}
