import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';

import type { Chain, ChainRequest } from '../../model/chain.ts';
import type { ExportFormat, ImportFormat, ImportRequest, TemplateRequest } from '../../model/export.ts';
import type { RoutingQuery } from '../../model/routing.ts';
import type { AccessInfo } from '../../model/access.ts';
import type { TestRequest, TestResult } from '../../model/test.ts';
import { ApiError } from '../../../kit/client-errors.ts';
import { api, connection } from './api.ts';

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

/** Whether the service answered the last call. */
export const useConnection = (): boolean => useSyncExternalStore(connection.subscribe, connection.get);

/** Clears the cache, since without a key no data may be shown. */
export function useForgetAnswers(): () => void {
  const client = useQueryClient();
  return useCallback(() => void client.resetQueries(), [client]);
}

/** Refetches all shown data, with another key. Loaded data stays until then, and with it the state of edits. */
export function useAskAgain(): () => void {
  const client = useQueryClient();
  return useCallback(() => {
    void client.resetQueries({ predicate: ({ state }) => state.data === undefined });
    void client.invalidateQueries();
  }, [client]);
}

/** The rights of the current key; undefined until they are known. */
export function useAccess(): AccessInfo | undefined {
  return useQuery({
    queryKey: ['access'],
    queryFn: ({ signal }) => api().getAccess({ signal }),
    staleTime: 60_000,
  }).data;
}

/** Whether the current key may change things. True until it is known, since the service decides. */
export const useMayWrite = (): boolean => useAccess()?.may_write ?? true;

/** All chains. Without a connection it retries every five seconds. */
export const useChains = () =>
  useQuery({
    queryKey: ['chains'],
    queryFn: ({ signal }) => api().listChains({ signal }),
    refetchInterval: () => (connection.get() ? 30_000 : 5000),
  });

/** One chain. */
export const useChain = (id: string) =>
  useQuery({
    queryKey: ['chains', id],
    queryFn: ({ signal }) => api().getChain({ params: { id }, signal }),
    refetchInterval: () => (connection.get() ? 30_000 : 5000),
  });

/** The routing of a chain and, with a question, the path of a prompt. */
export const useRouting = ({ id, version }: Chain, query: RoutingQuery = {}, enabled = true) =>
  useQuery({
    queryKey: ['chains', id, 'routing', version, query],
    queryFn: ({ signal }) => api().getRouting({ params: { id }, query, signal }),
    enabled,
    placeholderData: keepPreviousData,
  });

/** The summary of a chain. */
export const useSummary = ({ id, version }: Chain) =>
  useQuery({
    queryKey: ['chains', id, 'summary', version],
    queryFn: ({ signal }) => api().getSummary({ params: { id }, signal }),
  });

/** The number of results per page. */
export const resultsPerPage = 20;

/** A page of a chain's results, newest first and without prompts, with the total number. */
export const useResults = (chainId: string, page = 0) =>
  useQuery({
    queryKey: ['results', 'of', chainId, page],
    queryFn: async ({ signal }) => {
      const query = { limit: resultsPerPage, offset: page * resultsPerPage, prompts: false };
      const { body, headers } = await api().getTestResult.withResponse({ params: { id: chainId }, query, signal });
      return { results: body as TestResult[], total: Number(headers['x-total-count']) };
    },
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) => (state.data?.results.some(({ status }) => status === 'running') ? 5000 : false),
  });

/** A result, polled every two seconds while its test runs. */
export const useResult = (id: string, enabled = true) =>
  useQuery({
    queryKey: ['results', id],
    queryFn: async ({ signal }) => (await api().getTestResult({ params: { id }, signal })) as TestResult,
    enabled,
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? 2000 : false),
  });

/** Creates or updates a chain, and caches the answer. */
export function useSaveChain() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, version, chain }: { id?: string; version?: number; chain: ChainRequest }) =>
      id === undefined
        ? api().createChain({ body: chain })
        : api().patchChain({ params: { id }, body: chain, headers: version === undefined ? {} : { 'if-match': `"${version}"` } }),
    onSuccess: (chain) => {
      client.setQueryData(['chains', chain.id], chain);
      void client.invalidateQueries({ queryKey: ['chains'] });
    },
  });
}

/** Deletes a chain. */
export function useDeleteChain() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => api().deleteChain({ params: { id } }),
    onSuccess: (_, id) => {
      client.setQueryData<Chain[]>(['chains'], (chains) => chains?.filter((chain) => chain.id !== id));
      client.removeQueries({ queryKey: ['chains', id] });
      void client.invalidateQueries({ queryKey: ['chains'], exact: true });
    },
  });
}

/** Starts a test; the result is read while it runs. */
export function useStartTest(chainId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: TestRequest) => api().runTest({ params: { id: chainId }, body, headers: { prefer: 'respond-async' } }),
    onSuccess: () => void client.invalidateQueries({ queryKey: ['results', 'of', chainId] }),
  });
}

/** What a test would do at most. */
export const useTestPlan = ({ id, version }: Chain, body: TestRequest, enabled: boolean) =>
  useQuery({
    queryKey: ['chains', id, 'plan', version, body],
    queryFn: ({ signal }) => api().runTest({ params: { id }, query: { dry_run: true }, body, signal }),
    enabled,
    retry: false,
    placeholderData: keepPreviousData,
  });

/** Cancels a running test. Its result stays, with the finished prompts. */
export function useCancelTest() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => api().cancelTest({ params: { id } }),
    onSuccess: (result) => {
      client.setQueryData(['results', result.id], result);
      void client.invalidateQueries({ queryKey: ['results'] });
    },
  });
}

/** The export of a chain to a format. */
export const useExport = (chain: Chain, format: ExportFormat, prefer: 'failover' | 'retry') =>
  useQuery({
    queryKey: ['chains', chain.id, 'export', chain.version, format, prefer],
    queryFn: ({ signal }) => api().exportChain({ params: { id: chain.id }, query: { format, prefer }, signal }),
  });

/** The output of a template. Errors are not retried, since they are in the template. */
export const useTemplate = (body: TemplateRequest, enabled: boolean) =>
  useQuery({
    queryKey: ['template', body],
    queryFn: ({ signal }) => api().exportTemplate({ body, signal }),
    enabled,
    retry: false,
    placeholderData: keepPreviousData,
  });

/** Imports a chain from a file. */
export function useImport() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ format, ...body }: ImportRequest & { format: ImportFormat }) => api().importChain({ query: { format }, body }),
    onSuccess: () => void client.invalidateQueries({ queryKey: ['chains'], exact: true }),
  });
}

/** The check of an edited chain: faults by field, or warnings and the worst case. */
export const useCheck = (chain: ChainRequest, enabled: boolean) =>
  useQuery({
    queryKey: ['check', chain],
    queryFn: ({ signal }) => api().checkChain({ body: chain, signal }),
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });

/** The value, debounced: it changes only after it was stable for this long. */
export function useDebounced<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
