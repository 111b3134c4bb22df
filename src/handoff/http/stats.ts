import { routes } from '../model/api.ts';
import { momentOf } from '../service/filters.ts';
import type { StatsService } from '../service/stats.ts';
import type { HandoffMount } from './mount.ts';

/** Mounts the route of statistics. */
export function mountStats(mount: HandoffMount, stats: StatsService): void {
  mount(routes.getStats, ({ query }, { caller, signal }) => stats.read(caller, momentOf(query.since), signal));
}
