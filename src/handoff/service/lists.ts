import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import { isDateTime } from '../../kit/dates.ts';
import { invalid } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import { maxOffset } from '../../kit/schemas.ts';
import { isId } from '../../kit/uuid.ts';
import type { PacketQuery, SearchQuery } from '../model/packet-routes.ts';
import { askedStatus } from '../rules/packet-life.ts';
import { sightKey } from '../rules/sight.ts';
import { phrasesOf } from '../rules/tokenizer.ts';
import type { PacketFilter } from '../store/packet-filter.ts';
import type { PacketTexts } from '../store/pages.ts';
import type { EncodedPage, SearchStart } from '../store/search/search.ts';
import type { Store } from '../store/store.ts';
import type { Caller } from './authentication.ts';
import { readCursor, writeCursor } from './cursor.ts';
import { filterOf, requireOneWay } from './filters.ts';

/** A page as JSON. */
export interface PageText {
  readonly text: string | Buffer;
  /** Its length in UTF-8, if known. */
  readonly octets: number | undefined;
}

type Paging = Pick<PacketQuery, 'limit' | 'offset' | 'cursor' | 'view'> & { order?: PacketQuery['order'] };

/** The result for a query without any word, such as punctuation only. */
const nothing: EncodedPage = { packets: new Uint8Array(), order: 'rank', total: 0, total_is: 'exact', next: undefined };

/** Lists and searches a tenant's packets. A `signal` cancels the read when the client has disconnected. */
export function createListService(store: Store) {
  function list(caller: Caller, paging: Paging, filter: PacketFilter, signal: AbortSignal, more: object = {}): Awaitable<PageText> {
    const { limit, offset, cursor, view, order } = paging;
    requireOneWay(paging);
    const ascending = order === 'asc';
    const byDue = order === 'due';
    const scope = `${caller.tenant_id} ${sightKey(caller)}${ascending || byDue ? `${order} ` : ''}${JSON.stringify(filter)}`;
    const after = cursor === undefined ? undefined : readCursor(scope, cursor);
    if (after !== undefined && !(byDue ? isDuePlace(after) : isId(after)))
      throw invalid('cursor', 'This cursor does not belong to this list.');
    const pageOf = ({ text, octets, last, more: hasMore, total }: PacketTexts) =>
      joined(text, octets, { total, limit, offset, next_cursor: hasMore && last !== undefined ? writeCursor(scope, last) : null, ...more });
    // Clients that poll the same list at the same time share one read.
    return store.shareInTurn(JSON.stringify(['packets', scope, limit, offset, view, after, more]), () => {
      const page = { filter, limit, offset, full: view === 'full', after, ascending, byDue };
      return andThen(store.of(caller, signal).packets.page(page), pageOf);
    });
  }

  return {
    /** A page of packets, newest first by default. Callers that share a read get the same object. */
    packets: (caller: Caller, query: PacketQuery, signal: AbortSignal) => list(caller, query, filterOf(query), signal),

    /** A page of the packets that await a person; it says if no channel notifies anybody of them. */
    awaiting(caller: Caller, paging: Paging, signal: AbortSignal): Awaitable<PageText> {
      return andThen(store.of(caller).webhooks.notifiesPerson(), (notifiesPerson) =>
        list(caller, paging, { statuses: [askedStatus] }, signal, notifiesPerson ? {} : { unnotified: true }),
      );
    },

    /** A page of the packets that match a query. */
    async search(caller: Caller, query: SearchQuery, signal: AbortSignal): Promise<PageText> {
      const { q, limit, offset, cursor } = query;
      if (q.trim() === '') throw invalid('q', 'q must not be empty.');
      requireOneWay(query);
      const phrases = phrasesOf(q);
      const filter = filterOf(query);
      const scope = `search ${caller.tenant_id} ${sightKey(caller)}${JSON.stringify([phrases, filter])}`;
      const from = cursor === undefined ? undefined : startOf(readCursor(scope, cursor));
      const page = phrases.length === 0 ? nothing : await store.of(caller, signal).packets.search({ phrases, filter, limit, offset, from });
      const { packets, next, ...counts } = page;
      const next_cursor = next === undefined ? null : writeCursor(scope, JSON.stringify(next));
      return joined(packets, undefined, { ...counts, limit, offset: from?.shown ?? offset, next_cursor });
    },
  };
}

export type ListService = ReturnType<typeof createListService>;

/** Whether a text is a place in a list by `due_at`, as `placeText` writes it. A caller can forge a cursor. */
function isDuePlace(text: string): boolean {
  const [deadline = '', id = '', ...rest] = text.split(' ');
  return rest.length === 0 && isId(id) && (deadline === '' || isDateTime(deadline));
}

/** Makes a page from packets that are JSON already, joined by commas. */
function joined(packets: string | Uint8Array, octets: number | undefined, rest: object): PageText {
  const [begin, end] = ['{"packets":[', `],${JSON.stringify(rest).slice(1)}`];
  if (typeof packets !== 'string') return { text: Buffer.concat([Buffer.from(begin), packets, Buffer.from(end)]), octets: undefined };
  return { text: begin + packets + end, octets: octets && begin.length + octets + end.length };
}

/** Parses the position of a search cursor. A caller can forge a cursor, so every field is validated. */
function startOf(position: string): SearchStart {
  const { order, shown, skip, after } = membersOf(position);
  const isCount = (value: unknown) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= maxOffset + maxShown;
  if (order === 'rank' && isCount(shown)) return { order, shown: Number(shown) };
  const isSortKey = typeof after === 'string' && (/^\d{0,15}$/.test(after) || isId(after));
  if (order !== 'newest' || !isCount(shown) || !isCount(skip) || !isSortKey)
    throw invalid('cursor', 'This cursor does not belong to this list.');
  return { order, shown: Number(shown), skip: Number(skip), after };
}

/** Parses a JSON object; returns an empty object for anything else. */
function membersOf(text: string): Partial<Record<string, unknown>> {
  try {
    return Object(readJson(text)) as Partial<Record<string, unknown>>;
  } catch {
    return {};
  }
}

/** An upper bound on the packets that a search by cursor shows after its offset. */
const maxShown = 1_000_000_000;
