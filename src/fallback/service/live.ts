import { type Fault, invalidRequest, ServiceError } from '../../kit/errors.ts';
import type { ChainDefinition, Provider } from '../model/chain.ts';
import type { Mode } from '../model/test.ts';
import { createRealTransport, type RealParts } from '../providers/real.ts';
import { simulation } from '../providers/simulate.ts';
import type { Transport } from '../providers/transport.ts';
import { type KeyGrant, keyRefusal } from '../rules/key-grants.ts';
import { callAddress, foreignKind } from '../rules/kinds.ts';

/** The settings and dependencies of real calls. */
export interface LiveParts extends Pick<RealParts, 'outgoing' | 'clock' | 'now'> {
  /** Whether drill and live tests are allowed at all. */
  allowed: boolean;
  /** The environment with the keys. Only variables that chains name are read. */
  environment: Readonly<Record<string, string | undefined>>;
  grants: readonly KeyGrant[];
}

/**
 * Creates the transport of a mode for a chain, with its keys.
 * @throws ServiceError 403 if real calls are not allowed; 400 with all providers that can't be called
 */
export function transportFor(mode: Mode, chain: ChainDefinition, stream: boolean, live: LiveParts): Transport {
  if (mode === 'simulate') return simulation;
  if (!live.allowed)
    throw new ServiceError(
      'FORBIDDEN',
      `mode ${mode} calls real providers; this service allows that only when it was started with --allow-live.`,
      { field: 'mode' },
    );
  const keys = new Map<string, string | undefined>();
  const faults: Fault[] = [];
  for (const [index, provider] of chain.providers.entries()) {
    const found = keyFor(provider, live);
    if ('fault' in found) faults.push({ field: `providers.${index}.${found.field}`, detail: found.fault });
    else keys.set(provider.name, found.key);
  }
  if (faults.length > 0) throw invalidRequest(faults);
  return createRealTransport({ ...live, mode, stream, keyOf: ({ name }) => keys.get(name) });
}

/** The key of a provider, or why it can't be called. */
function keyFor(provider: Provider, { environment, grants }: LiveParts): { key: string | undefined } | { field: string; fault: string } {
  const { name, api_key_env: variable } = provider;
  if (foreignKind(provider.provider) !== undefined)
    return {
      field: 'provider',
      fault: `${name} is of kind ${provider.provider}, which this service simulates and exports, but can't call.`,
    };
  if (callAddress(provider) === null)
    return { field: 'api_base', fault: `${name} cannot be called, because it has neither an api_base nor a known kind.` };
  const refusal = keyRefusal(provider, grants);
  if (refusal !== undefined) return { field: 'api_key_env', fault: refusal };
  if (variable === null) return { key: undefined };
  const key = environment[variable]?.trim() ?? '';
  if (key === '')
    return { field: 'api_key_env', fault: `${variable}, the api_key_env of ${name}, is not set in the environment of this service.` };
  if (!/^[\x21-\x7e]+$/.test(key))
    return { field: 'api_key_env', fault: `The value of ${variable} has characters that are not allowed in a request header.` };
  return { key };
}
