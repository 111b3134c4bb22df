import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { Id, IdParams, timestamp } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

/** A session of a person who signed in. */
export const Session = Type.Object({
  id: Id,
  person: Type.String({ description: 'The name of the person.' }),
  created_at: timestamp('When the person signed in.'),
  last_seen_at: timestamp('When the session was used last, to the minute.'),
  expires_at: timestamp('When it ends at the latest.'),
  current: Type.Boolean({ description: 'Whether it is the session of this request.' }),
});
export type Session = Static<typeof Session>;

const example: Session = {
  id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b',
  person: 'dana@example.com',
  created_at: '2026-03-01T09:30:00.000Z',
  last_seen_at: '2026-03-01T10:00:00.000Z',
  expires_at: '2026-03-01T21:30:00.000Z',
  current: true,
};

/** The routes of sessions. */
const sessionRoutes = routeTable('sessions', {
  listSessions: defineRoute({
    method: 'GET',
    path: '/sessions',
    access: 'any',
    summary: 'List sessions',
    description:
      'The sessions of the person who asks; with the scope `manage` those of all people of the tenant. 404 without an identity provider (`SERVICE_OIDC_ISSUER`).',
    responses: {
      200: {
        schema: Type.Object({ sessions: Type.Array(Session) }),
        description: 'The open sessions, newest first, at most 1,000.',
        example: { sessions: [example] },
      },
      ...failing(401, 403, 404, 429),
    },
  }),
  deleteSession: defineRoute({
    method: 'DELETE',
    path: '/sessions/{id}',
    access: 'any',
    summary: 'End a session',
    description: 'The person is signed out there: an own session, or with the scope `manage` any of the tenant.',
    params: IdParams,
    responses: { 204: { description: 'The session has ended.' }, ...failing(401, 403, 404, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const sessionApi = {
  tag: { name: 'sessions', description: 'The sessions of people who signed in.' },
  routes: sessionRoutes,
  schemas: { Session },
};
