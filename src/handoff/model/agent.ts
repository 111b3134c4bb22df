import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { object, orNull, paging, timestamp } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

/** An agent that a tenant's requests have named. */
export const Agent = Type.Object({
  agent_id: Type.String(),
  last_seen_at: timestamp('When a request last named it: as source, as claimant or in X-Agent-Id.'),
  holding: Type.Integer({ description: 'How many open packets it holds.' }),
  waiting: Type.Integer({ description: 'How many packets in `created` have it as their target.' }),
  contract: orNull(Type.Integer(), 'The version of its contract; null if it has none.'),
});
export type Agent = Static<typeof Agent>;

/** The routes of agents. */
const agentRoutes = routeTable('agents', {
  listAgents: defineRoute({
    method: 'GET',
    path: '/agents',
    access: 'read',
    summary: 'List agents',
    description: "The agents that the tenant's requests have named, most recently seen first.",
    query: object(paging()),
    responses: {
      200: {
        schema: Type.Object({ agents: Type.Array(Agent), total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer() }),
        description: 'The agents.',
        example: {
          agents: [{ agent_id: 'resolver', last_seen_at: '2026-03-01T09:30:00.000Z', holding: 2, waiting: 5, contract: 1 }],
          total: 1,
          limit: 50,
          offset: 0,
        },
      },
      ...failing(401, 403, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const agentApi = {
  tag: { name: 'agents', description: 'The agents that hand over and claim packets.' },
  routes: agentRoutes,
  schemas: {},
};
