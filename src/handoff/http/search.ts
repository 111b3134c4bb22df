import { readCursor, writeCursor } from '../../kit/cursor.ts';
import { invalid } from '../../kit/errors.ts';
import { JsonText, type Mount } from '../../kit/http/mount.ts';
import { isId } from '../../kit/id.ts';
import { maxOffset } from '../../kit/schemas.ts';
import { routes } from '../model/api.ts';
import { phrasesOf } from '../rules/words.ts';
import type { Caller } from '../service/access.ts';
import type { SearchPage, SearchPlace } from '../store/search.ts';
import type { Store } from '../store/store.ts';
import { filterOf, requireOneWay } from './query.ts';

/** A text without a word in it (only punctuation, say) is in no packet. */
const nothing: SearchPage = { rows: [], order: 'rank', total: 0, total_is: 'exact', next: undefined };

/** The search over HTTP. */
export function mountSearch(mount: Mount<Caller>, store: Store): void {
  mount(routes.searchPackets, async ({ query }, { caller, signal }) => {
    const { q, limit, offset, cursor } = query;
    if (q.trim() === '') throw invalid('q', 'q must not be empty.');
    requireOneWay(query);
    const phrases = phrasesOf(q);
    const filter = filterOf(query);
    const scope = `search ${caller.tenant_id} ${JSON.stringify([phrases, filter])}`;
    const from = cursor === undefined ? undefined : placeOf(readCursor(scope, cursor));
    const page =
      phrases.length === 0
        ? nothing
        : await store.of(caller.tenant_number, signal).packets.search({ phrases, filter, limit, offset, from });
    const { rows, next, ...counts } = page;
    const packets = rows.map(({ summary, snippet }) => `${summary.slice(0, -1)},"snippet":${JSON.stringify(snippet)}}`);
    const next_cursor = next === undefined ? null : writeCursor(scope, JSON.stringify(next));
    const rest = { ...counts, limit, offset: from?.shown ?? offset, next_cursor };
    return new JsonText(`{"packets":[${packets.join(',')}],${JSON.stringify(rest).slice(1)}`);
  });
}

/** The place that a search's cursor holds. A cursor can be made up, so nothing of it is taken unseen. */
function placeOf(position: string): SearchPlace {
  const { order, shown, skip, after } = membersOf(position);
  const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= maxOffset + maxShown;
  if (order === 'rank' && isCount(shown)) return { order, shown: Number(shown) };
  const isPlace = typeof after === 'string' && (/^\d{0,15}$/.test(after) || isId(after));
  if (order !== 'newest' || !isCount(shown) || !isCount(skip) || !isPlace)
    throw invalid('cursor', 'This cursor does not belong to this list.');
  return { order, shown: Number(shown), skip: Number(skip), after };
}

/** The members of an object as JSON text; none when it is something else. */
function membersOf(text: string): Partial<Record<string, unknown>> {
  try {
    return Object(JSON.parse(text)) as Partial<Record<string, unknown>>;
  } catch {
    return {};
  }
}

/** More packets than a search by cursor ever shows behind an offset. */
const maxShown = 1_000_000_000;
