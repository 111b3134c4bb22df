import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, defaulted, givenTimestamp, Id, object, orNull, paging, record, timestamp } from '../../kit/schemas.ts';
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

/** The end of a tenant's chain of digests. */
export const AuditHead = Type.Object({
  tenant_id: Id,
  position: Type.Integer({ description: 'The position of the last entry; 0 before the first.' }),
  digest: Type.String({ description: 'Its digest; 64 zeros before the first.' }),
  at: orNull(timestamp('When the last entry was written.')),
  signature: Type.Optional(
    Type.String({ description: 'In base64, over the canonical JSON (RFC 8785) of the four members above, if the service has a key.' }),
  ),
  key_id: Type.Optional(Type.String({ description: 'The key of the signature.' })),
});
export type AuditHead = Static<typeof AuditHead>;

/** The public keys of signatures of heads. */
export const AuditKeys = Type.Object({
  keys: Type.Array(
    Type.Object({
      key_id: Type.String({ description: 'The first 16 hexadecimal digits of SHA-256 of the public key (SPKI).' }),
      public_key: Type.String({ description: 'The public key (Ed25519) as PEM.' }),
    }),
  ),
});
export type AuditKeys = Static<typeof AuditKeys>;

const filters = {
  actor: Type.Optional(Type.String({ description: 'Who did it.' })),
  action: Type.Optional(Type.String({ description: 'What happened.' })),
  packet_id: Type.Optional(Type.String({ description: 'The packet it happened to.' })),
  key_id: Type.Optional(Type.String({ description: 'The key that was used.' })),
  person: Type.Optional(Type.String({ description: "The name, or the identity provider's id, of a person who signed in and did it." })),
  subject: Type.Optional(Type.String({ description: 'The id of a person whose data its packet holds.' })),
  created_after: Type.Optional(givenTimestamp('At or after this moment.')),
  created_before: Type.Optional(givenTimestamp('At or before this moment.')),
};

const AuditQuery = object({
  ...filters,
  ...paging(),
  cursor: Type.Optional(
    Type.String({
      maxLength: 1024,
      description: 'The `next_cursor` of the previous page, which new entries do not shift; must not be combined with `offset`.',
    }),
  ),
});

const position = (description: string) => Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, description }));

const ExportQuery = object({
  from: position('The first position; by default 1.'),
  to: position('The last position; by default that of the head.'),
  format: defaulted(choice(['jsonl', 'csv'], { default: 'jsonl', description: '`csv`: a table for spreadsheets, without digests.' })),
  ...filters,
});

const headExample = {
  tenant_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a80',
  position: 0,
  digest: '0000000000000000000000000000000000000000000000000000000000000000',
  at: null,
};

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
          next_cursor: orNull(Type.String(), 'For the next page; null on the last one.'),
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
          next_cursor: null,
          total_is: 'exact',
        },
      },
      ...failing(400, 401, 403, 429),
    },
  }),
  auditHead: defineRoute({
    method: 'GET',
    path: '/audit/head',
    access: 'manage',
    summary: 'Read the end of the audit log',
    description:
      'Each entry has the digest of what it says and of the entry before it, so the last digest stands for the whole log. A head that is kept elsewhere shows later whether anything before it was changed or removed.',
    responses: {
      200: { schema: AuditHead, description: 'The last position and its digest.', example: headExample },
      ...failing(401, 403, 429),
    },
  }),
  auditKeys: defineRoute({
    method: 'GET',
    path: '/audit/keys',
    access: 'manage',
    summary: 'List the keys that sign heads',
    responses: { 200: { schema: AuditKeys, description: 'The public keys.', example: { keys: [] } }, ...failing(401, 403, 429) },
  }),
  exportAudit: defineRoute({
    method: 'GET',
    path: '/audit/export',
    access: 'manage',
    summary: 'Export the audit log',
    description:
      'JSON Lines: a line with the header, one for each entry in the order of positions with what its digest covers, and the head. `salt` and `details` are null once they are erased. With a filter only the entries are checked, not that none is missing.',
    query: ExportQuery,
    responses: {
      200: {
        schema: Type.String(),
        contentType: 'application/jsonl; charset=utf-8',
        description: 'The entries. With `format=csv` the media type is `text/csv`.',
        otherTypes: { 'text/csv; charset=utf-8': 'timestamp,action,resource,packet_id,actor,key_id,details,id\r\n' },
        example: `${JSON.stringify({ header: { version: 1, tenant_id: headExample.tenant_id, from: 1, to: 0, previous: headExample.digest } })}\n${JSON.stringify({ head: headExample })}\n`,
      },
      ...failing(400, 401, 403, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const auditApi = {
  tag: { name: 'audit', description: 'The audit log of a tenant.' },
  routes: auditRoutes,
  schemas: { AuditEntry, AuditHead, AuditKeys },
};
