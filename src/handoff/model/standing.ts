import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, Id, IdParams, object, orNull, timestamp } from '../../kit/schemas.ts';
import { rememberScopes } from './action.ts';
import { failing } from './common.ts';
import { pageOf, pageQuery } from './document.ts';
import { defineRoute } from './route.ts';

/** The most standing approvals of a tenant. */
export const maxStanding = 1000;

/** What a person has approved for later. */
export const StandingApproval = object({
  id: Id,
  person: Type.String({ description: 'Whose approval it is.' }),
  agent_id: Type.String({ description: 'The agent for whose calls it stands, asked for with a key that is bound to it.' }),
  tool: Type.String(),
  scope: choice(rememberScopes, { description: '`call`: the same arguments; `tool`: any.' }),
  arguments_digest: orNull(Type.String(), 'The SHA-256 of the canonical JSON (RFC 8785) of the arguments; null for any.'),
  packet_id: Type.String({ description: 'The packet in which it was given.' }),
  created_at: timestamp('When it was given.'),
  expires_at: timestamp('Until when it stands.'),
  uses: Type.Integer({ minimum: 0, description: 'How often it has counted as the approval of its person.' }),
});
export type StandingApproval = Static<typeof StandingApproval>;

const example: StandingApproval = {
  ...{ id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a92', person: 'dana@example.com', agent_id: 'refunds', tool: 'refund', scope: 'tool' },
  ...{ arguments_digest: null, packet_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b', uses: 3 },
  ...{ created_at: '2026-03-01T09:40:00.000Z', expires_at: '2026-03-02T09:40:00.000Z' },
};

const standingRoutes = routeTable('approvals', {
  listStandingApprovals: defineRoute({
    method: 'GET',
    path: '/standing-approvals',
    access: 'read',
    alternative: 'respond',
    summary: 'List standing approvals',
    description:
      'What people have approved for later, the oldest first, also what has expired. Pass `next_cursor` as `cursor` for the next page.',
    query: pageQuery,
    responses: { 200: pageOf('standing_approvals', StandingApproval, example), ...failing(400, 401, 403, 429) },
  }),
  deleteStandingApproval: defineRoute({
    method: 'DELETE',
    path: '/standing-approvals/{id}',
    access: 'manage',
    alternative: 'respond',
    summary: 'Revoke a standing approval',
    description: 'It counts no more. Needs the scope `manage`, or `respond` and a key with its person as `responder`.',
    params: IdParams,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const standingApi = { routes: standingRoutes, schemas: { StandingApproval } };
