import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { givenTimestamp, object, orNull, timestamp } from '../../kit/schemas.ts';
import { failing } from './common.ts';
import { defineRoute } from './route.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });

/** Deliveries are counted up to this number. */
export const maxCounted = 10_000;

/** An hour of a tenant's work. Levels are those at its end; of the current hour, those of now. */
export const StatsHour = Type.Object({
  hour: timestamp('Its start.'),
  created: count('Packets created.'),
  completed: count('Packets completed.'),
  failed: count('Packets that failed.'),
  expired: count('Packets that expired or were deleted before they were finished.'),
  answered: count('Questions answered.'),
  waiting: count('Packets in `created`.'),
  held: count('Packets in `claimed` or `in_progress`.'),
  asked: count('Packets in `awaiting_human`.'),
});
export type StatsHour = Static<typeof StatsHour>;

/** The numbers of a tenant's packets, questions and deliveries that are open, and of those that ended. */
export const Stats = Type.Object({
  since: timestamp('The start of the hour that contains the requested `since`.'),
  until: timestamp('Now.'),
  questions: Type.Object({
    open: count('Open questions.'),
    oldest_asked_at: orNull(
      timestamp('When the oldest open question was asked.'),
      'When the oldest open question was asked; null without one.',
    ),
    answered: count('Questions answered since `since`.'),
    median_answer_seconds: orNull(
      Type.Integer({ minimum: 1 }),
      'The median time from a question to its answer, of those answered since `since`, within ten percent; null without one.',
    ),
  }),
  work: Type.Object({
    waiting: count('Packets in `created`, which nobody holds.'),
    held: count('Packets in `claimed` or `in_progress`.'),
    oldest_waiting_at: orNull(
      timestamp('Since when the oldest packet in `created` waits: its creation, or its `not_before` if that is later.'),
      'Since when the oldest packet in `created` waits: its creation, or its `not_before` if that is later; null without one.',
    ),
    created: count('Packets created since `since`.'),
    completed: count('Packets completed since `since`.'),
    failed: count('Packets that failed since `since`.'),
    expired: count('Packets that expired, or were deleted before they were finished, since `since`.'),
  }),
  deliveries: Type.Object({
    waiting: count(`Deliveries to webhooks and channels that are to be attempted, counted up to ${maxCounted}.`),
    failing: count('Webhooks and channels whose last attempt failed.'),
    dead_letters: count(`Deliveries that failed for good and were neither replayed nor removed, counted up to ${maxCounted}.`),
  }),
  hours: Type.Array(StatsHour, { description: 'Each hour since `since`, oldest first.' }),
});
export type Stats = Static<typeof Stats>;

/** How many days ago `since` may be. */
export const statsDays = 31;

/** The routes of statistics. */
const statsRoutes = routeTable('stats', {
  getStats: defineRoute({
    method: 'GET',
    path: '/stats',
    access: 'read',
    summary: 'Read statistics',
    description:
      'How many packets, questions and deliveries wait or are held, and how many ended, by hour. Each change of a packet updates the counts of its hour, so the cost of this request does not grow with the number of packets. A key that sees its own gets the counts of the packets that it sees now, made from their events; it is told of no deliveries.',
    query: object({
      since: Type.Optional(givenTimestamp(`Where to begin: by default a day ago, at most ${statsDays} days ago.`)),
    }),
    responses: {
      200: {
        schema: Stats,
        description: 'The statistics.',
        example: {
          since: '2026-03-01T09:00:00.000Z',
          until: '2026-03-01T09:30:00.000Z',
          questions: { open: 1, oldest_asked_at: '2026-03-01T09:21:00.000Z', answered: 4, median_answer_seconds: 181 },
          work: {
            waiting: 5,
            held: 2,
            oldest_waiting_at: '2026-03-01T09:02:00.000Z',
            created: 12,
            completed: 7,
            failed: 1,
            expired: 0,
          },
          deliveries: { waiting: 0, failing: 0, dead_letters: 0 },
          hours: [
            {
              hour: '2026-03-01T09:00:00.000Z',
              created: 12,
              completed: 7,
              failed: 1,
              expired: 0,
              answered: 4,
              waiting: 5,
              held: 2,
              asked: 1,
            },
          ],
        },
      },
      ...failing(401, 403, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const statsApi = {
  tag: { name: 'stats', description: 'Counts of packets, questions and deliveries.' },
  routes: statsRoutes,
  schemas: { Stats, StatsHour },
};
