import { describeApi } from '../../kit/openapi.ts';
import type { Route } from '../../kit/route.ts';
import * as access from './access.ts';
import * as audit from './audit.ts';
import { Failure } from './common.ts';
import * as packetSchemas from './packet.ts';
import * as packets from './packet-routes.ts';
import * as system from './system.ts';

/** The prefix of every route but the system's, which are found at the root as well. */
export const apiPrefix = '/api/v1';

/** Every route of the service, by its operation's name. */
export const routes = {
  createPacket: packets.createPacket,
  listPackets: packets.listPackets,
  listAwaiting: packets.listAwaiting,
  searchPackets: packets.searchPackets,
  getPacket: packets.getPacket,
  patchPacket: packets.patchPacket,
  deletePacket: packets.deletePacket,
  claimPacket: packets.claimPacket,
  respondPacket: packets.respondPacket,
  chainPacket: packets.chainPacket,
  packetHistory: packets.packetHistory,
  batchCreate: packets.batchCreate,
  batchClaim: packets.batchClaim,
  batchComplete: packets.batchComplete,
  listAudit: audit.listAudit,
  createKey: access.createKey,
  listKeys: access.listKeys,
  deleteKey: access.deleteKey,
  createTenant: access.createTenant,
  listTenants: access.listTenants,
  getTenant: access.getTenant,
  patchTenant: access.patchTenant,
  deleteTenant: access.deleteTenant,
  listTenantKeys: access.listTenantKeys,
  health: system.health,
  ready: system.ready,
  metrics: system.metrics,
} as const;

/** Where a route is mounted. */
export function prefixesOf(route: Route): readonly string[] {
  return route.tag === 'system' ? ['', apiPrefix] : [apiPrefix];
}

/** The service's OpenAPI description. */
export function describeHandoff(version: string): Record<string, unknown> {
  return describeApi({
    title: 'Handoff packet service',
    version,
    description: 'Agents hand units of work to one another: create, claim, ask a person, complete, chain.',
    server: '/',
    tags: [
      { name: 'packets', description: 'Units of work that agents hand over.' },
      { name: 'audit', description: 'What happened, tenant by tenant.' },
      { name: 'keys', description: "A tenant's API keys." },
      { name: 'tenants', description: 'Tenants; for admin keys.' },
      { name: 'system', description: 'Liveness, readiness, metrics. Found at the root and under the API prefix.' },
    ],
    routes,
    schemas: {
      Failure,
      Packet: packetSchemas.Packet,
      PacketSummary: packetSchemas.PacketSummary,
      CreateRequest: packetSchemas.CreateRequest,
      ChainRequest: packetSchemas.ChainRequest,
      PatchRequest: packetSchemas.PatchRequest,
      HistoryEvent: packetSchemas.HistoryEvent,
      AuditEntry: audit.AuditEntry,
      ApiKey: access.ApiKey,
      NewApiKey: access.NewApiKey,
      Tenant: access.Tenant,
    },
    pathOf: (route) => prefixesOf(route)[0] + route.path,
  });
}
