import Type from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { defineRoute } from './route.ts';

const html = (description: string) => ({ schema: Type.String(), contentType: 'text/html; charset=utf-8', description });
const query = Type.Object({}, { additionalProperties: true });

/** The pages of sign-in. They are not part of the API and its description, and exist only with an identity provider. */
export const signInRoutes = routeTable('pages', {
  signIn: defineRoute({
    method: 'GET',
    path: '/sign-in',
    access: 'sign-in',
    summary: 'Go to the identity provider',
    query: Type.Object(
      { return_to: Type.Optional(Type.String()), prompt: Type.Optional(Type.Literal('login')) },
      { additionalProperties: false },
    ),
    responses: { 200: html('Not used.'), 302: { description: 'To the provider.' }, 503: html('The provider does not answer.') },
  }),
  signInCallback: defineRoute({
    method: 'GET',
    path: '/sign-in/callback',
    access: 'sign-in',
    summary: 'Come back from the identity provider',
    query,
    responses: { 200: html('Not used.'), 302: { description: 'To where the sign-in began.' }, 400: html('No sign-in.') },
  }),
  signOut: defineRoute({
    method: 'POST',
    path: '/sign-out',
    access: 'sign-in',
    summary: 'Sign out',
    body: Type.String(),
    bodyOptional: true,
    textTypes: ['application/x-www-form-urlencoded'],
    responses: {
      200: { schema: Type.Object({ url: Type.String() }), description: 'Where the browser goes next.' },
      303: { description: 'The same, for a form.' },
    },
  }),
  signedOut: defineRoute({
    method: 'GET',
    path: '/signed-out',
    access: 'sign-in',
    summary: 'Show that the person is signed out',
    query,
    responses: { 200: html('The page.') },
  }),
  backChannelLogout: defineRoute({
    method: 'POST',
    path: '/sign-in/back-channel-logout',
    access: 'sign-in',
    summary: 'End the sessions that a logout token names',
    body: Type.String(),
    textTypes: ['application/x-www-form-urlencoded'],
    responses: { 200: { description: 'They have ended.' }, 400: { description: 'It is no logout token.' } },
  }),
});

const metadata = {
  200: { schema: Type.Record(Type.String(), Type.Unknown()), description: 'The metadata (RFC 9728).' },
} as const;

/** The metadata of the protected resources, for clients that get tokens. They exist only with an identity provider. */
export const resourceRoutes = routeTable('pages', {
  protectedResource: defineRoute({
    method: 'GET',
    path: '/.well-known/oauth-protected-resource',
    access: 'public',
    summary: 'Get the metadata of the API as a protected resource',
    responses: metadata,
  }),
  protectedMcp: defineRoute({
    method: 'GET',
    path: '/.well-known/oauth-protected-resource/mcp',
    access: 'public',
    summary: 'Get the metadata of /mcp as a protected resource',
    responses: metadata,
  }),
});
