import { keptText, sharedValue } from '../shared-value.ts';

// Session storage ends with the tab, and other tabs have no access to it. The name differs for each application of an origin.
const kept = keptText('sessionStorage', `baton.key ${import.meta.env.BASE_URL}`);
const key = sharedValue(kept.read());
const refused = sharedValue(false);
const session = sharedValue(false);

/** The API key of this tab; null if none was entered. */
export const currentKey = key.get;

/** Sets or removes the key of this tab. It is kept in session storage if `keep` says so, else until the page is left. */
export function setKey(value: string | null, keep = true): void {
  kept.write(keep ? value : null);
  // Before the page is shown again, since it then sends requests.
  key.set(value);
  refused.set(false);
}

/** Called after a 401, so that the page asks for a key. */
export const keyRefused = (): void => refused.set(true);

/** Whether the service requires a key that this tab does not have. */
export const useKeyWanted = refused.use;

/** Notes that the browser may have a session, whose cookie no page can read. A key that is entered decides instead. */
export const trySession = (): void => session.set(true);

/** Whether this tab has a key. */
export const useHasKey = (): boolean => key.use() !== null;

/** Whether requests of this tab are answered for somebody: it has a key, or may have a session. */
export function useHasAccess(): boolean {
  const hasSession = session.use();
  return key.use() !== null || hasSession;
}
