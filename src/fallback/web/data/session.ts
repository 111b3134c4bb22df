import { useSyncExternalStore } from 'react';

// The key is kept in session storage: it ends with the tab, and other tabs have no access to it.
const storageKey = 'baton.fallback.key';
const listeners = new Set<() => void>();

let key: string | null = read();
let refused = false;

function read(): string | null {
  try {
    return sessionStorage.getItem(storageKey);
  } catch {
    return null;
  }
}

function tell(): void {
  for (const listener of listeners) listener();
}

/** The API key of this tab; null if none was entered. */
export const currentKey = (): string | null => key;

/** Sets or removes the key of this tab. */
export function setKey(value: string | null): void {
  key = value;
  refused = false;
  try {
    if (value === null) sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, value);
  } catch {
    // Storage is disabled: the key lasts until the page is closed.
  }
  tell();
}

/** Called after a 401, so that the page asks for a key. */
export function keyRefused(): void {
  if (refused) return;
  refused = true;
  tell();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Whether the service requires a key that this tab does not have. */
export const useKeyWanted = (): boolean => useSyncExternalStore(subscribe, () => refused);

/** Whether this tab has a key. */
export const useHasKey = (): boolean => useSyncExternalStore(subscribe, () => key !== null);
