import { useSyncExternalStore } from 'react';

/** Creates a value outside of components: `use` renders a component again when `set` has changed the value. */
export function sharedValue<T>(initial: T) {
  const listeners = new Set<() => void>();
  let value = initial;
  const get = (): T => value;
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return {
    get,
    set(next: T): void {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of listeners) listener();
    },
    use: (): T => useSyncExternalStore(subscribe, get),
    /** What `select` makes of the value; a component is rendered again only when that changes. */
    useAs: <S extends string>(select: (value: T) => S): S => useSyncExternalStore(subscribe, () => select(value)),
  };
}

/** A text in the browser's storage. Where storage is disabled, `read` returns null and `write` does nothing. */
export const keptText = (storage: 'localStorage' | 'sessionStorage', name: string) => ({
  read(): string | null {
    try {
      return globalThis[storage].getItem(name);
    } catch {
      return null;
    }
  },
  write(text: string | null): void {
    try {
      if (text === null) globalThis[storage].removeItem(name);
      else globalThis[storage].setItem(name, text);
    } catch {
      // Storage is disabled.
    }
  },
});
