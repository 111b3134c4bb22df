import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { choice, Id, IfMatch, name, object, orNull, paging, timestamp } from '../../kit/schemas.ts';
import { AgentId, ETag, failing, IdempotencyKey, indexedName, Replayed } from './common.ts';
import { violated } from './contract.ts';
import { packetExample } from './examples.ts';
import { CreateRequest } from './packet.ts';
import { packet as packetResponse } from './packet-routes.ts';
import { defineRoute } from './route.ts';

/** What happens to times at which the service was down. */
const missedChoices = ['skip', 'latest', 'all'] as const;

/** The most times in one answer, and how many it has if the request does not say. */
const maxTimes = 100;
export const defaultTimes = 5;

const cron = name('Five fields (minute, hour, day of the month, month, day of the week), or `@weekly` and the like.', {
  maxLength: 200,
  example: '0 9 * * 1',
});
const timezone = name('The IANA name of the time zone in which `cron` is read.', { maxLength: 100, example: 'Europe/Berlin' });
const active = Type.Boolean({ description: 'Whether it runs. Default: true.' });
const missed = choice(missedChoices, {
  description:
    'What happens to times that are more than 60 seconds past, since the service was down: `skip` makes no packets for them, `latest`, the default, makes one for the latest, `all` one for each of the latest 100.',
});

/** Why a time made no packet. */
const LastError = Type.Object(
  {
    at: timestamp('The time that made no packet.'),
    code: Type.String({ description: 'The code of the refusal, as for a create.' }),
    detail: Type.String({ description: 'The refusal.' }),
  },
  { description: 'Why its last time made no packet.' },
);

/** What makes a packet again and again. */
export const Schedule = object({
  name: Type.String({ description: 'Its name.' }),
  version: Type.Integer({ minimum: 1, description: 'The number of the version. Each change increments it, also after a removal.' }),
  cron,
  timezone,
  active,
  missed,
  packet: CreateRequest,
  next_at: orNull(timestamp('When it runs next.'), 'When it runs next; null while it is switched off.'),
  last_at: orNull(timestamp('Its last time that made a packet.')),
  last_packet_id: orNull(Id, 'The packet that its last time made.'),
  last_error: orNull(LastError, 'Why its last time made no packet; null if that made one.'),
  disabled_reason: orNull(Type.String(), 'Why the service has switched it off; the next change switches it on again.'),
  created_at: timestamp('When it was first written, or written again after a removal.'),
  updated_at: timestamp('When its version was written.'),
});
export const ScheduleRequest = object({
  cron,
  timezone,
  packet: CreateRequest,
  active: Type.Optional(active),
  missed: Type.Optional(missed),
});

export type Schedule = Static<typeof Schedule>;
export type ScheduleRequest = Static<typeof ScheduleRequest>;
export type ScheduleError = Static<typeof LastError>;

const packet = {
  metadata: {
    source_agent: { id: 'office', name: 'Office', framework: '' },
    target_agent: { id: 'reporter', name: 'Reporter' },
  },
  context: { summary: 'Write the report of last week.' },
};
const scheduleExample = {
  name: 'weekly-report',
  version: 1,
  ...{ cron: '0 9 * * 1', timezone: 'Europe/Berlin', active: true, missed: 'latest', packet },
  ...{ next_at: '2026-03-09T08:00:00.000Z', last_at: '2026-03-02T08:00:00.000Z' },
  ...{ last_packet_id: packetExample.id, last_error: null, disabled_reason: null },
  ...{ created_at: '2026-03-01T09:30:00.000Z', updated_at: '2026-03-01T09:30:00.000Z' },
};
const schedule = (description: string) => ({ schema: Schedule, description, example: scheduleExample, headers: ETag });
const params = Type.Object({ name: indexedName('The name of the schedule.') });

const scheduleRoutes = routeTable('schedules', {
  putSchedule: defineRoute({
    method: 'PUT',
    path: '/schedules/{name}',
    access: 'work',
    summary: 'Write a schedule',
    description:
      'At each time that `cron` names in the time zone, the service creates `packet` in the name of the key or person that wrote the schedule, with `metadata.schedule`. A time that the clock leaves out runs when it goes on, one that it shows twice runs the first time; with `*` or `*/n` as hour, times follow one another in real time. Needs an API key, or a person who signed in.',
    params,
    body: ScheduleRequest,
    bodyExample: { cron: '0 9 * * 1', timezone: 'Europe/Berlin', packet },
    nullIsAbsent: true,
    headers: { ...IfMatch, 'If-None-Match': '`*`: only if there is no such schedule yet. Optional.' },
    responses: {
      200: schedule('The schedule, in its next version unless nothing changed.'),
      201: schedule('The schedule, which did not exist before.'),
      ...failing(400, 401, 403, 409, 412, 413, 415, 429),
    },
  }),
  getSchedule: defineRoute({
    method: 'GET',
    path: '/schedules/{name}',
    access: 'read',
    alternative: 'work',
    summary: 'Get a schedule',
    params,
    responses: { 200: schedule('The schedule.'), ...failing(401, 403, 404, 429) },
  }),
  deleteSchedule: defineRoute({
    method: 'DELETE',
    path: '/schedules/{name}',
    access: 'work',
    summary: 'Remove a schedule',
    description: 'Packets that it has made stay.',
    params,
    headers: IfMatch,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 412, 429) },
  }),
  listSchedules: defineRoute({
    method: 'GET',
    path: '/schedules',
    access: 'read',
    alternative: 'work',
    summary: 'List schedules',
    description: 'The schedules, by name.',
    query: object(paging()),
    responses: {
      200: {
        schema: Type.Object({
          schedules: Type.Array(Schedule),
          total: Type.Integer(),
          limit: Type.Integer(),
          offset: Type.Integer(),
        }),
        description: 'A page of schedules.',
        example: { schedules: [scheduleExample], total: 1, limit: 50, offset: 0 },
      },
      ...failing(401, 403, 429),
    },
  }),
  runSchedule: defineRoute({
    method: 'POST',
    path: '/schedules/{name}/run',
    access: 'work',
    summary: 'Run a schedule now',
    description: 'Creates the packet of the schedule in the name of the caller. Its times stay as they are.',
    params,
    headers: { ...IdempotencyKey, ...AgentId },
    responses: {
      201: packetResponse('The packet.', packetExample, Replayed),
      ...failing(401, 403, 404, 409, 429),
      400: violated,
    },
  }),
  nextTimes: defineRoute({
    method: 'GET',
    path: '/schedules/{name}/next',
    access: 'read',
    alternative: 'work',
    summary: 'List the next times of a schedule',
    description: 'Its times from now on, also while it is switched off.',
    params,
    query: object({
      count: Type.Optional(
        Type.Integer({ minimum: 1, maximum: maxTimes, description: `How many times to return; ${defaultTimes} if left out.` }),
      ),
    }),
    responses: {
      200: {
        schema: Type.Object({ times: Type.Array(timestamp('A time.')) }),
        description: 'The times.',
        example: { times: ['2026-03-09T08:00:00.000Z', '2026-03-16T08:00:00.000Z'] },
      },
      ...failing(401, 403, 404, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const scheduleApi = {
  tag: { name: 'schedules', description: 'Packets that are made again and again.' },
  routes: scheduleRoutes,
  schemas: { Schedule, ScheduleRequest },
};
