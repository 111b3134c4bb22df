import { promises as dns } from 'node:dns';
import { promises as files } from 'node:fs';
import { isIP } from 'node:net';
import { isLocalName } from '../loopback.ts';

/** An address that a name resolves to. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: number;
}

/** Resolves a name to all its addresses; rejects if there are none. `signal` ends the look-up. */
export type Resolve = (hostname: string, signal: AbortSignal) => Promise<readonly ResolvedAddress[]>;

/** Replacements for the machine's configuration. */
export interface ResolverOptions {
  /** Name servers as `ADDRESS:PORT`; by default those of `resolvConf`. */
  servers?: readonly string[];
  hostsFile?: string;
  resolvConf?: string;
}

/** c-ares asks each server twice, and doubles the time for an answer the second time. */
const timeouts = { timeout: 1_500, tries: 2 };

/** Failures after which the next search domain is tried. */
const tryNext: ReadonlySet<unknown> = new Set(['ENOTFOUND', 'ENODATA', 'ESERVFAIL']);

const loopback: readonly ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * Creates a resolver that reads the hosts file and then asks name servers, with the search domains of resolv.conf. Unlike
 * `dns.lookup`, which holds one of libuv's four threads until the name server answers, its look-ups can be cancelled and
 * hold no thread. Changes of the files apply at once.
 */
export function createResolver({ servers, hostsFile = '/etc/hosts', resolvConf = '/etc/resolv.conf' }: ResolverOptions = {}): Resolve {
  const hosts = parsedFile(hostsFile, parseHosts);
  const search = parsedFile(resolvConf, parseSearch);

  return async (hostname, signal) => {
    const name = hostname.toLowerCase();
    if (isIP(name) !== 0) return [{ address: name, family: isIP(name) }];
    const listed = (await hosts()).get(name);
    if (listed !== undefined) return listed;
    // RFC 6761, 6.3: never sent to a name server.
    if (isLocalName(name)) return loopback;
    const candidates = candidatesOf(name, await search());
    signal.throwIfAborted();
    const resolver = new dns.Resolver(timeouts);
    if (servers !== undefined) resolver.setServers(servers);
    const { promise: ended, reject } = Promise.withResolvers<never>();
    const cancel = () => {
      reject(signal.reason);
      resolver.cancel();
    };
    signal.addEventListener('abort', cancel);
    try {
      return await firstOf(candidates, (query) => Promise.race([query(resolver), ended]));
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
}

type Ask = (query: (resolver: dns.Resolver) => Promise<string[]>) => Promise<string[]>;

/** The addresses of the first candidate that has any. */
async function firstOf(candidates: readonly string[], ask: Ask): Promise<ResolvedAddress[]> {
  let failure: unknown;
  for (const candidate of candidates) {
    const [v4, v6] = await Promise.allSettled([
      ask((resolver) => resolver.resolve4(candidate)),
      ask((resolver) => resolver.resolve6(candidate)),
    ]);
    // IPv4 first, because the machine may have no route for IPv6.
    const found = [...addressesIn(v4, 4), ...addressesIn(v6, 6)];
    if (found.length > 0) return found;
    const failures = [v4, v6].map((result) => (result as PromiseRejectedResult).reason);
    failure = failures.find(({ code }) => !tryNext.has(code));
    if (failure !== undefined) break;
    failure = failures[0];
  }
  throw failure;
}

function addressesIn(result: PromiseSettledResult<string[]>, family: number): ResolvedAddress[] {
  return result.status === 'fulfilled' ? result.value.map((address) => ({ address, family })) : [];
}

interface Search {
  readonly domains: readonly string[];
  /** A name with at least this many dots is first tried as it is. */
  readonly ndots: number;
}

/** The names to ask for, in order, as resolv.conf(5) describes. */
function candidatesOf(name: string, { domains, ndots }: Search): string[] {
  const within = domains.map((domain) => `${name}.${domain}`);
  return name.split('.').length > ndots ? [name, ...within] : [...within, name];
}

function parseHosts(text: string): Map<string, ResolvedAddress[]> {
  const hosts = new Map<string, ResolvedAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of new Set(names.map((one) => one.toLowerCase()))) {
      const known = hosts.get(name);
      if (known === undefined) hosts.set(name, [{ address, family }]);
      else known.push({ address, family });
    }
  }
  return hosts;
}

function parseSearch(text: string): Search {
  let domains: string[] = [];
  let ndots = 1;
  for (const line of text.split('\n')) {
    const [keyword, ...values] = line.trim().split(/\s+/);
    // The last of these lines applies.
    if (keyword === 'search' || keyword === 'domain') domains = values.map((domain) => domain.replace(/\.$/, '')).filter(Boolean);
    if (keyword === 'options') ndots = Number(/^ndots:(\d+)$/m.exec(values.join('\n'))?.[1] ?? ndots);
  }
  return { domains: domains.slice(0, 6), ndots };
}

/** Reads and parses a file again only when it has changed. A missing file counts as empty. */
function parsedFile<T>(path: string, parse: (text: string) => T): () => Promise<T> {
  let value = parse('');
  let version = '';
  return async () => {
    try {
      const { mtimeMs, size, ino } = await files.stat(path);
      const current = `${mtimeMs} ${size} ${ino}`;
      if (current !== version) {
        value = parse(await files.readFile(path, 'utf8'));
        version = current;
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      value = parse('');
      version = '';
    }
    return value;
  };
}
