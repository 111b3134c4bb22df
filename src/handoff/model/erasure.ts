import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, Id, IdParams, name, object, orNull, paging, timestamp } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { maxSubjectLength } from './packet.ts';
import { defineRoute } from './route.ts';

/** The most packets that a request names. */
const maxPackets = 1000;

/** A request to erase packets. */
export const ErasureRequest = object({
  subject: Type.Optional(
    name('The id of a person: all packets whose `metadata.subjects` name it are erased.', { maxLength: maxSubjectLength }),
  ),
  packet_ids: Type.Optional(
    Type.Array(Type.String(), { minItems: 1, maxItems: maxPackets, description: 'The packets to erase, instead of `subject`.' }),
  ),
  reason: name('Why, for the audit log. Do not name the person.'),
});
export type ErasureRequest = Static<typeof ErasureRequest>;

/** An erasure. When it is done, it is the receipt. */
export const Erasure = Type.Object({
  id: Id,
  status: choice(['queued', 'running', 'done'], { description: '`done`: everything is erased, and the rest of the receipt is there.' }),
  packets: Type.Integer({ description: 'How many packets it erases.' }),
  not_found: Type.Array(Type.String(), { description: 'The ids in `packet_ids` that no packet of the tenant has.' }),
  subject_digest: orNull(Type.String(), 'SHA-256 of the id of the person, in hexadecimal. The id itself is not kept.'),
  reason: Type.String(),
  requested_by: Type.String({ description: 'Who asked for it.', example: 'key:0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8d' }),
  created_at: timestamp('When it was asked for.'),
  done_at: orNull(timestamp('When it was done.')),
  stores: Type.Optional(
    Type.Record(
      Type.String(),
      Type.Object({
        count: Type.Integer({ description: 'How many rows were erased or emptied.' }),
        done_at: timestamp('When the last of them was.'),
      }),
      { description: 'What was erased, by table.' },
    ),
  ),
  delivered: Type.Optional(
    Type.Array(
      Type.Object({
        kind: Type.String({ description: '`webhook`, `push`, `email` or `slack`.' }),
        id: Type.String({ description: 'The id of the webhook, push notification configuration or channel.' }),
        target: Type.String({ description: 'Its address, without what may be a secret.' }),
        count: Type.Integer({ description: 'How many deliveries had gone out, or may have.' }),
      }),
      { description: 'Who had been sent content before, as far as deliveries are kept: they must be asked to erase it too.' },
    ),
  ),
  backups_before: Type.Optional(timestamp('Backups that are older than this may still hold the content.')),
});
export type Erasure = Static<typeof Erasure>;

const queued: Erasure = {
  id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a90',
  status: 'queued',
  packets: 2,
  not_found: [],
  subject_digest: '2bd1a3b2cc3b7d4b1ea0c2a1a4a5ef7b7d3a07f3d3f4f7d2bb6a3f0a5c0de471',
  reason: 'Request of 1 March',
  requested_by: 'key:0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8d',
  created_at: '2026-03-01T09:30:00.000Z',
  done_at: null,
};
const done: Erasure = {
  ...queued,
  status: 'done',
  done_at: '2026-03-01T09:30:01.000Z',
  stores: { packets: { count: 2, done_at: '2026-03-01T09:30:01.000Z' }, events: { count: 9, done_at: '2026-03-01T09:30:01.000Z' } },
  delivered: [{ kind: 'webhook', id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a91', target: 'https://example.com/hook', count: 4 }],
  backups_before: '2026-03-01T09:30:01.000Z',
};

/** The routes of erasures. */
const erasureRoutes = routeTable('erasures', {
  createErasure: defineRoute({
    method: 'POST',
    path: '/erasures',
    access: 'erase',
    summary: 'Erase packets',
    description:
      'Erases the content of all packets that hold data of a person, or of those named: conversations, questions, answers, details of their entries in the audit log, deliveries, index entries. The packets stay, with their ids, statuses and times. The work goes on in the background, also after a restart; `GET /erasures/{id}` has its receipt. 409 while a schedule makes packets about the person.',
    body: ErasureRequest,
    bodyExample: { subject: 'customer:4711', reason: 'Request of 1 March' },
    nullIsAbsent: true,
    responses: {
      202: { schema: Erasure, description: 'The erasure, which goes on in the background.', example: queued },
      ...failing(400, 401, 403, 409, 413, 415, 429),
    },
  }),
  listErasures: defineRoute({
    method: 'GET',
    path: '/erasures',
    access: 'erase',
    summary: 'List erasures',
    description: 'Newest first.',
    query: object({
      ...paging(),
      cursor: Type.Optional(
        Type.String({ maxLength: 1024, description: 'The `next_cursor` of the previous page; must not be combined with `offset`.' }),
      ),
    }),
    responses: {
      200: {
        schema: Type.Object({
          erasures: Type.Array(Erasure),
          total: Type.Integer(),
          limit: Type.Integer(),
          offset: Type.Integer(),
          next_cursor: orNull(Type.String()),
        }),
        description: 'A page of erasures.',
        example: { erasures: [done], total: 1, limit: 50, offset: 0, next_cursor: null },
      },
      ...failing(400, 401, 403, 429),
    },
  }),
  getErasure: defineRoute({
    method: 'GET',
    path: '/erasures/{id}',
    access: 'erase',
    summary: 'Get an erasure',
    description: 'Once it is done, the answer is the receipt. The audit log has the SHA-256 of its canonical JSON (RFC 8785).',
    params: IdParams,
    responses: { 200: { schema: Erasure, description: 'The erasure.', example: done }, ...failing(401, 403, 404, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const erasureApi = {
  tag: { name: 'erasures', description: 'Erasing what packets say, with receipts.' },
  routes: erasureRoutes,
  schemas: { Erasure, ErasureRequest },
};
