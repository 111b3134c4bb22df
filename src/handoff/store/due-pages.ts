import { type Kysely, sql } from 'kysely';

import { countOf } from '../../kit/sql/count.ts';
import type { InLane } from './in-lane.ts';
import { matches, seenOf } from './packet-filter.ts';
import { ofPacket, shortText, wholeText } from './packet-texts.ts';
import { maxPageBytes, pageTooLarge } from './page-size.ts';
import type { PacketPage, PacketTexts } from './pages.ts';
import type { Tables } from './tables.ts';

/** A place in a list by `due_at`. */
interface Place {
  readonly deadline: string | null;
  readonly id: string;
}

/** A place as a cursor has it: the `due_at`, empty without one, and the id. */
export const placeText = ({ deadline, id }: Place): string => `${deadline ?? ''} ${id}`;

function placeOf(text: string): Place {
  const [deadline = '', id = ''] = text.split(' ');
  return { deadline: deadline === '' ? null : deadline, id };
}

/** How many packets are read in one query, whole or as summaries: the largest whole ones still fit into memory together. */
const partOf = { full: 4, summary: 50 };

/** Reads a page of a list by `due_at`: the nearest first, then the packets without one, oldest first. */
export async function readDuePage(tenant: number, page: PacketPage, inLane: InLane): Promise<PacketTexts> {
  const { filter, limit, offset, full } = page;
  const places = await inLane((db) => placesOf(db, tenant, page).execute());
  const listed = places.slice(0, limit);
  const texts: string[] = [];
  let octets = 0;
  const size = full ? partOf.full : partOf.summary;
  for (let from = 0; from < listed.length; from += size) {
    const ids = listed.slice(from, from + size).map(({ id }) => id);
    const textOf = new Map((await inLane((db) => textsOf(db, tenant, { filter, full, ids }).execute())).map(({ id, text }) => [id, text]));
    for (const id of ids) {
      // A packet that was deleted for good meanwhile is left out.
      const text = textOf.get(id);
      const bytes = text === undefined ? 0 : Buffer.byteLength(text) + (texts.length === 0 ? 0 : ','.length);
      if (texts.length > 0 && octets + bytes > maxPageBytes) {
        if (offset > 0) throw pageTooLarge(texts.length);
        return pageOf(listed[texts.length - 1], true);
      }
      if (text !== undefined) texts.push(text);
      octets += bytes;
    }
  }
  return pageOf(listed.at(-1), places.length > limit);

  async function pageOf(last: Place | undefined, more: boolean): Promise<PacketTexts> {
    const total = await inLane((db) => countOf(db.selectFrom('packets').where(matches(tenant, filter))));
    return { text: texts.join(','), octets, last: last === undefined ? undefined : placeText(last), more, total };
  }
}

/** The places of a page and one more. Both halves are read from an index, up to what the page needs. */
function placesOf(db: Kysely<Tables>, tenant: number, { filter, limit, offset, after }: PacketPage) {
  const from = after === undefined ? undefined : placeOf(after);
  const count = offset + limit + 1;
  const listed = () => db.selectFrom('packets').select(['deadline', 'id']).where(matches(tenant, filter));
  const due = listed().where('deadline', 'is not', null).orderBy('deadline').orderBy('id').limit(count);
  const others = listed().where('deadline', 'is', null).orderBy('id').limit(count);
  const halves =
    from === undefined
      ? { due, others }
      : from.deadline === null
        ? { due: due.where(sql<boolean>`1 = 0`), others: others.where('id', '>', from.id) }
        : { due: due.where(sql<boolean>`(deadline, id) > (${from.deadline}, ${from.id})`), others };
  const part = (name: 'due' | 'others', rank: number) =>
    db.selectFrom(halves[name].as(name)).select(['deadline', 'id', sql.lit(rank).as('rank')]);
  return db
    .selectFrom(part('due', 0).unionAll(part('others', 1)).as('places'))
    .select(['deadline', 'id'])
    .orderBy('rank')
    .orderBy('deadline')
    .orderBy('id')
    .limit(limit + 1)
    .offset(offset);
}

function textsOf(
  db: Kysely<Tables>,
  tenant: number,
  { filter, full, ids }: Pick<PacketPage, 'filter' | 'full'> & { ids: readonly string[] },
) {
  const named = db
    .selectFrom('packets')
    // A packet may have become another's meanwhile.
    .where(matches(tenant, seenOf({}, filter.seen_by)))
    .where('packets.id', 'in', [...ids]);
  return full
    ? named.innerJoin('contents', ofPacket).select(['packets.id', wholeText.as('text')])
    : named.select(['packets.id', shortText.as('text')]);
}
