import { type Fault, invalidRequest, ServiceError } from '../../kit/errors.ts';
import type { ChainDefinition, Provider } from '../model/chain.ts';
import type { Mode } from '../model/test.ts';
import { createRealTransport, type RealDependencies } from '../providers/real.ts';
import { simulation } from '../providers/simulate.ts';
import type { Transport } from '../providers/transport.ts';
import { type KeyGrant, keyRefusal } from '../rules/key-grants.ts';
import { callAddress, foreignKind } from '../rules/kinds.ts';

/** The settings and dependencies of real calls. */
export interface LiveDependencies extends Pick<RealDependencies, 'outgoing' | 'clock' | 'now'> {
  /** Whether drill and live tests are allowed at all. */
  allowed: boolean;
  /** The environment with the keys. Only variables that chains name are read. */
  environment: Readonly<Record<string, string | undefined>>;
  grants: readonly KeyGrant[];
  /** Why an address may not be reached, as a sentence. */
  urlProblem(url: string): Promise<string | undefined>;
}

/**
 * Creates the transport of a mode for a chain, with its keys.
 * @throws ServiceError 403 if real calls are not allowed; 400 with all providers that can't be called
 */
export function transportFor(mode: Exclude<Mode, 'rehearsal'>, chain: ChainDefinition, live: LiveDependencies): Transport {
  if (mode === 'simulate') return simulation;
  requireLive(mode, live);
  const keys = new Map<string, string | undefined>();
  const faults: Fault[] = [];
  for (const [index, provider] of chain.providers.entries()) {
    const refuse: Refuse = (field, detail) => {
      faults.push({ field: `providers.${index}.${field}`, detail });
    };
    keys.set(provider.name, keyFor(provider, live, refuse));
  }
  if (faults.length > 0) throw invalidRequest(faults);
  return createRealTransport({ ...live, mode, keyOf: ({ name }) => keys.get(name) });
}

/** @throws ServiceError 403 if this service may not send requests */
export function requireLive(mode: Exclude<Mode, 'simulate'>, { allowed }: Pick<LiveDependencies, 'allowed'>): void {
  if (allowed) return;
  const what = mode === 'rehearsal' ? 'calls a gateway' : 'calls real providers';
  const detail = `mode ${mode} ${what}; this service allows that only when it was started with --allow-live.`;
  throw new ServiceError('FORBIDDEN', detail, { field: 'mode' });
}

type Refuse = (field: string, detail: string) => undefined;

/** The key of a provider; undefined if it has none, or `refuse` is told why it can't be called. */
function keyFor(provider: Provider, live: LiveDependencies, refuse: Refuse): string | undefined {
  const { name, api_key_env: variable } = provider;
  if (foreignKind(provider.provider) !== undefined)
    return refuse('provider', `${name} is of kind ${provider.provider}, which this service simulates and exports, but can't call.`);
  if (callAddress(provider) === null)
    return refuse(
      'api_base',
      provider.params.api_base === undefined
        ? `${name} cannot be called, because it has neither an api_base nor a known kind.`
        : `${name} cannot be called, because its address is in a variable of the exported program.`,
    );
  const refusal = keyRefusal(provider, live.grants);
  if (refusal !== undefined) return refuse('api_key_env', refusal);
  if (variable === null) return undefined;
  return requireKey(variable, name, live, refuse);
}

/** The value of a variable with a key; undefined if `refuse` is told what is wrong with it. */
export function requireKey(
  variable: string,
  owner: string,
  { environment }: Pick<LiveDependencies, 'environment'>,
  refuse: (field: string, detail: string) => void,
): string | undefined {
  const key = environment[variable]?.trim() ?? '';
  if (key !== '' && /^[\x21-\x7e]+$/.test(key)) return key;
  const detail =
    key === ''
      ? `${variable}, the api_key_env of ${owner}, is not set in the environment of this service.`
      : `The value of ${variable} has characters that are not allowed in a request header.`;
  refuse('api_key_env', detail);
  return undefined;
}
