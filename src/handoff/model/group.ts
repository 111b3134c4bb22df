import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { IfMatch, name, object, timestamp } from '../../kit/schemas.ts';
import { ETag, failing, indexedName } from './common.ts';
import { pageOf, pageQuery } from './document.ts';
import { defineRoute } from './route.ts';

/** The most members of a group. */
const maxMembers = 1000;

/** The name of a person, as policies, groups and delegations have it. */
export const personName = (description: string) => name(description, { maxLength: 200 });

const members = Type.Array(personName('The name of a person, as in `responded_by`.'), {
  maxItems: maxMembers,
  description: 'The people of the group. Names are compared trimmed, in Unicode NFC, without case.',
});

/** People that policies and channels name together. */
export const Group = object({
  name: Type.String({ description: 'The name of the group; policies name it as `group:NAME`.' }),
  version: Type.Integer({ minimum: 1, description: 'The number of the version. Each change increments it, also after a removal.' }),
  members,
  created_at: timestamp('When it was first published, or published again after a removal.'),
  updated_at: timestamp('When its version was published.'),
});
export const GroupRequest = object({ members });

export type Group = Static<typeof Group>;
export type GroupRequest = Static<typeof GroupRequest>;

const times = { created_at: '2026-03-01T09:30:00.000Z', updated_at: '2026-03-01T09:30:00.000Z' };
const groupExample = { name: 'finance', version: 1, members: ['dana@example.com', 'eli@example.com'], ...times };
const group = (description: string) => ({ schema: Group, description, example: groupExample, headers: ETag });
const params = Type.Object({ name: indexedName('The name of the group.') });

const groupRoutes = routeTable('approvals', {
  putGroup: defineRoute({
    method: 'PUT',
    path: '/groups/{name}',
    access: 'manage',
    summary: 'Set the members of a group',
    description:
      'Who is a member counts from now on, also for open questions. Names that begin with `SERVICE_OIDC_GROUP_PREFIX`, which is `idp:` by default, are those of an identity provider and are refused.',
    params,
    body: GroupRequest,
    bodyExample: { members: groupExample.members },
    headers: { ...IfMatch, 'If-None-Match': '`*`: only if there is no such group yet. Optional.' },
    responses: {
      200: group('The group, in its next version unless nothing changed.'),
      201: group('The group, which did not exist before.'),
      ...failing(400, 401, 403, 409, 412, 413, 415, 429),
    },
  }),
  getGroup: defineRoute({
    method: 'GET',
    path: '/groups/{name}',
    access: 'read',
    alternative: 'manage',
    summary: 'Get a group',
    params,
    responses: { 200: group('The group.'), ...failing(401, 403, 404, 429) },
  }),
  deleteGroup: defineRoute({
    method: 'DELETE',
    path: '/groups/{name}',
    access: 'manage',
    summary: 'Remove a group',
    description: 'Steps of policies that name it ask nobody by it any more.',
    params,
    headers: IfMatch,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 412, 429) },
  }),
  listGroups: defineRoute({
    method: 'GET',
    path: '/groups',
    access: 'read',
    alternative: 'manage',
    summary: 'List groups',
    description: 'The groups, by name. Pass `next_cursor` as `cursor` for the next page; it is null on the last page.',
    query: pageQuery,
    responses: { 200: pageOf('groups', Group, groupExample), ...failing(401, 403, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const groupApi = { routes: groupRoutes, schemas: { Group, GroupRequest } };
