import { eachAtOnce } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import type { ScheduleService } from '../service/schedules.ts';
import type { Store } from '../store/store.ts';

/** The most schedules that one round runs. */
const roundSize = 100;

/** How often to look for schedules whose time has come, in milliseconds. */
const everyMs = 1000;

interface SchedulerDependencies {
  store: Store;
  schedules: Pick<ScheduleService, 'runDue'>;
  clock: Clock;
}

/** Makes the job that runs schedules. A round returns the milliseconds until the next one. */
export function createScheduler({ store, schedules, clock }: SchedulerDependencies): () => Promise<number> {
  return async () => {
    const more = await store.schedules.due(clock(), roundSize, (due) =>
      eachAtOnce(due, ({ tenant, name }) => schedules.runDue(tenant, name)),
    );
    return more ? 0 : everyMs;
  };
}
