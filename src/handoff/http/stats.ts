import { momentOf } from '../../kit/dates.ts';
import type { StatsService } from '../service/stats.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the route of statistics. */
export const statsHandlers = (stats: StatsService) =>
  handlersOf({
    getStats: ({ query }, { caller, signal }) => stats.read(caller, momentOf(query.since), signal),
  });
