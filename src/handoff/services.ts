import { agentHandlers } from './http/agents.ts';
import { answerLinkHandlers } from './http/answer-links.ts';
import { approvalHandlers } from './http/approvals.ts';
import { briefHandlers } from './http/brief.ts';
import { channelHandlers } from './http/channels.ts';
import { contractHandlers } from './http/contracts.ts';
import { erasureHandlers } from './http/erasures.ts';
import type { NounHandlers } from './http/handlers.ts';
import { keyHandlers } from './http/keys.ts';
import { packetHandlers } from './http/packets.ts';
import { peopleHandlers } from './http/people.ts';
import { delegationHandlers, groupHandlers, policyHandlers } from './http/policies.ts';
import { questionHandlers } from './http/questions.ts';
import { scheduleHandlers } from './http/schedules.ts';
import { sessionHandlers } from './http/sign-in.ts';
import { statsHandlers } from './http/stats.ts';
import { tenantHandlers } from './http/tenants.ts';
import { trailHandlers } from './http/trail.ts';
import { webhookHandlers } from './http/webhooks.ts';
import type { Identity } from './identity/identity.ts';
import { signInUse } from './identity-settings.ts';
import { SchemaChecks } from './json-schema/checks.ts';
import type { Base, Live } from './main.ts';
import { createSending } from './sending.ts';
import { AgentService } from './service/agents.ts';
import { createAnswerLinkService } from './service/answer-links.ts';
import { createApprovalService } from './service/approvals.ts';
import { createAuditService, createHeadSigner } from './service/audit.ts';
import { createCallerOfOrigin } from './service/authentication.ts';
import { createBriefService } from './service/brief.ts';
import { createChannelService } from './service/channels.ts';
import { OpenConnections } from './service/connections.ts';
import { createContractService } from './service/contracts.ts';
import { createDelegationService } from './service/delegations.ts';
import { createErasureService } from './service/erasures.ts';
import { createExecutionService } from './service/executions.ts';
import { createGroupService } from './service/groups.ts';
import { createKeyService } from './service/keys.ts';
import { createListService } from './service/lists.ts';
import { createNoticeService } from './service/notices.ts';
import { createPacketViews } from './service/packet-views.ts';
import { createPacketService } from './service/packets.ts';
import { createPeopleService } from './service/people.ts';
import { createPolicyService } from './service/policies.ts';
import { createQuestionService } from './service/questions.ts';
import { createScheduleService } from './service/schedules.ts';
import { createStatsService } from './service/stats.ts';
import { createTenantService } from './service/tenants.ts';
import { createTrailService } from './service/trail.ts';
import { createWaitingService } from './service/waiting.ts';
import { mailProblem, type Settings, tierLimits } from './settings.ts';
import type { Store } from './store/store.ts';

/** Wires the operations, and the requests to receivers of webhooks and messages. */
export function createServices(base: Base, store: Store, live: Live, identity: Identity | undefined) {
  const { settings, clock, newId, random, logger } = base;
  const parts = { store, clock, newId, random };
  const { turns } = live;
  const agents = new AgentService(store, clock);
  const { publicUrl } = settings;
  const views = createPacketViews(store, turns);
  const { urlProblem, ...sending } = createSending(base, { ...parts, views, turns });
  const checks = new SchemaChecks();
  const contracts = createContractService({
    store,
    clock,
    turns,
    checks,
    onSeen: (tenant, agentId) => agents.seen(tenant, agentId),
  });
  const policies = createPolicyService({ store, clock, turns, checks, views, providerPrefix: settings.oidcGroupPrefix });
  const signIn = signInUse(settings);
  const callerOfOrigin = createCallerOfOrigin({ store, clock, signIn: signIn.isOffered ? identity : undefined });
  const facts = { policies, checks, callerOfOrigin, clock };
  const answerLinks = createAnswerLinkService({ views, ...parts, publicUrl, facts, callerOfOrigin, signIn });
  const onChange = () => {
    contracts.changed();
    policies.changed();
  };
  const keys = createKeyService({ ...parts, onChange });
  const connections = new OpenConnections(
    (caller) => (caller.kind === 'key' ? keys.isValid(caller) : identity!.isValid(caller)),
    tierLimits(settings),
  );
  const creation = {
    ...parts,
    ...facts,
    contracts,
    limits: tierLimits(settings),
    quotas: { chainDepthMax: settings.chainDepthMax, openPacketsPerAgent: settings.openPacketsPerAgent },
    onSeen: (tenant: number, agentId: string) => agents.seen(tenant, agentId),
    onCreated: live.metrics.handedOver,
  };
  const packets = createPacketService({ ...creation, signIn });
  return {
    ...{ keys, connections, agents, checks, contracts, policies, packets, answerLinks, views, callerOfOrigin },
    ...sending,
    ...{ people: createPeopleService(parts), tenants: createTenantService(parts) },
    approvals: createApprovalService(creation),
    schedules: createScheduleService({ ...creation, turns, callerOfOrigin, refresh: keys.refresh }),
    executions: createExecutionService({ ...parts, views }),
    audit: createAuditService({ ...parts, turns, signer: signerOf(settings), onHead: (head) => logger.info(head, 'audit head') }),
    erasures: createErasureService({ ...parts, views, retentionDays: settings.retentionDays }),
    ...{ groups: createGroupService({ ...parts, providerPrefix: settings.oidcGroupPrefix }), delegations: createDelegationService(parts) },
    waiting: createWaitingService({ views, packets, connections, list: live.waitingList }),
    notices: createNoticeService({ views, clock, answerLinks, publicUrl }),
    channels: createChannelService({ ...parts, urlProblem, mailProblem: mailProblem(settings), publicUrl, signIn }),
  };
}

/** The operations of the service. */
export type Services = ReturnType<typeof createServices>;

/** The signer of the audit log's heads, if the settings have its key. */
const signerOf = ({ auditSigningKey }: Settings) => (auditSigningKey === undefined ? undefined : createHeadSigner(auditSigningKey));

interface HandlerDependencies {
  store: Store;
  live: Live;
  services: Services;
  identity: Identity | undefined;
}

/** The handlers of all nouns. */
export function createHandlers(
  { settings, clock }: Base,
  { store, live: { turns }, services, identity }: HandlerDependencies,
): NounHandlers {
  const { packets, waiting, keys, tenants, agents, contracts, answerLinks, webhooks, channels, views } = services;
  const lists = createListService(store);
  return {
    ...questionHandlers(createQuestionService({ store, views, clock }), packets),
    ...packetHandlers({ store, packets, lists, waiting, turns, batchMax: settings.batchMax, tiers: tierLimits(settings) }),
    ...keyHandlers(keys),
    ...peopleHandlers(services.people),
    ...sessionHandlers(identity),
    ...tenantHandlers(tenants),
    ...agentHandlers(agents),
    ...contractHandlers(contracts),
    ...approvalHandlers(services.approvals, services.executions),
    ...erasureHandlers(services.erasures),
    ...policyHandlers(services.policies),
    ...groupHandlers(services.groups),
    ...delegationHandlers(services.delegations),
    ...scheduleHandlers(services.schedules),
    ...statsHandlers(createStatsService(store, clock)),
    ...answerLinkHandlers(answerLinks, identity?.signsIn ? identity : undefined),
    ...trailHandlers(createTrailService(store), services.audit),
    ...briefHandlers(createBriefService(views)),
    ...webhookHandlers(webhooks),
    ...channelHandlers(channels),
  };
}
