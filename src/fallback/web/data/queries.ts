import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';

import type { Chain, ChainRequest } from '../../model/chain.ts';
import type { ExportFormat, ImportFormat, ImportRequest, TemplateRequest } from '../../model/export.ts';
import type { RoutingQuery } from '../../model/routing.ts';
import type { AccessInfo } from '../../model/access.ts';
import type { TestRequest, TestResult } from '../../model/test.ts';
import { ApiError } from '../../../kit/client-errors.ts';
import { api, connection } from './api.ts';

/** The cache of answers. A refusal is final; what did not arrive is asked for again. */
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

/** Forgets all answers, since who has no key may see none. */
export function useForgetAnswers(): () => void {
  const client = useQueryClient();
  return useCallback(() => void client.resetQueries(), [client]);
}

/** Asks again for all that is shown, with another key. What was loaded stays meanwhile, and with it what is being edited. */
export function useAskAgain(): () => void {
  const client = useQueryClient();
  return useCallback(() => {
    void client.resetQueries({ predicate: ({ state }) => state.data === undefined });
    void client.invalidateQueries();
  }, [client]);
}

/** What the key in hand may do; undefined until it is known. */
export function useAccess(): AccessInfo | undefined {
  return useQuery({
    queryKey: ['access'],
    queryFn: ({ signal }) => api().getAccess({ signal }),
    staleTime: 60_000,
  }).data;
}

/** Whether the key in hand may change things. Unknown counts as yes: the service decides. */
export const useMayWrite = (): boolean => useAccess()?.may_write ?? true;

/** All chains. A lost connection is looked for again every five seconds. */
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

/** What a chain does with every failure and, where one is asked about, the path that a prompt takes. */
export const useRouting = ({ id, version }: Chain, query: RoutingQuery = {}, enabled = true) =>
  useQuery({
    queryKey: ['chains', id, 'routing', version, query],
    queryFn: ({ signal }) => api().getRouting({ params: { id }, query, signal }),
    enabled,
    placeholderData: keepPreviousData,
  });

/** A chain in a few figures and sentences. */
export const useSummary = ({ id, version }: Chain) =>
  useQuery({
    queryKey: ['chains', id, 'summary', version],
    queryFn: ({ signal }) => api().getSummary({ params: { id }, signal }),
  });

/** How many results a page of a chain's history has. */
export const resultsPerPage = 20;

/** A page of the results of a chain's tests, newest first and without their prompts, and how many there are in all. */
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

/** One result, asked for again every two seconds while its test runs. */
export const useResult = (id: string, enabled = true) =>
  useQuery({
    queryKey: ['results', id],
    queryFn: async ({ signal }) => (await api().getTestResult({ params: { id }, signal })) as TestResult,
    enabled,
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? 2000 : false),
  });

/** Creates or changes a chain, and keeps what the service answered. */
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

/** Begins a test; the result is read while it runs. */
export function useStartTest(chainId: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: TestRequest) => api().runTest({ params: { id: chainId }, body, headers: { prefer: 'respond-async' } }),
    onSuccess: () => void client.invalidateQueries({ queryKey: ['results', 'of', chainId] }),
  });
}

/** Stops a running test. Its result stays, with the prompts that were done. */
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

/** The chain in one format. */
export const useExport = (chain: Chain, format: ExportFormat, prefer: 'failover' | 'retry') =>
  useQuery({
    queryKey: ['chains', chain.id, 'export', chain.version, format, prefer],
    queryFn: ({ signal }) => api().exportChain({ params: { id: chain.id }, query: { format, prefer }, signal }),
  });

/** What a template gives. A mistake in it is the template's, so it is not asked again. */
export const useTemplate = (body: TemplateRequest, enabled: boolean) =>
  useQuery({
    queryKey: ['template', body],
    queryFn: ({ signal }) => api().exportTemplate({ body, signal }),
    enabled,
    retry: false,
    placeholderData: keepPreviousData,
  });

/** Makes a chain of a file. */
export function useImport() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ format, ...body }: ImportRequest & { format: ImportFormat }) => api().importChain({ query: { format }, body }),
    onSuccess: () => void client.invalidateQueries({ queryKey: ['chains'], exact: true }),
  });
}

/** What a chain that is being typed would be told: its faults by field, its warnings, its routing. */
export const useCheck = (chain: ChainRequest, enabled: boolean) =>
  useQuery({
    queryKey: ['check', chain],
    queryFn: ({ signal }) => api().checkChain({ body: chain, signal }),
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });

/** The value as it was a moment ago, once it has stood still for so long. */
export function useDebounced<T>(value: T, milliseconds: number): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}
