import { useEffect, useRef } from 'react';
import { useSearchParams } from 'react-router';

/** The filters in the page's address, and a function that sets one of them; an empty value removes it. */
export function useFilters() {
  const [params, setParams] = useSearchParams();
  // The router has no queue: a change that follows at once would be made to an address without the one before.
  const latest = useRef(params);
  useEffect(() => {
    latest.current = params;
  }, [params]);
  const change = (next: URLSearchParams) => {
    latest.current = next;
    setParams(next, { replace: true, preventScrollReset: true });
  };
  const set = (name: string, value: string) => {
    const next = new URLSearchParams(latest.current);
    if (value === '') next.delete(name);
    else next.set(name, value);
    change(next);
  };
  return { params, set, clear: () => change(new URLSearchParams()) };
}

/** Whether a filter is a time, which its field shows in the user's time zone. */
export const isTime = (name: string): boolean => /_(after|before)$/.test(name);

/** The filters that are set, as the API takes them. */
export function filtersIn<Name extends string>(params: URLSearchParams, names: readonly Name[]): Partial<Record<Name, string>> {
  const found: Partial<Record<Name, string>> = {};
  for (const name of names) {
    const value = params.get(name) ?? '';
    if (value === '' || (isTime(name) && Number.isNaN(Date.parse(value)))) continue;
    found[name] = isTime(name) ? new Date(value).toISOString() : value;
  }
  return found;
}
