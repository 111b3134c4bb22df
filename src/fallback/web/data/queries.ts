import { keepPreviousData, QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';

import type { Chain, ChainRequest } from '../../model/chain.ts';
import type { Export, Imported, TemplateOutput, TemplateRequest } from '../../model/export.ts';
import type { ChainCheck } from '../../model/routing.ts';
import type { AccessInfo } from '../../model/access.ts';
import type { TestRequest, TestResult } from '../../model/test.ts';
import { ApiError, call, connection } from './api.ts';

/** The cache of answers. A refusal is final; what did not arrive is asked for again. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      retry: (failures, error) => !(error instanceof ApiError && error.status < 500) && failures < 2,
      staleTime: 5000,
      refetchOnReconnect: true,
    },
  },
});

/** Whether the service answered the last call. */
export const useConnection = (): boolean => useSyncExternalStore(connection.subscribe, connection.get);

/** Forgets all answers, since another key may see others. */
export function useForgetAnswers(): () => void {
  const client = useQueryClient();
  return useCallback(() => void client.resetQueries(), [client]);
}

/** What the key in hand may do; undefined until it is known. */
export function useAccess(): AccessInfo | undefined {
  return useQuery({
    queryKey: ['access'],
    queryFn: async ({ signal }) => (await call<AccessInfo>({ path: '/access', signal })).body,
    staleTime: 60_000,
  }).data;
}

/** Whether the key in hand may change things. Unknown counts as yes: the service decides. */
export const useMayWrite = (): boolean => useAccess()?.may_write ?? true;

/** All chains. A lost connection is looked for again every five seconds. */
export const useChains = () =>
  useQuery({
    queryKey: ['chains'],
    queryFn: async ({ signal }) => (await call<Chain[]>({ path: '/chains', signal })).body,
    refetchInterval: () => (connection.get() ? 30_000 : 5000),
  });

/** One chain. */
export const useChain = (id: string) =>
  useQuery({
    queryKey: ['chains', id],
    queryFn: async ({ signal }) => (await call<Chain>({ path: `/chains/${id}`, signal })).body,
    refetchInterval: () => (connection.get() ? 30_000 : 5000),
  });

/** A read that depends on one version of a chain: its routing, its summary. */
export const useOfChain = <T>({ id, version }: Chain, part: 'routing' | 'summary', query: Record<string, string> = {}, enabled = true) =>
  useQuery({
    queryKey: ['chains', id, part, version, query],
    queryFn: async ({ signal }) => (await call<T>({ path: `/chains/${id}/${part}`, query, signal })).body,
    enabled,
    placeholderData: keepPreviousData,
  });

/** The results of a chain's tests, newest first. */
export const useResults = (chainId: string) =>
  useQuery({
    queryKey: ['results', 'of', chainId],
    queryFn: async ({ signal }) => (await call<TestResult[]>({ path: `/test-results/${chainId}`, signal })).body,
  });

/** One result. */
export const useResult = (id: string, enabled = true) =>
  useQuery({
    queryKey: ['results', id],
    queryFn: async ({ signal }) => (await call<TestResult>({ path: `/test-results/${id}`, signal })).body,
    enabled,
    refetchInterval: ({ state }) => (state.data?.status === 'running' ? 2000 : false),
  });

/** Creates or changes a chain, and keeps what the service answered. */
export function useSaveChain() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ id, version, chain }: { id?: string; version?: number; chain: ChainRequest }) =>
      (
        await call<Chain>(
          id === undefined
            ? { method: 'POST', path: '/chains', body: chain }
            : {
                method: 'PATCH',
                path: `/chains/${id}`,
                body: chain,
                ...(version === undefined ? {} : { headers: { 'if-match': `"${version}"` } }),
              },
        )
      ).body,
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
    mutationFn: async (id: string) => void (await call({ method: 'DELETE', path: `/chains/${id}` })),
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
    mutationFn: async (body: TestRequest) =>
      (await call<TestResult>({ method: 'POST', path: `/chains/${chainId}/test`, body, headers: { prefer: 'respond-async' } })).body,
    onSuccess: () => void client.invalidateQueries({ queryKey: ['results', 'of', chainId] }),
  });
}

/** Stops a running test. Its result stays, with the prompts that were done. */
export function useCancelTest() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async (id: string) => (await call<TestResult>({ method: 'DELETE', path: `/test-results/${id}` })).body,
    onSuccess: (result) => {
      client.setQueryData(['results', result.id], result);
      void client.invalidateQueries({ queryKey: ['results'] });
    },
  });
}

/** The chain in one format. */
export const useExport = (chain: Chain, format: string, prefer: string) =>
  useQuery({
    queryKey: ['chains', chain.id, 'export', chain.version, format, prefer],
    queryFn: async ({ signal }) =>
      (await call<Export>({ method: 'POST', path: `/chains/${chain.id}/export`, query: { format, prefer }, signal })).body,
  });

/** What a template gives. A mistake in it is the template's, so it is not asked again. */
export const useTemplate = (body: TemplateRequest | Record<string, unknown>, enabled: boolean) =>
  useQuery({
    queryKey: ['template', body],
    queryFn: async ({ signal }) => (await call<TemplateOutput>({ method: 'POST', path: '/export-template', body, signal })).body,
    enabled,
    retry: false,
    placeholderData: keepPreviousData,
  });

/** Makes a chain of a file. */
export function useImport() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ format, ...body }: { format: string; content: string; name?: string }) =>
      (await call<Imported>({ method: 'POST', path: '/import', query: { format }, body })).body,
    onSuccess: () => void client.invalidateQueries({ queryKey: ['chains'], exact: true }),
  });
}

/** What a chain that is being typed would be told: its faults by field, its warnings, its routing. */
export const useCheck = (chain: ChainRequest, enabled: boolean) =>
  useQuery({
    queryKey: ['check', chain],
    queryFn: async ({ signal }) => (await call<ChainCheck>({ method: 'POST', path: '/chains/check', body: chain, signal })).body,
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
