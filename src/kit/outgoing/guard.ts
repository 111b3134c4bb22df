import { promises as dns } from 'node:dns';
import { isIP } from 'node:net';

import { type AllowList, bareHost, isPublic } from './addresses.ts';
import { OutgoingError } from './failures.ts';

/** An address that a name resolves to. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Resolves a name to all its addresses; rejects when there are none. */
export type Resolve = (hostname: string) => Promise<readonly ResolvedAddress[]>;

export interface GuardParts {
  allow: AllowList;
  /** The setting that `allow` comes from, as refusals name it. */
  setting: string;
  /** Whether plain http may reach public addresses too. Without it, http reaches what `allow` names alone. */
  plainHttp?: boolean;
  /** The system's resolver, hosts file included, when left out. */
  resolve?: Resolve;
  /** How long a look-up may take, in milliseconds. */
  lookupMs?: number;
}

/** The part of a URL that decides whether it may be reached. */
export interface Target {
  readonly protocol: string;
  readonly hostname: string;
}

/** Decides which addresses outgoing requests may reach: where a URL is registered, and again at every connect. */
export interface AddressGuard {
  /** What is wrong with the form of a URL, as a sentence for its sender; no look-up. */
  formProblem(url: string): string | undefined;
  /**
   * What is wrong with a URL, its address included. A name that does not resolve is accepted: whether it may be
   * reached is decided at each connect.
   */
  problem(url: string): Promise<string | undefined>;
  /** Whether a host, when it is an IP address or a local name, is refused without a look-up. */
  refusesHost(target: Target): boolean;
  /**
   * The addresses of a name, all of them checked: one that is refused refuses them all.
   * @throws OutgoingError `dns_error` or `address_refused`
   */
  addressesOf(target: Target): Promise<readonly ResolvedAddress[]>;
}

const maxUrlLength = 2048;
const defaultLookupMs = 5_000;

/** A guard over an allow list. Resolution, when it takes too long, is left alone and counts as failed. */
export function createGuard({
  allow,
  setting,
  plainHttp = false,
  resolve = (name) => dns.lookup(name, { all: true }),
  lookupMs = defaultLookupMs,
}: GuardParts): AddressGuard {
  const pending = new Map<string, Promise<readonly ResolvedAddress[]>>();

  /** Requests that need the same name at the same time share one look-up, so that a slow one holds one thread of the resolver. */
  function resolveShared(name: string): Promise<readonly ResolvedAddress[]> {
    let resolving = pending.get(name);
    if (resolving === undefined) {
      resolving = resolve(name).finally(() => pending.delete(name));
      pending.set(name, resolving);
    }
    return within(lookupMs, resolving);
  }

  const mayReach = (protocol: string, address: string): boolean =>
    allow.hasAddress(address) || (isPublic(address) && (plainHttp || protocol === 'https:'));

  function refusesHost({ protocol, hostname }: Target): boolean {
    const host = bareHost(hostname);
    if (allow.hasHost(host)) return false;
    if (isIP(host) !== 0) return !mayReach(protocol, host);
    return host === 'localhost' || host.endsWith('.localhost');
  }

  async function addressesOf(target: Target): Promise<readonly ResolvedAddress[]> {
    const host = bareHost(target.hostname);
    if (refusesHost(target)) throw new OutgoingError('address_refused');
    if (isIP(host) !== 0) return [{ address: host, family: isIP(host) }];
    let found: readonly ResolvedAddress[];
    try {
      found = await resolveShared(host);
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
      ? `The URL leads to an address that is not public; ${setting} opens hosts and ranges that are meant to be reached.`
      : `The URL must begin with https://; ${setting} opens hosts and ranges that may be reached by http.`;

  return {
    refusesHost,
    addressesOf,
    formProblem,
    async problem(text) {
      const wrong = formProblem(text);
      if (wrong !== undefined) return wrong;
      const url = new URL(text);
      try {
        await addressesOf(url);
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

function formProblem(text: string): string | undefined {
  if (text.length > maxUrlLength) return `The URL has more than ${maxUrlLength} characters.`;
  const url = URL.parse(text);
  if (url === null || !/^https?:\/\/[^\s\\]+$/i.test(text)) return 'This is not an http or https URL.';
  if (url.username !== '' || url.password !== '') return 'The URL must not carry credentials.';
  if (url.hash !== '' || text.includes('#')) return 'The URL must not have a fragment.';
  if (url.port === '0') return 'The URL names port 0, which nothing listens on.';
  return undefined;
}

/** The promise's value, or a rejection after so many milliseconds. */
function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`The look-up took longer than ${ms} ms.`)), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
