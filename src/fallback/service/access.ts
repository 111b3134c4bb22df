import { hash, timingSafeEqual } from 'node:crypto';

import { type ApiKey, mayWrite } from '../rules/api-keys.ts';

/** The caller of a request. */
export interface Caller {
  /** The label of the key; null for a key without one, and if no keys are configured. */
  readonly label: string | null;
  readonly mayWrite: boolean;
  /** Identifies the caller for limits and quotas: the key, or else the address. */
  readonly id: string;
  /** Whether a configured key was sent. */
  readonly isKeyed: boolean;
}

export type Access = ReturnType<typeof createAccess>;

/** The caller without a key. */
export const anybody = (address: string): Caller => ({ label: null, mayWrite: true, id: `address ${address}`, isKeyed: false });

/** Creates the authentication with the configured keys. It keeps only digests, and compares all of them in constant time. */
export function createAccess(keys: readonly ApiKey[]) {
  const known = keys.map(({ key, label }, index) => ({
    digest: keyHash(key),
    caller: { label, mayWrite: mayWrite(label), id: `key ${index}`, isKeyed: true } satisfies Caller,
  }));
  return {
    /** Whether no keys are configured and everybody may call. */
    isOpen: keys.length === 0,
    /** The caller with this key, or undefined. Takes constant time. */
    authenticate(key: string): Caller | undefined {
      const digest = keyHash(key);
      let found: Caller | undefined;
      for (const one of known) if (timingSafeEqual(one.digest, digest)) found = one.caller;
      return found;
    },
  };
}

const keyHash = (key: string): Buffer => hash('sha256', key, 'buffer');
