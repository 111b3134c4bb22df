import { keepPreviousData, useQueries } from '@tanstack/react-query';
import { useState } from 'react';
import { systemClock } from '../../../kit/clock.ts';
import { dayMs } from '../../../kit/dates.ts';
import { defined } from '../../../kit/defined.ts';
import { createReadHook, type Outcome, polled, queryClient, useChange } from '../../../kit/web/app/queries.ts';
import { useHasAccess } from '../../../kit/web/app/session.ts';
import type { HandoffClient } from '../../client/client.ts';
import type { AuditEntry } from '../../model/audit.ts';
import type { ChannelDelivery } from '../../model/channel.ts';
import type { Scope, Status } from '../../model/common.ts';
import type { OwnKey } from '../../model/key.ts';
import type { Packet, PacketSummary, RespondRequest } from '../../model/packet.ts';
import type { Delivery, DeliveryStatus } from '../../model/webhook.ts';
import { askedStatus, claimableStatus } from '../../rules/packet-life.ts';
import { api, consoleApi } from './api.ts';
import { readChain } from './packet-chain.ts';

/** The answer of the service to a read, cached by its key. */
const useAnswer = createReadHook(api);

/** A change in the service, after which everything whose key begins with `queryKey` is read again. */
export const useWrite = <Answer, Input = void>(
  write: (client: HandoffClient, input: Input) => Promise<Answer>,
  queryKey: readonly unknown[],
  outcome?: Outcome<Input, Answer>,
) =>
  useChange(
    (input: Input) => write(api(), input),
    () => queryClient.invalidateQueries({ queryKey }),
    outcome,
  );

/** The webhooks of the tenant. */
export const useWebhooks = () => useAnswer(['webhooks'], (client, signal) => client.listWebhooks({ signal }));

/** The key of this tab, and its tenant; undefined until they are known. */
export function useOwnKey(): OwnKey | undefined {
  const enabled = useHasAccess();
  return useAnswer(['self'], (client, signal) => client.getOwnKey({ signal }), { enabled, staleTime: 60_000 }).data;
}

/** Whether the key of this tab has a scope. True until it is known, since the service decides. */
export const useMay = (scope: Scope): boolean => useOwnKey()?.scopes.includes(scope) ?? true;

/** The most questions that the inbox shows. */
export const maxQuestions = 1000;

/** The key of the inbox in the query cache. */
export const inboxKey = ['packets', 'inbox'];

/** Whether a packet of a list is a summary, as lists answer them unless whole packets are asked for. */
const isSummary = (packet: Packet | PacketSummary): packet is PacketSummary => 'counts' in packet;

/** When a question was asked. */
export const askedAt = ({ hitl, updated_at }: PacketSummary): string => hitl?.requested_at ?? updated_at;

/** The packets with an open question, oldest question first. */
export function useInbox() {
  const enabled = useHasAccess();
  return useAnswer(
    inboxKey,
    async (client, signal) => {
      const found: PacketSummary[] = [];
      const query = { status: [askedStatus], order: 'asc', limit: 200 } as const;
      for await (const packet of client.listPackets.items({ query, signal })) {
        if (isSummary(packet)) found.push(packet);
        if (found.length === maxQuestions) break;
      }
      return inOrder(found);
    },
    { ...polled, enabled },
  );
}

/** Whether no channel notifies anybody of new questions. */
export function useNotifiesNobody(): boolean {
  const enabled = useHasAccess();
  const read = async (client: HandoffClient, signal: AbortSignal) =>
    (await client.listAwaiting({ query: { limit: 1 }, signal })).unnotified === true;
  return useAnswer(['channels', 'unnotified'], read, { enabled, staleTime: 60_000 }).data ?? false;
}

/** The packets with the oldest question first. */
export const inOrder = (packets: readonly PacketSummary[]): PacketSummary[] =>
  [...packets].sort((one, other) => (askedAt(one) < askedAt(other) ? -1 : 1));

/** A whole packet, which is also read again at intervals, in case that events do not arrive. */
export const usePacket = (id: string) =>
  useAnswer(['packets', id], (client, signal) => client.getPacket({ params: { id }, signal }), polled);

/** An answer to a question, in the name of a person. */
export type Answer = Omit<RespondRequest, 'digest'>;

/** Answers the question of a packet, with the digest of what is shown, so that the service rejects it if the question has changed. */
export const useRespond = ({ id, hitl }: Packet, onSuccess: () => void) => {
  const digest = hitl?.digest;
  const readAgain = () => queryClient.invalidateQueries({ queryKey: ['packets'] });
  return useChange(
    (body: Answer) => consoleApi().respondPacket({ params: { id }, body: { ...body, ...(digest === undefined ? {} : { digest }) } }),
    readAgain,
    { onSuccess, onError: () => void readAgain() },
  );
};

/** A question of a packet that was asked: its answer, and what the person was shown. */
export const useQuestion = (id: string, question_id: string, enabled: boolean) =>
  useAnswer(['packets', id, question_id], (client, signal) => client.getQuestion({ params: { id, question_id }, signal }), { enabled });

/** What happened to a packet, oldest first. */
export const useHistory = (id: string, revision: number, enabled = true) =>
  useAnswer(['history', id, revision], async (client, signal) => (await client.packetHistory({ params: { id }, signal })).events, {
    placeholderData: keepPreviousData,
    enabled,
  });

/** The statistics of the last days. */
export const useStats = (days: number) =>
  useAnswer(
    ['stats', days],
    (client, signal) => client.getStats({ query: { since: new Date(systemClock().getTime() - days * dayMs).toISOString() }, signal }),
    { ...polled, placeholderData: keepPreviousData },
  );

/** The name of a key by its id, or the end of the id while it is unknown. */
export function useKeyNames(): (keyId: string) => string {
  const keys = useAnswer(['keys'], (client, signal) => client.listKeys({ signal }), { staleTime: 60_000, retry: false }).data;
  return (keyId) => keys?.find(({ id }) => id === keyId)?.name ?? keyId.slice(-8);
}

/** When today began, in the user's time zone. */
function startOfToday(): string {
  const day = systemClock();
  day.setHours(0, 0, 0, 0);
  return day.toISOString();
}

/** The most answers of a day that are shown. */
const maxAnswers = 200;

/** The answers that a person gave today, newest first. */
export const useMyAnswers = (name: string | undefined) =>
  useAnswer(
    ['audit', 'answers', name, startOfToday()],
    async (client, signal) => {
      const query = { actor: `human:${name}`, action: 'hitl_responded', created_after: startOfToday(), limit: maxAnswers };
      return (await client.listAudit({ query, signal })).entries;
    },
    { ...polled, enabled: name !== undefined },
  );

type ListQuery = NonNullable<NonNullable<Parameters<HandoffClient['listPackets']>[0]>['query']>;

/** The filters of a list of packets, or with a text those of a search. */
export type PacketFilters = Omit<ListQuery, 'limit' | 'offset' | 'cursor' | 'view'> & { q?: string };

/** The filters that a search takes; a list takes all but `q`. */
export const searchFilters = ['q', 'status', 'target_agent', 'tags', 'priority', 'created_after', 'created_before'] as const;

/** A packet in a list, with an excerpt in that of a search. */
export type PacketRow = PacketSummary & { snippet?: string };

interface PacketPage {
  packets: PacketRow[];
  total: number;
  total_is?: 'exact' | 'at_least';
}

/** One page of a list, or of a search if the filters have a text. */
async function readPage(
  client: HandoffClient,
  { q = '', ...filters }: PacketFilters,
  page: { limit: number; offset: number },
  signal: AbortSignal,
): Promise<PacketPage> {
  if (q.trim() === '') {
    const { packets, total } = await client.listPackets({ query: { ...filters, ...page }, signal });
    return { packets: packets.filter(isSummary), total };
  }
  const { status, target_agent, tags, priority, created_after, created_before } = filters;
  const taken = defined({ status, target_agent, tags, priority, created_after, created_before });
  return client.searchPackets({ query: { ...taken, q, ...page }, signal });
}

/** The rows of a page of packets in a list. */
const perPage = 100;

/**
 * The packets that match, of which only the pages in view are read. `at` returns undefined for a packet that has not been read, and
 * `failed` is a page that could not be read.
 */
export function usePackets(filters: PacketFilters) {
  const [range, setRange] = useState({ first: 0, last: 0 });
  const key = (offset: number) => ['packets', 'list', filters, offset];
  const pageQuery = (offset: number) => ({
    queryKey: key(offset),
    queryFn: ({ signal }: { signal: AbortSignal }) => readPage(api(), filters, { limit: perPage, offset }, signal),
    ...polled,
  });
  const firstPage = Math.floor(range.first / perPage);
  const offsets = [...new Set([0, firstPage, Math.floor(range.last / perPage)])].map((page) => page * perPage);
  const pages = useQueries({ queries: offsets.map(pageQuery) });
  const { data, error, refetch } = pages[0]!;
  const failed = pages.find((page) => page.error !== null);
  const at = (index: number): PacketRow | undefined =>
    pages[offsets.indexOf(Math.floor(index / perPage) * perPage)]?.data?.packets[index % perPage];
  return { first: { data, error, refetch }, failed, at, setRange };
}

/** How many packets a column of the board shows. */
export const perColumn = 30;

/** The newest packets of a status, and their number. */
export const useColumn = (status: Status, { status: _, ...filters }: PacketFilters) =>
  useAnswer(
    ['packets', 'board', status, filters],
    (client, signal) => readPage(client, { ...filters, status }, { limit: perColumn, offset: 0 }, signal),
    { ...polled, placeholderData: keepPreviousData },
  );

/** The rows of a page of agents, deliveries or entries of the audit log. */
export const rowsPerPage = 50;

const pageAt = (page: number) => ({ limit: rowsPerPage, offset: page * rowsPerPage });

/** A page of the agents that were seen. */
export const useAgents = (page: number) =>
  useAnswer(['agents', page], (client, signal) => client.listAgents({ query: pageAt(page), signal }), polled);

/** The packets that wait longest for an agent, and how many wait. */
export const useWaiting = () =>
  useAnswer(
    ['packets', 'list', 'waiting'],
    (client, signal) => client.listPackets({ query: { status: claimableStatus, scheduled: false, order: 'asc', limit: 10 }, signal }),
    polled,
  );

/** How many packets are open and overdue. */
export const useOverdue = () =>
  useAnswer(
    ['packets', 'list', 'overdue'],
    async (client, signal) => (await client.listPackets({ query: { overdue: true, limit: 1 }, signal })).total,
    polled,
  );

/** The schedules of the tenant, of which it has at most 100. */
export const useSchedules = () =>
  useAnswer(['schedules'], async (client, signal) => (await client.listSchedules({ query: { limit: 100 }, signal })).schedules, polled);

/** The policies of the tenant, of which it has at most 100. */
export const usePolicies = () =>
  useAnswer(['approvals', 'policies'], async (client, signal) => (await client.listPolicies({ query: { limit: 100 }, signal })).policies);

/** The first groups, delegations and standing approvals of the tenant. */
export const useGroups = () =>
  useAnswer(['approvals', 'groups'], async (client, signal) => (await client.listGroups({ query: { limit: 100 }, signal })).groups);
export const useDelegations = () =>
  useAnswer(
    ['approvals', 'delegations'],
    async (client, signal) => (await client.listDelegations({ query: { limit: 100 }, signal })).delegations,
  );
export const useStandingApprovals = () =>
  useAnswer(
    ['approvals', 'standing'],
    async (client, signal) => (await client.listStandingApprovals({ query: { limit: 100 }, signal })).standing_approvals,
  );

/** A schedule. */
export const useSchedule = (name: string) =>
  useAnswer(['schedules', name], (client, signal) => client.getSchedule({ params: { name }, signal }), polled);

/** The next times of a schedule. */
export const useNextTimes = (name: string) =>
  useAnswer(
    ['schedules', name, 'next'],
    async (client, signal) => (await client.nextTimes({ params: { name }, query: { count: 10 }, signal })).times,
    polled,
  );

/** The chain of a packet: its ancestors, the packets that continue it, and those that continue them. */
export const usePacketChain = (packet: Packet) =>
  useAnswer(['chain', packet.id, packet.revision], (client, signal) => readChain(client, packet, signal));

/** The contract of an agent. */
export const useContract = (agentId: string) =>
  useAnswer(['agents', 'contract', agentId], (client, signal) => client.getContract({ params: { agent_id: agentId }, signal }));

/** The channels of the tenant. */
export const useChannels = () => useAnswer(['channels'], (client, signal) => client.listChannels({ signal }));

/** The answer links of a packet. */
export const useAnswerLinks = (id: string) =>
  useAnswer(['links', id], (client, signal) => client.listAnswerLinks({ params: { id }, signal }));

/** The keys of a tenant, by default of that of this tab's key. */
export const useKeys = (tenantId?: string) =>
  useAnswer(['keys', ...(tenantId === undefined ? [] : [tenantId])], (client, signal) =>
    tenantId === undefined ? client.listKeys({ signal }) : client.listTenantKeys({ params: { id: tenantId }, signal }),
  );

/** The sessions that are open: those of the person, and of the tenant with the right to manage. */
export const useSessions = () => useAnswer(['sessions'], async (client, signal) => (await client.listSessions({ signal })).sessions);

/** A page of the tenant's people. */
export const usePeople = (page: number) =>
  useAnswer(['people', page], (client, signal) => client.listPeople({ query: pageAt(page), signal }));

/** All tenants. */
export const useTenants = () => useAnswer(['tenants'], (client, signal) => client.listTenants({ signal }));

/** One tenant. */
export const useTenant = (id: string) => useAnswer(['tenants', id], (client, signal) => client.getTenant({ params: { id }, signal }));

type AuditQuery = NonNullable<NonNullable<Parameters<HandoffClient['listAudit']>[0]>['query']>;

/** A page of the audit log, newest entry first. */
export const useAudit = (filters: AuditQuery, page: number) =>
  useAnswer(['audit', filters, page], (client, signal) => client.listAudit({ query: { ...filters, ...pageAt(page) }, signal }));

/** The newest entries of the audit log that match, at most `most`. Repeats requests that exceed the limit per minute. */
export async function readAudit(filters: AuditQuery, most: number): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for await (const entry of api({ retries: 5 }).listAudit.items({ query: { ...filters, limit: 200 } })) {
    entries.push(entry);
    if (entries.length === most) break;
  }
  return entries;
}

/** All entries of the audit log that match, as the text of an export, which needs the right `manage`. */
export const exportAudit = (format: 'csv' | 'jsonl', filters: AuditQuery): Promise<string> =>
  api().exportAudit({ query: { ...filters, format } });

/** A delivery to a webhook or a channel. */
export type AnyDelivery = Delivery | ChannelDelivery;

/** The kinds of receivers of deliveries. */
export type ReceiverKind = 'webhook' | 'channel';

const paged = ({ body, headers }: { body: AnyDelivery[]; headers: Readonly<Record<string, string>> }) => ({
  rows: body,
  total: Number(headers['x-total-count']),
});

/** A page of the deliveries to a webhook or a channel. */
export const useDeliveries = (id: string, of: ReceiverKind, status: DeliveryStatus | undefined, page: number) =>
  useAnswer(
    ['deliveries', id, status, page],
    async (client, signal) => {
      const request = { params: { id }, query: { ...pageAt(page), ...(status && { status }) }, signal };
      return paged(
        of === 'webhook' ? await client.listDeliveries.withResponse(request) : await client.listChannelDeliveries.withResponse(request),
      );
    },
    polled,
  );

/** A page of the deliveries that have used up their attempts. */
export const useDeadLetters = (page: number) =>
  useAnswer(
    ['deliveries', 'dead', page],
    async (client, signal) => paged(await client.listDeadLetters.withResponse({ query: pageAt(page), signal })),
    polled,
  );

/** A delivery to a webhook, with its body. */
export const useDelivery = (id: string, deliveryId: string) =>
  useAnswer(['deliveries', id, deliveryId], (client, signal) => client.getDelivery({ params: { id, delivery_id: deliveryId }, signal }));
