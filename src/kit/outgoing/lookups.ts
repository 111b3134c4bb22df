import { LRUCache } from 'lru-cache';

import { FairQueue } from '../fair-queue.ts';
import { createResolver, type Resolve, type ResolvedAddress } from './resolver.ts';

export interface LookupOptions {
  /** By default the hosts file and the name servers of this machine. */
  resolve?: Resolve;
  /** The timeout of a look-up, in milliseconds. */
  lookupMs?: number;
}

/** Looks a name up for an owner, such as a tenant. */
type Lookup = (name: string, owner: unknown) => Promise<readonly ResolvedAddress[]>;

const defaultLookupMs = 5_000;

/** The most concurrent look-ups of one owner, and of all. Further ones wait, at most as long as a look-up may take. */
const perOwner = 32;
const concurrency = 1_024;

/** How long a failed look-up is remembered, in milliseconds, and how many names. RFC 9520, 3.2 recommends five seconds. */
const rememberMs = 5_000;
const mostNames = 1_000;

/**
 * Creates a look-up with a timeout. Concurrent look-ups of a name are one, and its failure is the answer for five seconds,
 * so that many attempts at a name that is never answered cost one look-up.
 */
export function createLookup({ resolve = createResolver(), lookupMs = defaultLookupMs }: LookupOptions): Lookup {
  const queue = new FairQueue({ concurrency, perOwner, maxWaitMs: lookupMs });
  /** Running and failed look-ups by name. */
  const known = new LRUCache<string, Promise<readonly ResolvedAddress[]>>({ max: mostNames });

  function start(name: string): Promise<readonly ResolvedAddress[]> {
    const looking = within(lookupMs, (signal) => resolve(name, signal));
    const forget = () => {
      if (known.get(name) === looking) known.delete(name);
    };
    known.set(name, looking);
    looking.then(forget, () => {
      setTimeout(forget, rememberMs).unref();
    });
    return looking;
  }

  return async (name, owner) => known.get(name) ?? queue.run(owner, () => known.get(name) ?? start(name));
}

/** The result of the work, which is told to end after `ms` milliseconds, and whose result then no longer counts. */
function within<T>(ms: number, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const ending = new AbortController();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const reason = new Error(`The look-up took longer than ${ms} ms.`);
      ending.abort(reason);
      // A resolver that has found some addresses returns them when it is told to end.
      setImmediate(() => reject(reason));
    }, ms);
    work(ending.signal)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}
