import { describeApi } from '../../kit/openapi.ts';
import type { Route } from '../../kit/route.ts';
import { Failure } from '../../kit/schemas.ts';
import { systemRoutes } from '../../kit/system.ts';
import { a2a, a2aRestRoutes, agentCard } from './a2a.ts';
import { agentRoutes } from './agent.ts';
import * as answerLink from './answer-link.ts';
import * as audit from './audit.ts';
import * as batches from './batch-routes.ts';
import * as brief from './brief.ts';
import * as channel from './channel.ts';
import * as keys from './key.ts';
import { mcp } from './mcp.ts';
import * as packetSchemas from './packet.ts';
import * as packets from './packet-routes.ts';
import type { HandoffRoute } from './route.ts';
import { streamRoutes } from './stream.ts';
import * as tenants from './tenant.ts';
import * as webhookSchemas from './webhook.ts';
import { webhookRoutes } from './webhook-routes.ts';
import { workRoutes } from './work-routes.ts';

/** The name of the service in the API description and on its pages. */
export const serviceTitle = 'Baton handoff packet service';

/** The prefix of every route; the system routes are mounted at the root as well. */
export const apiPrefix = '/api/v1';

/** Every route of the service, by its operation's name. */
export const routes = {
  ...packets.packetRoutes,
  ...answerLink.answerLinkRoutes,
  ...brief.briefRoutes,
  ...batches.batchRoutes,
  ...webhookRoutes,
  ...channel.channelRoutes,
  ...workRoutes,
  ...agentRoutes,
  ...audit.auditRoutes,
  ...keys.keyRoutes,
  ...tenants.tenantRoutes,
  ...keys.tenantKeyRoutes,
  ...systemRoutes,
} as const;

/** Returns the path prefixes under which a route is mounted. */
export function prefixesOf(route: Route): readonly string[] {
  if (['streams', 'mcp', 'a2a', 'pages'].includes(route.tag)) return [''];
  return route.tag === 'system' ? ['', apiPrefix] : [apiPrefix];
}

const limitHeaders = {
  'X-RateLimit-Limit': 'The maximum number of requests in any 60 seconds.',
  'X-RateLimit-Remaining': 'How many of these requests are left.',
  'X-RateLimit-Reset': 'Seconds until the oldest request counted leaves the window.',
  'X-RateLimit-Tier': 'The tier of the key: `free`, `pro` or `business`.',
};
const retryAfter = { 'Retry-After': 'Seconds until a request is allowed again.' };

/** The headers that any answer of a route with this status may have. */
function headersOf({ access }: Route, status: number): Record<string, string> {
  if (access === 'public' || status === 401) return {};
  return { ...limitHeaders, ...(status === 429 ? retryAfter : {}) };
}

/** Who may call a route, as its description says. */
function rightsOf(route: Route): string | undefined {
  const { access, alternative } = route as Route & HandoffRoute;
  if (access === 'public') return undefined;
  if (access === 'admin') return 'Needs an admin key.';
  return `Needs a key with the scope \`${access}\`${alternative === undefined ? '' : ` or \`${alternative}\``}.`;
}

/** The schemas that the API description names, so that routes refer to them. */
const schemas = {
  Failure,
  Packet: packetSchemas.Packet,
  PacketSummary: packetSchemas.PacketSummary,
  PacketList: packets.PacketList,
  PacketHit: packets.PacketHit,
  SearchList: packets.SearchList,
  BatchRefused: batches.BatchRefused,
  SourceAgent: packetSchemas.SourceAgent,
  TargetAgent: packetSchemas.TargetAgent,
  Turn: packetSchemas.Turn,
  Artifact: packetSchemas.Artifact,
  Decision: packetSchemas.Decision,
  PendingAction: packetSchemas.PendingAction,
  CompletedAction: packetSchemas.CompletedAction,
  FailedAction: packetSchemas.FailedAction,
  Dependency: packetSchemas.Dependency,
  Hitl: packetSchemas.Hitl,
  CreateRequest: packetSchemas.CreateRequest,
  ChainRequest: packetSchemas.ChainRequest,
  PatchRequest: packetSchemas.PatchRequest,
  ClaimRequest: packetSchemas.ClaimRequest,
  RespondRequest: packetSchemas.RespondRequest,
  BatchCreateRequest: packetSchemas.BatchCreateShape,
  BatchClaimRequest: packetSchemas.BatchClaimRequest,
  BatchCompleteRequest: packetSchemas.BatchCompleteRequest,
  HistoryEvent: packetSchemas.HistoryEvent,
  AnswerLink: answerLink.AnswerLink,
  NewAnswerLink: answerLink.NewAnswerLink,
  AnswerLinkRequest: answerLink.AnswerLinkRequest,
  Brief: brief.Brief,
  Webhook: webhookSchemas.Webhook,
  WebhookRequest: webhookSchemas.WebhookRequest,
  WebhookPatch: webhookSchemas.WebhookPatch,
  Delivery: webhookSchemas.Delivery,
  DeliveryDetail: webhookSchemas.DeliveryDetail,
  ReplayedDelivery: webhookSchemas.Replayed,
  RetryRequest: webhookSchemas.RetryRequest,
  Retried: webhookSchemas.Retried,
  Channel: channel.Channel,
  ChannelRequest: channel.ChannelRequest,
  ChannelPatch: channel.ChannelPatch,
  ChannelDelivery: channel.ChannelDelivery,
  AuditEntry: audit.AuditEntry,
  ApiKey: keys.ApiKey,
  NewApiKey: keys.NewApiKey,
  OwnKey: keys.OwnKey,
  KeyRequest: keys.KeyRequest,
  RotateRequest: keys.RotateRequest,
  Tenant: tenants.Tenant,
  TenantRequest: tenants.TenantRequest,
  TenantPatch: tenants.TenantPatch,
};

/** The service's OpenAPI description. */
export function describeHandoff(version: string): Record<string, unknown> {
  return describeApi({
    title: serviceTitle,
    version,
    description: [
      'Agents hand units of work (packets) to one another: create, claim, ask a person, complete, chain.',
      'A packet is `created` until an agent claims it, then `claimed`, `in_progress` while the agent works, `awaiting_human` while a person is asked, ' +
        'and finally `completed`, `failed` or `expired`. `PATCH` with a `status` moves it; an answer moves it from `awaiting_human` back to `claimed`.',
      "The API key in `X-API-Key`, or in `Authorization: Bearer`, belongs to one tenant. Another tenant's packets and keys answer 404, like ids that do not exist.",
      'What a key may do is restricted by its `scopes` (`read`, `work`, `respond`, `manage`), the `agents` that it may act as, and the `responder` in whose name it answers.',
      'To read a whole list, pass `next_cursor` as `cursor` until it is null.',
      'For 24 hours, a repeated request with the same `Idempotency-Key` gets the first answer again and changes nothing; with another body it gets 409. ' +
        '`If-Match` with the `ETag` last seen makes a change fail with 412 if the packet has changed since.',
      'History and audit entries name the actor, `agent:<id>`, `human:<name>`, `key:<id>` or `system:<job>`, and the key in `key_id`.',
      'Every 429 names its limit in `limit`; `Retry-After` says when a request is allowed again. A refused request is not counted.',
      'Every error has the body `Failure`: a sentence in `detail`, a `code` for programs, the `field` at fault, and the `status_code`.',
    ].join('\n\n'),
    tags: [
      { name: 'packets', description: 'Units of work that agents hand over.' },
      { name: 'answer links', description: 'Pages on which people answer a question without a key.' },
      { name: 'webhooks', description: 'Signed callbacks, their deliveries and dead letters.' },
      { name: 'channels', description: 'Mail addresses and Slack channels that learn of questions.' },
      { name: 'agents', description: 'The agents that hand over and claim packets.' },
      { name: 'streams', description: 'Events as they happen. Served at the root.' },
      { name: 'a2a', description: 'The service as an agent of A2A 1.0. Served at the root.' },
      { name: 'mcp', description: 'The tools of the service, for clients of the Model Context Protocol. Served at the root.' },
      { name: 'audit', description: 'The audit log of a tenant.' },
      { name: 'keys', description: "A tenant's API keys." },
      { name: 'tenants', description: 'Tenants; for admin keys.' },
      { name: 'system', description: 'Liveness, readiness, metrics. Served at the root and under the API prefix.' },
    ],
    routes: { ...routes, ...streamRoutes, mcp, agentCard, a2a, ...Object.fromEntries(a2aRestRoutes.map(({ route }) => [route.id, route])) },
    schemas,
    pathOf: (route) => prefixesOf(route)[0] + route.path,
    rightsOf,
    headersOf,
  });
}
