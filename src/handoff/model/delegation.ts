import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { givenTimestamp, IfMatch, object, orNull, remark, timestamp } from '../../kit/schemas.ts';
import { ETag, failing } from './common.ts';
import { pageOf, pageQuery } from './document.ts';
import { personName } from './group.ts';
import { defineRoute } from './route.ts';

/** That one person approves in another one's place for a time. */
export const Delegation = object({
  person: Type.String({ description: 'Who is away.' }),
  version: Type.Integer({ minimum: 1, description: 'The number of the version. Each change increments it, also after a removal.' }),
  to: Type.String({ description: 'Who approves in that place, under the own name.' }),
  from: orNull(timestamp('From when.'), 'From when; null: since it was set.'),
  until: timestamp('Until when.'),
  reason: orNull(Type.String()),
  created_at: timestamp('When it was first set, or set again after a removal.'),
  updated_at: timestamp('When its version was set.'),
});
export const DelegationRequest = object({
  to: personName('Who approves in the place of the person. It can be nobody who is away in turn: that is not followed.'),
  from: Type.Optional(givenTimestamp('From when; from now if left out.')),
  until: givenTimestamp('Until when.'),
  reason: Type.Optional(remark('Why.')),
});

export type Delegation = Static<typeof Delegation>;
export type DelegationRequest = Static<typeof DelegationRequest>;

const times = { created_at: '2026-03-01T09:30:00.000Z', updated_at: '2026-03-01T09:30:00.000Z' };
const delegationExample = {
  ...{ person: 'dana@example.com', version: 1, to: 'eli@example.com', from: null, until: '2026-03-15T00:00:00.000Z' },
  ...{ reason: 'On leave', ...times },
};
const delegation = (description: string) => ({ schema: Delegation, description, example: delegationExample, headers: ETag });
const params = Type.Object({ person: personName('The name of the person.') });
const path = '/delegations/{person}';
const by = 'Needs the scope `manage`, or `respond` and a key with that `responder`.';

const delegationRoutes = routeTable('approvals', {
  putDelegation: defineRoute({
    method: 'PUT',
    path,
    access: 'manage',
    alternative: 'respond',
    summary: "Let a person's approvals be given by another one",
    description: `Where a step asks the person, the delegate may approve in that place; the two count once. A delegate delegates nothing further. ${by}`,
    params,
    body: DelegationRequest,
    bodyExample: { to: delegationExample.to, until: delegationExample.until, reason: delegationExample.reason },
    nullIsAbsent: true,
    headers: { ...IfMatch, 'If-None-Match': '`*`: only if the person has no delegate yet. Optional.' },
    responses: {
      200: delegation('The delegation, in its next version unless nothing changed.'),
      201: delegation('The delegation, which did not exist before.'),
      ...failing(400, 401, 403, 409, 412, 413, 415, 429),
    },
  }),
  getDelegation: defineRoute({
    method: 'GET',
    path,
    access: 'read',
    alternative: 'respond',
    summary: 'Get a delegation',
    params,
    responses: { 200: delegation('The delegation, which may be over.'), ...failing(401, 403, 404, 429) },
  }),
  deleteDelegation: defineRoute({
    method: 'DELETE',
    path,
    access: 'manage',
    alternative: 'respond',
    summary: 'End a delegation',
    description: by,
    params,
    headers: IfMatch,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 412, 429) },
  }),
  listDelegations: defineRoute({
    method: 'GET',
    path: '/delegations',
    access: 'read',
    alternative: 'respond',
    summary: 'List delegations',
    description: 'The delegations, by person. Pass `next_cursor` as `cursor` for the next page; it is null on the last page.',
    query: pageQuery,
    responses: { 200: pageOf('delegations', Delegation, delegationExample), ...failing(401, 403, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const delegationApi = { routes: delegationRoutes, schemas: { Delegation, DelegationRequest } };
