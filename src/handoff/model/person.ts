import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, object, orNull, paging, timestamp } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

/** How a person answers. */
const personMethods = ['sign_in', 'key', 'link'] as const;

/** A person who answers questions. */
export const Person = Type.Object({
  name: Type.String({ description: 'The name that the answers carry.' }),
  groups: Type.Array(Type.String(), { description: 'The groups at the last sign-in.' }),
  methods: Type.Array(choice(personMethods), {
    description:
      'How the person answers: by signing in, by a key with this `responder`, or by the links of a channel with this `responder`.',
  }),
  last_seen_at: orNull(timestamp('When the person signed in last.'), 'Null if nobody signed in under the name.'),
  suspended: Type.Boolean({ description: 'Whether the person answers nothing, on any way.' }),
});
export type Person = Static<typeof Person>;

const PersonParams = Type.Object({
  name: Type.String({ description: 'The name of the person. Case does not matter.', example: 'dana@example.com' }),
});

const dana: Person = {
  name: 'dana@example.com',
  groups: ['idp:finance'],
  methods: ['sign_in', 'link'],
  last_seen_at: '2026-03-01T09:30:00.000Z',
  suspended: false,
};

/** The routes of people. */
const personRoutes = routeTable('people', {
  listPeople: defineRoute({
    method: 'GET',
    path: '/people',
    access: 'manage',
    summary: 'List the people who answer',
    description: 'Everybody who signed in, whom a key or a channel names as its `responder`, or who was suspended, by name.',
    query: object(paging()),
    responses: {
      200: {
        schema: Type.Object({ people: Type.Array(Person), total: Type.Integer(), limit: Type.Integer(), offset: Type.Integer() }),
        description: 'The people.',
        example: { people: [dana], total: 1, limit: 50, offset: 0 },
      },
      ...failing(401, 403, 429),
    },
  }),
  suspendPerson: defineRoute({
    method: 'POST',
    path: '/people/{name}/suspend',
    access: 'manage',
    summary: 'Suspend a person',
    description:
      'The person answers nothing from now on: the sessions and the open answer links end, keys with this `responder` are refused (401), and channels of this `responder` send links no more. The name need not be known yet. Suspending again changes nothing.',
    params: PersonParams,
    responses: {
      200: { schema: Person, description: 'The person.', example: { ...dana, suspended: true } },
      ...failing(401, 403, 429),
    },
  }),
  resumePerson: defineRoute({
    method: 'POST',
    path: '/people/{name}/resume',
    access: 'manage',
    summary: 'Let a suspended person answer again',
    description: 'Keys and channels of the person work again; sessions and links that ended stay ended.',
    params: PersonParams,
    responses: { 200: { schema: Person, description: 'The person.', example: dana }, ...failing(401, 403, 404, 429) },
  }),
  releasePerson: defineRoute({
    method: 'POST',
    path: '/people/{name}/release',
    access: 'manage',
    summary: 'Release a name for somebody else',
    description:
      'The next person who signs in under the name gets it. Until then a name belongs to the person of the identity provider who signed in under it first, and another one is refused. The sessions, the open answer links and the standing approvals of the former person end, with the delegations from and to the name. 409 while keys or channels have the `responder`, or channels or schedules are of that person: they would act for the next one.',
    params: PersonParams,
    responses: { 200: { schema: Person, description: 'The person.', example: dana }, ...failing(401, 403, 404, 409, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const personApi = {
  tag: { name: 'people', description: 'The people who answer questions.' },
  routes: personRoutes,
  schemas: { Person },
};
