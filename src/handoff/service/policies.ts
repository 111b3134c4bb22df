import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import { type Fault, invalid, invalidRequest } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import type { SchemaChecks } from '../json-schema/checks.ts';
import type { Answer } from '../model/hitl.ts';
import type { Policy, PolicyRequest, Replayed, ReplayRequest, Rule, TryRequest } from '../model/policy.ts';
import { maxPolicies } from '../model/policy.ts';
import { subjectOf } from '../rules/action.ts';
import { shadowCounter, shadowOutcomes } from '../rules/action-case.ts';
import { type Judgement, judge, policyFaults, policyWarnings, type ReplayedAction, replayOf, type Subject } from '../rules/policy.ts';
import type { AskedRecord } from '../rules/question-state.ts';
import { strictSchema } from '../rules/strict-schema.ts';
import type { StoredDocument } from '../store/documents.ts';
import type { Caller } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { createDocumentService, type DocumentNoun, type Preconditions, versionName } from './documents.ts';
import type { PacketViews } from './packet-views.ts';
import { PolicyCache, type StoredPolicy, storedPolicy } from './policy-cache.ts';
import { createStandingService } from './standing.ts';

interface PolicyServiceDependencies extends Omit<ServiceDependencies, 'newId'> {
  turns: Turns;
  checks: SchemaChecks;
  /** What the names of the groups of an identity provider begin with. */
  providerPrefix: string;
  views: Pick<PacketViews, 'of'>;
}

const policyNoun: DocumentNoun = { kind: 'policy', what: 'policy', many: 'policies', field: 'name', most: maxPolicies };

/** The most faults in one answer. */
const maxFaults = 50;

/** The largest policy, as bytes of its JSON. */
const maxPolicyBytes = 64 * 1024;

/** The operations on policies, and what they say to actions. */
export function createPolicyService({ store, clock, turns, checks, views, providerPrefix }: PolicyServiceDependencies) {
  const documents = createDocumentService({ store, clock });
  const cache = new PolicyCache({ store, turns, checks, providerPrefix });

  /** What policies say to an action, by the engine where they need it. */
  const judgement = (tenant: number, policies: readonly StoredPolicy[], subject: Subject): Awaitable<Judgement> =>
    cache.judgeNow(policies, subject) ?? cache.ready(tenant, policies, subject).then((ready) => judge(ready, subject));

  /** The policy of a document, with the warnings about its groups as they are now. */
  async function shown(caller: Caller, stored: StoredDocument): Promise<Policy> {
    const { people } = await cache.of(caller.tenant_number);
    const { description = null, order = 0, match = {}, rules, mode = 'enforce', remember = null } = requestIn(stored);
    const { agents = [], tools = [], tags = [] } = match;
    const { name, version, created_at, updated_at } = stored;
    const warnings = policyWarnings({ rules }, people.groups);
    const names = shadowOutcomes.map((outcome) => shadowCounter(name, version, outcome));
    const counted = await store.of(caller).counters.values(names);
    const [asked, approved, rejected] = names.map((counter) => counted.get(counter) ?? 0) as [number, number, number];
    const shadow = { asked, approved, rejected };
    const own = { name, version, description, order, match: { agents, tools, tags }, rules, mode, remember };
    return { ...own, shadow, warnings, created_at, updated_at };
  }

  return {
    /** Called when policies, groups or delegations may have changed since they were read. */
    changed: () => cache.clear(),

    /** Publishes a policy. `isNew`: there was none of the name. @throws ServiceError 400 that names each fault */
    async publish(caller: Caller, name: string, request: PolicyRequest, preconditions: Preconditions = {}) {
      await requireSound(request, checks, caller.tenant_number);
      const { stored, isNew } = await documents.put(caller, policyNoun, name, request, preconditions);
      return { policy: await shown(caller, stored), isNew };
    },

    /** A policy. @throws ServiceError 404 */
    get: async (caller: Caller, name: string): Promise<Policy> => shown(caller, await documents.get(caller, policyNoun, name)),

    /** Removes a policy. @throws ServiceError 404 */
    remove: (caller: Caller, name: string, preconditions: Preconditions = {}): Promise<void> =>
      documents.remove(caller, policyNoun, name, preconditions),

    /** A page of the tenant's policies, by name. The read is cancelled by `signal`. */
    async list(caller: Caller, query: { limit?: number; cursor?: string }, signal: AbortSignal) {
      const { items, next_cursor } = await documents.page(caller, policyNoun, query, signal);
      return { policies: await Promise.all(items.map((stored) => shown(caller, stored))), next_cursor };
    },

    /** What the policies say to an action, whoever asks. Nothing is written. */
    async try(
      { tenant_number: tenant }: Caller,
      { agent, framework = '', action, tags = [], priority = 'normal', custom = {} }: TryRequest,
    ) {
      const subject: Subject = { tool: action.tool, arguments: action.arguments, agent, framework, tags, priority, custom };
      const { policies } = await cache.of(tenant);
      const { verdict, skipped } = judge(await cache.ready(tenant, policies, subject), subject);
      return { policy: verdict?.policy ?? null, rule: verdict?.rule ?? null, then: verdict?.then ?? null, skipped: [...skipped] };
    },

    /** The operations on what people have approved for later. */
    standing: createStandingService({ store, clock }),

    /** What a tenant has published about approvals. */
    of: (tenant: number) => cache.of(tenant),

    /** What the policies of a tenant say to an action. */
    judge: (tenant: number, subject: Subject): Awaitable<Judgement> =>
      andThen(cache.of(tenant), ({ policies }) => judgement(tenant, policies, subject)),

    /** What one version of a policy says to an action, also after it was replaced or removed. */
    async judgeByVersion(tenant: number, { name, version }: { name: string; version: number }, subject: Subject): Promise<Judgement> {
      const stored = await store.whole(tenant).documents.find('policy_version', versionName(name, version));
      if (stored === undefined) throw new Error('A version of a policy is missing.');
      const policy = { ...storedPolicy({ ...stored, name, version }), mode: 'enforce' as const };
      return judgement(tenant, [policy], subject);
    },

    /** What a policy, stored or given, would have decided about past actions. Nothing is written. @throws ServiceError 400, 404 */
    async replay(caller: Caller, name: string, { policy: given, ...range }: ReplayRequest): Promise<Replayed> {
      if (given !== undefined) await requireSound(given, checks, caller.tenant_number);
      const request = given ?? requestIn(await documents.get(caller, policyNoun, name));
      const policy = { name, version: 0, ...request, mode: 'enforce' as const };
      const found = { actions: 0, approved: 0, rejected: 0, asked: 0, agreeing: 0, disagreeing: [] as Replayed['disagreeing'] };
      const past = await store.of(caller).questions.actions(rangeOf(range));
      for (const { packet_id, record } of past) {
        await turns.next(caller.tenant_number);
        const view = await views.of(caller, packet_id);
        if (view === undefined) continue;
        const { question, asked, answer } = readJson(record) as AskedRecord & { answer: Answer };
        const subject = subjectOf(view.packet, question.action!, question.action!.arguments, asked.asked_by.agent_id);
        const { verdict } = await judgement(caller.tenant_number, [policy], subject);
        if (verdict !== null) addReplayed(found, packet_id, replayOf(verdict, answer.decision!), verdict.rule);
      }
      return found;
    },
  };
}

/** What is read for a replay. */
const rangeOf = ({ since, until, limit = 1000 }: Omit<ReplayRequest, 'policy'>) => ({
  since: since === undefined ? undefined : new Date(since).toISOString(),
  until: until === undefined ? undefined : new Date(until).toISOString(),
  limit,
});

function addReplayed(found: Replayed, packet_id: string, { policy, person, agrees }: ReplayedAction, rule: number | null): void {
  found.actions += 1;
  if (policy === 'approve') found.approved += 1;
  else if (policy === 'reject') found.rejected += 1;
  else found.asked += 1;
  if (agrees === true) found.agreeing += 1;
  if (agrees === false) found.disagreeing.push({ packet_id, person, policy, rule });
}

export type PolicyService = ReturnType<typeof createPolicyService>;

const requestIn = ({ document }: StoredDocument) => readJson(document) as PolicyRequest;

/** Requires that a policy can be judged by. @throws ServiceError 400 that names each fault */
async function requireSound(request: PolicyRequest, checks: SchemaChecks, owner: number): Promise<void> {
  const size = Buffer.byteLength(JSON.stringify(request));
  if (size > maxPolicyBytes) throw invalid('', `The policy has ${size} bytes as JSON; at most ${maxPolicyBytes} are allowed.`);
  const faults = policyFaults(request);
  const found = await Promise.all(request.rules.map((rule, index) => faultsOfRule(rule, `rules.${index}.when`, checks, owner)));
  faults.push(...found.flat());
  if (faults.length > 0) throw invalidRequest(faults.slice(0, maxFaults));
}

/** What is wrong with the schema of a rule. */
async function faultsOfRule({ when, then }: Rule, field: string, checks: SchemaChecks, owner: number): Promise<readonly Fault[]> {
  if (when === undefined) return [];
  const own = await checks.faultsOf(owner, when, field);
  if (own.length > 0 || !('approve' in then)) return own;
  const strict = strictSchema(when, field);
  return strict.faults.length > 0 ? strict.faults : checks.faultsOf(owner, strict.schema, field);
}
