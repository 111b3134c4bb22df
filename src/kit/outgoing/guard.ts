import { isIP, type LookupFunction } from 'node:net';
import { bareHost, isLocalName } from '../loopback.ts';

import { type AllowList, isPublic } from './addresses.ts';
import { OutgoingError } from './failures.ts';
import { createLookup, type LookupOptions } from './lookups.ts';
import type { ResolvedAddress } from './resolver.ts';

export interface GuardOptions extends LookupOptions {
  allow: AllowList;
  /** The name of the setting that `allow` comes from, for error sentences. */
  setting: string;
  /** Whether plain http may reach public addresses. Otherwise http only reaches what `allow` names. */
  plainHttp?: boolean;
}

/** The part of a URL that decides whether it may be reached. */
export interface Target {
  readonly protocol: string;
  readonly hostname: string;
}

/** Decides which addresses outgoing requests may reach, when a URL is registered and again at every connect. */
export type AddressGuard = ReturnType<typeof createGuard>;

const maxUrlLength = 2048;

/** Creates a guard over an allow list. */
export function createGuard({ allow, setting, plainHttp = false, ...lookupParts }: GuardOptions) {
  const lookup = createLookup(lookupParts);

  const mayReach = (protocol: string, address: string): boolean =>
    allow.hasAddress(address) || (isPublic(address) && (plainHttp || protocol !== 'http:'));

  /** Whether a host is refused without a look-up, because it is an IP address or a local name. */
  function refusesHost({ protocol, hostname }: Target): boolean {
    const host = bareHost(hostname);
    if (allow.hasHost(host)) return false;
    if (isIP(host) !== 0) return !mayReach(protocol, host);
    return isLocalName(host);
  }

  /**
   * The addresses of a name, all of them checked, looked up for `owner`, whose concurrent look-ups are bounded. One refused
   * address refuses the name.
   * @throws OutgoingError `dns_error` or `address_refused`
   */
  async function addressesOf(target: Target, owner?: unknown): Promise<readonly ResolvedAddress[]> {
    const host = bareHost(target.hostname);
    if (refusesHost(target)) throw new OutgoingError('address_refused');
    if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
    let found: readonly ResolvedAddress[];
    try {
      found = await lookup(host, owner);
      if (found.length === 0) throw new Error('The name has no address.');
    } catch (error) {
      throw new OutgoingError('dns_error', error);
    }
    if (!allow.hasHost(host) && !found.every(({ address }) => mayReach(target.protocol, address)))
      throw new OutgoingError('address_refused');
    return found;
  }

  const refusal = (protocol: string): string =>
    protocol === 'https:' || plainHttp
      ? `The URL leads to an address that is not public; use ${setting} to allow hosts and address ranges.`
      : `The URL must begin with https://; use ${setting} to allow hosts and address ranges with http.`;

  return {
    refusesHost,
    addressesOf,
    /** Whether plain text may be sent to a host at this address, because the allow list names either. */
    allowsPlain: (hostname: string, address: string): boolean =>
      allow.hasHost(hostname) || (isIP(address) !== 0 && allow.hasAddress(address)),
    formProblem,
    /**
     * What is wrong with a URL, including its addresses, which are looked up for `owner`. A name that does not resolve is
     * accepted, since each connect checks the addresses again.
     */
    problem: async (text: string, owner?: unknown): Promise<string | undefined> => {
      const wrong = formProblem(text);
      if (wrong !== undefined) return wrong;
      const url = new URL(text);
      try {
        await addressesOf(url, owner);
        return undefined;
      } catch (error) {
        if (!(error instanceof OutgoingError)) throw error;
        if (error.failure !== 'dns_error') return refusal(url.protocol);
        const mayBeReached = plainHttp || url.protocol === 'https:' || allow.hasHost(url.hostname);
        return mayBeReached ? undefined : refusal(url.protocol);
      }
    },
  };
}

/** A look-up for a connect, whose addresses the guard has checked. Node calls it for names, but not for IP addresses. */
export function guardedLookup(guard: AddressGuard, protocol: string, ownerOf: () => unknown): LookupFunction {
  return (hostname, { all }, callback) => {
    guard.addressesOf({ protocol, hostname }, ownerOf()).then(
      (found) => {
        if (all) callback(null, [...found]);
        else callback(null, found[0]!.address, found[0]!.family);
      },
      (error: Error) => callback(error, ''),
    );
  };
}

/** What is wrong with the form of a URL, as a sentence for the caller. Does not resolve the name. */
function formProblem(text: string): string | undefined {
  if (text.length > maxUrlLength) return `The URL has more than ${maxUrlLength} characters.`;
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\/[^\s\\]+$/i.test(text)) return 'This is not an http or https URL.';
  if (url.username !== '' || url.password !== '') return 'The URL must not carry credentials.';
  if (url.hash !== '' || text.includes('#')) return 'The URL must not have a fragment.';
  if (url.port === '0') return 'The URL names port 0, which nothing listens on.';
  return undefined;
}
