import { keptText, sharedValue } from './shared-value.ts';

export type Scheme = 'system' | 'light' | 'dark';

const kept = keptText('localStorage', 'baton.scheme');
const chosen = sharedValue(read());

function read(): Scheme {
  const text = kept.read();
  return text === 'light' || text === 'dark' ? text : 'system';
}

function apply(scheme: Scheme): void {
  if (scheme === 'system') delete document.documentElement.dataset.scheme;
  else document.documentElement.dataset.scheme = scheme;
}

apply(chosen.get());

/** Chooses the colour scheme and remembers it in this browser. */
export function chooseScheme(scheme: Scheme): void {
  apply(scheme);
  kept.write(scheme);
  chosen.set(scheme);
}

/** The scheme chosen by hand, or `system`. */
export const useScheme = chosen.use;
