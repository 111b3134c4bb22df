import { traceHeadersOf } from '../../kit/trace-context.ts';
import { defaultTimes } from '../model/schedule.ts';
import type { ScheduleService } from '../service/schedules.ts';
import { documentAnswer, preconditionsIn } from './documents.ts';
import { handlersOf } from './handlers.ts';
import { agentId, idempotencyOf } from './headers.ts';
import { createAnswer } from './packets.ts';

/** The handlers of the routes of schedules. */
export const scheduleHandlers = (schedules: ScheduleService) =>
  handlersOf({
    putSchedule: async ({ params, body }, { caller, headers }) => {
      const { schedule, isNew } = await schedules.put(caller, params.name, body, preconditionsIn(headers));
      return documentAnswer(schedule, isNew);
    },
    getSchedule: async ({ params }, { caller }) => documentAnswer(await schedules.get(caller, params.name)),
    deleteSchedule: ({ params }, { caller, headers }) => schedules.remove(caller, params.name, preconditionsIn(headers)),
    listSchedules: ({ query: { limit, offset } }, { caller, signal }) => schedules.list(caller, { limit, offset }, signal),
    nextTimes: async ({ params, query: { count = defaultTimes } }, { caller }) => ({
      times: await schedules.next(caller, params.name, count),
    }),
    runSchedule: ({ params }, context) => {
      const { caller, headers } = context;
      const idempotency = idempotencyOf(context, `POST /schedules/${params.name}/run`);
      return createAnswer(schedules.run(caller, params.name, { agentId: agentId(headers), idempotency, trace: traceHeadersOf(headers) }));
    },
  });
