import { useSyncExternalStore } from 'react';

export type Scheme = 'system' | 'light' | 'dark';

const key = 'baton.scheme';
const listeners = new Set<() => void>();

/** Browsers may disable storage; the choice then lasts until the page is closed. */
let chosen: Scheme = read();

function read(): Scheme {
  try {
    const stored = localStorage.getItem(key);
    return stored === 'light' || stored === 'dark' ? stored : 'system';
  } catch {
    return 'system';
  }
}

function apply(): void {
  if (chosen === 'system') delete document.documentElement.dataset.scheme;
  else document.documentElement.dataset.scheme = chosen;
}

apply();

/** Chooses the colour scheme and remembers it in this browser. */
export function chooseScheme(scheme: Scheme): void {
  chosen = scheme;
  apply();
  try {
    localStorage.setItem(key, scheme);
  } catch {
    // Storage is disabled: the choice lasts until the page is closed.
  }
  for (const tell of listeners) tell();
}

/** The scheme chosen by hand, or `system`. */
export function useScheme(): Scheme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => chosen,
  );
}
