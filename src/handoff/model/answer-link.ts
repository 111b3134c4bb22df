import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, Id, IdParams, name, object, orNull, timestamp } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

const statuses = ['open', 'answered', 'closed', 'revoked', 'expired'] as const;
export type AnswerLinkStatus = (typeof statuses)[number];

/** How long an answer link is valid, in seconds: by default, and at most. */
const defaultSeconds = 86_400;
const maxSeconds = 30 * 86_400;

/** An answer link without its URL. */
export const AnswerLink = object({
  id: Id,
  packet_id: Id,
  responder: orNull(Type.String(), 'The person in whose name it answers; null if the person enters a name.'),
  sign_in: Type.Optional(
    Type.Literal(true, { description: 'Its page asks for a sign-in before it shows anything; absent if it does not.' }),
  ),
  status: choice(statuses, {
    description:
      '`open`: it can be used. `answered`: by this link. `closed`: the question was answered in another way. `expired`: also if the question was withdrawn.',
  }),
  created_at: timestamp('When it was made.'),
  expires_at: timestamp('When it expires.'),
});
export const NewAnswerLink = object({
  id: Id,
  url: Type.String({ format: 'uri', description: 'The address of the page. It is never shown again, and anyone who has it can answer.' }),
  responder: AnswerLink.properties.responder,
  sign_in: AnswerLink.properties.sign_in,
  expires_at: AnswerLink.properties.expires_at,
});
export const AnswerLinkRequest = object({
  responder: Type.Optional(name('The person in whose name the link answers. If left out, the person enters a name.')),
  sign_in: Type.Optional(
    Type.Boolean({
      default: false,
      description:
        'Whether the page shows the question only to a person who has signed in: to the `responder`, or to one whom the step of a policy asks; without a `responder` to anybody who may answer. Needs an identity provider.',
    }),
  ),
  expires_in: Type.Optional(
    Type.Integer({ minimum: 1, maximum: maxSeconds, default: defaultSeconds, description: 'How long the link is valid, in seconds.' }),
  ),
});

export type AnswerLink = Static<typeof AnswerLink>;
export type NewAnswerLink = Static<typeof NewAnswerLink>;
export type AnswerLinkRequest = Static<typeof AnswerLinkRequest>;

const id = '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8e';
const expires_at = '2026-03-02T09:30:00.000Z';
const responder = 'dana@example.com';
const linkExample = {
  id,
  packet_id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b',
  responder,
  status: 'open',
  created_at: '2026-03-01T09:30:00.000Z',
  expires_at,
};

/** The routes of answer links. */
const answerLinkRoutes = routeTable('answer links', {
  createAnswerLink: defineRoute({
    method: 'POST',
    path: '/packets/{id}/answer-links',
    access: 'respond',
    summary: "Make an answer link for a packet's question",
    description:
      'The link leads to a page that shows the question and takes the answer, without a key. It ends when the question is answered in any way, when it expires or is revoked, and when the key that made it is revoked.',
    params: IdParams,
    body: AnswerLinkRequest,
    bodyOptional: true,
    bodyExample: { responder, expires_in: 3600 },
    nullIsAbsent: true,
    responses: {
      201: {
        schema: NewAnswerLink,
        description: 'The link. Its URL is never shown again.',
        example: { id, url: 'https://example.com/answer/...', responder, expires_at },
      },
      ...failing(401, 403, 404, 409, 410, 413, 415, 429),
    },
  }),
  listAnswerLinks: defineRoute({
    method: 'GET',
    path: '/packets/{id}/answer-links',
    access: 'read',
    alternative: 'respond',
    summary: "List a packet's answer links",
    description: 'The links, newest first, without their URLs. A link is removed 30 days after it has expired.',
    params: IdParams,
    responses: {
      200: { schema: Type.Array(AnswerLink), description: 'The links, newest first, at most 1,000.', example: [linkExample] },
      ...failing(401, 403, 404, 429),
    },
  }),
  deleteAnswerLink: defineRoute({
    method: 'DELETE',
    path: '/answer-links/{id}',
    access: 'respond',
    summary: 'Revoke an answer link',
    description: 'Its page refuses answers from now on.',
    params: IdParams,
    responses: { 204: { description: 'The link is revoked.' }, ...failing(401, 403, 404, 429) },
  }),
});

/** The seconds that a link is valid. */
export const validSeconds = ({ expires_in = defaultSeconds }: AnswerLinkRequest): number => expires_in;

const html = (description: string) => ({ schema: Type.String(), contentType: 'text/html; charset=utf-8', description });
const page = {
  path: '/answer/{token}',
  access: 'link',
  forPeople: true,
  params: Type.Object({ token: Type.String() }),
} as const;

/** The page of an answer link. It is not part of the API and its description. */
export const answerPageRoutes = routeTable('pages', {
  showAnswerPage: defineRoute({
    ...page,
    method: 'GET',
    summary: 'Show the page of an answer link',
    query: Type.Object({ whole: Type.Optional(Type.String({ description: 'Shows long texts whole.' })) }),
    responses: {
      200: html('The question, or the way to sign in.'),
      403: html('A link for somebody else.'),
      404: html('An unknown link.'),
      410: html('A link that has ended.'),
    },
  }),
  sendAnswer: defineRoute({
    ...page,
    method: 'POST',
    summary: 'Send the form of an answer link',
    body: Type.String({ description: 'The fields of the form, URL-encoded.' }),
    textTypes: ['application/x-www-form-urlencoded'],
    responses: {
      200: html('The answer is recorded.'),
      400: html('The form again, with what is wrong.'),
      403: html('The form was sent by another page, the link was made by the key that asked, or it is for somebody else.'),
      404: html('An unknown link.'),
      409: html('The question again, since it has changed.'),
      410: html('A link that has ended.'),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const answerLinkApi = {
  tag: { name: 'answer links', description: 'Pages on which people answer a question without a key.' },
  routes: answerLinkRoutes,
  schemas: { AnswerLink, NewAnswerLink, AnswerLinkRequest },
};
