import { QueryClient, type UseQueryOptions, useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';

import { ApiError } from '../../client-errors.ts';
import { connected } from './transport.ts';

/** The query cache. It retries network errors, but not errors of the service. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (failures, error) => !(error instanceof ApiError && error.status_code < 500) && failures < 2,
      staleTime: 5000,
      refetchOnReconnect: true,
    },
  },
});

/** Reads all shown data again, after the key has changed. Loaded data is shown until then, so that edits in progress are kept. */
export function refetchAfterKeyChange(): void {
  void queryClient.resetQueries({ predicate: ({ state }) => state.data === undefined });
  void queryClient.invalidateQueries();
}

/** Makes the hook for the answer of a service to a read, cached by its key. */
export const createReadHook =
  <Client>(api: () => Client) =>
  <T>(
    queryKey: readonly unknown[],
    read: (client: Client, signal: AbortSignal) => Promise<T>,
    options: Omit<UseQueryOptions<T>, 'queryKey' | 'queryFn'> = {},
  ) =>
    useQuery({ queryKey, queryFn: ({ signal }) => read(api(), signal), ...options });

/** What follows a change. It belongs to the change, not to the component that asked for it, which may be gone when the answer arrives. */
export interface Outcome<Input, Answer> {
  onSuccess?: (answer: Answer, input: Input) => void;
  onError?: (error: Error, input: Input) => void;
}

/** A change in the service. `refresh` updates the cache with the answer. */
export const useChange = <Input, Answer>(
  mutationFn: (input: Input) => Promise<Answer>,
  refresh: (answer: Answer, input: Input) => Promise<void> | undefined,
  { onSuccess, onError }: Outcome<Input, Answer> = {},
) =>
  useMutation<Answer, Error, Input>({
    mutationFn,
    onSuccess(answer, input) {
      void refresh(answer, input);
      onSuccess?.(answer, input);
    },
    onError: (error, input) => onError?.(error, input),
  });

/** The options of a query that is repeated every half a minute, and every five seconds while the service can't be reached. */
export const polled = { refetchInterval: () => (connected.get() ? 30_000 : 5000) };

/** The value, debounced: it changes only after it was stable for this long. */
export function useDebounced<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
