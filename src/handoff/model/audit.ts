import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, givenTimestamp, Id, object, orNull, paging, record, timestamp } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

/** One entry of a tenant's audit log. */
export const AuditEntry = Type.Object({
  id: Id,
  packet_id: orNull(Id),
  actor: Type.String({ description: 'Who did it.', example: 'agent:resolver' }),
  key_id: orNull(Id, 'The API key that was used; null when the service itself acted.'),
  action: Type.String({ description: 'What happened.', example: 'claimed' }),
  resource: Type.String({ description: 'The kind of resource.', example: 'packet' }),
  details: record(Type.Unknown(), { description: 'What was done; empty once the packet is erased.' }),
  timestamp: timestamp('When it happened.'),
});
export type AuditEntry = Static<typeof AuditEntry>;

const AuditQuery = object({
  actor: Type.Optional(Type.String({ description: 'Who did it.' })),
  action: Type.Optional(Type.String({ description: 'What happened.' })),
  packet_id: Type.Optional(Type.String({ description: 'The packet it happened to.' })),
  created_after: Type.Optional(givenTimestamp('At or after this moment.')),
  created_before: Type.Optional(givenTimestamp('At or before this moment.')),
  ...paging(),
});

/** The routes of the audit log. */
const auditRoutes = routeTable('audit', {
  listAudit: defineRoute({
    method: 'GET',
    path: '/audit',
    access: 'read',
    summary: 'Read the audit log',
    description: "The history of all the tenant's packets, and the changes to its keys, newest first. Filters are combined with AND.",
    query: AuditQuery,
    responses: {
      200: {
        schema: Type.Object({
          entries: Type.Array(AuditEntry),
          total: Type.Integer(),
          limit: Type.Integer(),
          offset: Type.Integer(),
          total_is: choice(['exact', 'at_least'], { description: 'Whether `total` is the number of entries or a lower bound.' }),
        }),
        description: 'Everything that happened in the tenant, newest first.',
        example: {
          entries: [
            {
              id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8c',
              packet_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b',
              actor: 'agent:resolver',
              key_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8d',
              action: 'claimed',
              resource: 'packet',
              details: {},
              timestamp: '2026-03-01T09:30:00.000Z',
            },
          ],
          total: 1,
          limit: 50,
          offset: 0,
          total_is: 'exact',
        },
      },
      ...failing(401, 403, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const auditApi = {
  tag: { name: 'audit', description: 'The audit log of a tenant.' },
  routes: auditRoutes,
  schemas: { AuditEntry },
};
