import { useSearchParams } from 'react-router';

/** The filters in the page's address, and a function that sets one of them; an empty value removes it. */
export function useFilters() {
  const [params, setParams] = useSearchParams();
  const set = (name: string, value: string) =>
    setParams(
      (before) => {
        if (value === '') before.delete(name);
        else before.set(name, value);
        return before;
      },
      { replace: true, preventScrollReset: true },
    );
  return { params, set, clear: () => setParams({}, { replace: true }) };
}

/** Whether a filter is a time, which its field shows in the user's time zone. */
export const isTime = (name: string): boolean => /_(after|before)$/.test(name);

/** The filters that are set, as the API takes them. */
export const filtersIn = (params: URLSearchParams, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = params.get(name) ?? '';
      if (value === '' || (isTime(name) && Number.isNaN(Date.parse(value)))) return [];
      return [[name, isTime(name) ? new Date(value).toISOString() : value]];
    }),
  );
