import { hash, timingSafeEqual } from 'node:crypto';

import { type ApiKey, mayWrite } from '../rules/api-keys.ts';

/** Who is calling. */
export interface Caller {
  /** The label of the key; null for a key without one, and where no keys are configured. */
  readonly label: string | null;
  readonly mayWrite: boolean;
  /** Names whoever is calling, for limits and shares: the key, or else the address. */
  readonly id: string;
  /** Whether a configured key was sent. */
  readonly isKeyed: boolean;
}

/** Who may call. */
export interface Access {
  /** Whether no keys are configured, so that everybody may call. */
  readonly isOpen: boolean;
  /** The caller behind a key, or undefined. The time it takes tells nothing of the keys. */
  authenticate(key: string): Caller | undefined;
}

/** A caller without a key: everybody, where none are configured. */
export const anybody = (address: string): Caller => ({ label: null, mayWrite: true, id: `address ${address}`, isKeyed: false });

/** The configured keys. Only their digests are kept, and all of them are compared, each in constant time. */
export function createAccess(keys: readonly ApiKey[]): Access {
  const known = keys.map(({ key, label }, index) => ({
    digest: digestOf(key),
    caller: { label, mayWrite: mayWrite(label), id: `key ${index}`, isKeyed: true } satisfies Caller,
  }));
  return {
    isOpen: keys.length === 0,
    authenticate(key) {
      const digest = digestOf(key);
      let found: Caller | undefined;
      for (const one of known) if (timingSafeEqual(one.digest, digest)) found = one.caller;
      return found;
    },
  };
}

function digestOf(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}
