import { keepPreviousData } from '@tanstack/react-query';

import { createReadHook, type Outcome, polled, queryClient, useChange } from '../../../kit/web/app/queries.ts';
import type { AccessInfo } from '../../model/access.ts';
import type { Chain, ChainRequest } from '../../model/chain.ts';
import type { Imported, ImportPreview, ImportRequest, TemplateRequest } from '../../model/export.ts';
import type { RoutingQuery } from '../../model/routing.ts';
import type { ExportFormat, ImportFormat, RehearsalFormat } from '../../model/targets.ts';
import type { TestRequest, TestResult } from '../../model/test.ts';
import { api } from './api.ts';

/** The answer of the service to a read, cached by its key. */
const useAnswer = createReadHook(api);

/** The rights of the current key; undefined until they are known. */
export const useAccess = (): AccessInfo | undefined =>
  useAnswer(['access'], (client, signal) => client.getAccess({ signal }), { staleTime: 60_000 }).data;

/** Whether the current key may change things. True until it is known, since the service decides. */
export const useMayWrite = (): boolean => useAccess()?.may_write ?? true;

/** The list of chains that was read last, and what identifies it. */
let lastChains: { tag: string; chains: Chain[] } | undefined;

/** All chains, which are read again only after a change of one. */
export const useChains = () =>
  useAnswer(
    ['chains'],
    async (client, signal) => {
      const headers = lastChains === undefined ? {} : { 'if-none-match': lastChains.tag };
      const answer = await client.listChains.withResponse({ signal, headers });
      if (answer.body === undefined) return lastChains?.chains ?? [];
      lastChains = { tag: answer.headers.etag ?? '', chains: answer.body };
      return lastChains.chains;
    },
    polled,
  );

/** Reads a chain as it is now, for the cache, too. */
export const readChain = (id: string): Promise<Chain> =>
  queryClient.fetchQuery({ queryKey: ['chains', id], queryFn: ({ signal }) => api().getChain({ params: { id }, signal }), staleTime: 0 });

/** One chain. */
export const useChain = (id: string) => useAnswer(['chains', id], (client, signal) => client.getChain({ params: { id }, signal }), polled);

/** The routing of a chain and, with a question, the path of a prompt. */
export const useRouting = ({ id, version }: Chain, query: RoutingQuery = {}, enabled = true) =>
  useAnswer(['chains', id, 'routing', version, query], (client, signal) => client.getRouting({ params: { id }, query, signal }), {
    enabled,
    placeholderData: keepPreviousData,
  });

/** The findings of the import that made the chain. */
export const useFindings = ({ id, version }: Chain) =>
  useAnswer(['chains', id, 'findings', version], (client, signal) => client.getFindings({ params: { id }, signal }));

/** The summary of a chain. */
export const useSummary = ({ id, version }: Chain) =>
  useAnswer(['chains', id, 'summary', version], (client, signal) => client.getSummary({ params: { id }, signal }));

/** The number of results per page. */
export const resultsPerPage = 20;

/** A page of a chain's results, newest first and without prompts, with the total number. */
export const useResults = (chainId: string, page = 0) =>
  useAnswer(
    ['results', 'of', chainId, page],
    async (client, signal) => {
      const query = { limit: resultsPerPage, offset: page * resultsPerPage, prompts: false };
      const { body, headers } = await client.getTestResult.withResponse({ params: { id: chainId }, query, signal });
      return { results: [body].flat(), total: Number(headers['x-total-count']) };
    },
    {
      placeholderData: keepPreviousData,
      refetchInterval: ({ state }) => (state.data?.results.some(({ status }) => status === 'running') ? 5000 : false),
    },
  );

/** The result of a test, for an answer that would be a list of results if the id were that of a chain. */
function oneResult(found: TestResult | TestResult[]): TestResult {
  if (Array.isArray(found)) throw new Error('This is the address of a chain’s results, not of one.');
  return found;
}

/** A result without its prompts, polled while its test runs. */
export const useFigures = (id: string, enabled = true, everyMs = 2000) =>
  useAnswer(
    ['results', id, 'figures'],
    async (client, signal) => oneResult(await client.getTestResult({ params: { id }, query: { prompts: false }, signal })),
    { enabled, refetchInterval: ({ state }) => (state.data?.status === 'running' ? everyMs : false) },
  );

/** A result with its prompts: up to 16 MiB. */
export const useResult = (id: string, enabled = true) =>
  useAnswer(['results', id], async (client, signal) => oneResult(await client.getTestResult({ params: { id }, signal })), { enabled });

/** A chain to be saved: a new one, or another version of one that exists. */
interface ChainToSave {
  id?: string;
  version?: number;
  chain: ChainRequest;
}

/** Creates or updates a chain, and caches the answer. */
export const useSaveChain = (outcome: Outcome<ChainToSave, Chain>) =>
  useChange(
    ({ id, version, chain }: ChainToSave) =>
      id === undefined
        ? api().createChain({ body: chain })
        : api().patchChain({ params: { id }, body: chain, headers: version === undefined ? {} : { 'if-match': `"${version}"` } }),
    (chain) => {
      queryClient.setQueryData(['chains', chain.id], chain);
      return queryClient.invalidateQueries({ queryKey: ['chains'] });
    },
    outcome,
  );

/** Deletes a chain. */
export const useDeleteChain = () =>
  useChange(
    (id: string) => api().deleteChain({ params: { id } }),
    (_, id) => {
      queryClient.setQueryData<Chain[]>(['chains'], (chains) => chains?.filter((chain) => chain.id !== id));
      queryClient.removeQueries({ queryKey: ['chains', id] });
      return queryClient.invalidateQueries({ queryKey: ['chains'], exact: true });
    },
  );

/** Starts a test; the result is read while it runs. */
export const useStartTest = (chainId: string, outcome: Outcome<TestRequest, { id: string }>) =>
  useChange(
    (body: TestRequest) => api().runTest({ params: { id: chainId }, body, headers: { prefer: 'respond-async' } }),
    () => queryClient.invalidateQueries({ queryKey: ['results', 'of', chainId] }),
    outcome,
  );

/** What a test would do at most. */
export const useTestPlan = ({ id, version }: Chain, body: TestRequest, enabled: boolean) =>
  useAnswer(
    ['chains', id, 'plan', version, body],
    (client, signal) => client.runTest({ params: { id }, query: { dry_run: true }, body, signal }),
    { enabled, retry: false, placeholderData: keepPreviousData },
  );

/** Cancels a running test. Its result stays, with the finished prompts. */
export const useCancelTest = (outcome: Outcome<string, TestResult>) =>
  useChange(
    (id: string) => api().cancelTest({ params: { id } }),
    (result) => {
      queryClient.setQueryData(['results', result.id], result);
      return queryClient.invalidateQueries({ queryKey: ['results'] });
    },
    outcome,
  );

/** The export of a chain to a format. */
export const useExport = ({ id, version }: Chain, format: ExportFormat, prefer: 'failover' | 'retry') =>
  useAnswer(['chains', id, 'export', version, format, prefer], (client, signal) =>
    client.exportChain({ params: { id }, query: { format, prefer }, signal }),
  );

/** The export of a chain whose addresses lead to its fake providers. */
export const useRehearsalExport = ({ id, version }: Chain, format: RehearsalFormat, keepsState: boolean) =>
  useAnswer(['chains', id, 'rehearsal', version, format, keepsState], (client, signal) =>
    client.exportChain({ params: { id }, query: { format, rehearsal: true, keep_state: keepsState }, signal }),
  );

/** The output of a template. Errors are not retried, since they are in the template. */
export const useTemplate = (body: TemplateRequest, enabled: boolean) =>
  useAnswer(['template', body], (client, signal) => client.exportTemplate({ body, signal }), {
    enabled,
    retry: false,
    placeholderData: keepPreviousData,
  });

type FileToImport = ImportRequest & { format: ImportFormat; group: string };

/** What an import would store. */
export const useImportPreview = (outcome: Outcome<FileToImport, ImportPreview>) =>
  useChange(
    ({ format, group, ...body }: FileToImport) =>
      api().importChain({ query: { format, dry_run: true, ...(group === '' ? {} : { group }) }, body }),
    () => undefined,
    outcome,
  );

/** Imports a chain from a file. */
export const useImport = (outcome: Outcome<FileToImport, Imported>) =>
  useChange(
    ({ format, group, ...body }: FileToImport) => api().importChain({ query: { format, ...(group === '' ? {} : { group }) }, body }),
    () => queryClient.invalidateQueries({ queryKey: ['chains'], exact: true }),
    outcome,
  );

/** The check of an edited chain: faults by field, or warnings and the worst case. */
export const useCheck = (chain: ChainRequest, enabled: boolean) =>
  useAnswer(['check', chain], (client, signal) => client.checkChain({ body: chain, signal }), {
    enabled,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: keepPreviousData,
  });
