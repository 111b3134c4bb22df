import { useSyncExternalStore } from 'react';

// The key stays in this tab: it ends with the tab and no other page of this origin's tabs sees it.
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

/** The API key of this tab; null where none was given. */
export const currentKey = (): string | null => key;

/** Takes a key for this tab, or forgets it. */
export function setKey(value: string | null): void {
  key = value;
  refused = false;
  try {
    if (value === null) sessionStorage.removeItem(storageKey);
    else sessionStorage.setItem(storageKey, value);
  } catch {
    // Storage is switched off: the key lasts as long as the page.
  }
  tell();
}

/** Notes that the service answered 401, so that the page asks for a key. */
export function keyRefused(): void {
  if (refused) return;
  refused = true;
  tell();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Whether the service wants a key that this tab has not got. */
export const useKeyWanted = (): boolean => useSyncExternalStore(subscribe, () => refused);

/** Whether this tab has a key. */
export const useHasKey = (): boolean => useSyncExternalStore(subscribe, () => key !== null);
