import type { Kysely } from 'kysely';

import { readJson } from '../../kit/json.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import { noDigest } from '../rules/chain.ts';
import { ChainCheck, ChainFault, type KnownHead } from '../rules/chain-check.ts';
import type { Tables } from './tables.ts';
import { chainColumns } from './trail.ts';

/** What a check of trails found. */
export interface VerifiedTrails {
  readonly tenants: number;
  readonly entries: number;
}

/** A head that was kept elsewhere, and the tenant that it names. */
export interface KnownTenantHead extends KnownHead {
  readonly tenant_id?: string;
}

/** How many entries are read at once. */
const perRead = 1000;

/**
 * Checks the chains of digests of all tenants, or of one, in constant memory, also while services append to them.
 * @throws ChainFault with the tenant and the first entry that does not hold
 */
export async function verifyTrails(
  { reads: db }: Pick<Database<Tables>, 'reads'>,
  { tenant, known }: { tenant?: string | undefined; known?: KnownTenantHead | undefined } = {},
): Promise<VerifiedTrails> {
  const only = known?.tenant_id ?? tenant;
  const all = db.selectFrom('tenants').select(['id', 'number']).orderBy('number');
  const tenants = await (only === undefined ? all : all.where('id', '=', only)).execute();
  if (only !== undefined && tenants.length === 0) throw new ChainFault(`There is no tenant ${only}.`);
  if (known !== undefined && tenants.length > 1) throw new ChainFault('There are several tenants: name that of the head.');
  let entries = 0;
  for (const { id, number } of tenants) {
    try {
      entries += await verifyTrail(db, { id, number }, known);
    } catch (error) {
      if (error instanceof ChainFault) throw new ChainFault(`Tenant ${id}: ${error.message}`);
      throw error;
    }
  }
  return { tenants: tenants.length, entries };
}

async function verifyTrail(
  db: Kysely<Tables>,
  { id, number }: { id: string; number: number },
  known: KnownHead | undefined,
): Promise<number> {
  const { position: to, digest, at } = await headOf(db, number);
  const check = new ChainCheck({ known });
  check.take({ header: { version: 1, tenant_id: id, from: 1, to, previous: noDigest } });
  let [last, previous, isEnd] = [0, noDigest, to === 0];
  while (!isEnd) {
    const trail = db.selectFrom('events').select(chainColumns).where('tenant', '=', number).where('position', '>', last);
    // What is appended meanwhile comes after the head that was read.
    const rows = await trail.where('position', '<=', to).orderBy('position').limit(perRead).execute();
    for (const row of rows) {
      const { id: event_id, event_type: type, person, details, ...entry } = row;
      check.takeStored({ ...entry, event_id, type, previous, person: person === null ? null : readJson(person) }, details);
      previous = row.digest;
    }
    last = rows.at(-1)?.position ?? last;
    isEnd = rows.length < perRead;
  }
  check.take({ head: { tenant_id: id, position: to, digest, at } });
  const trail = db.selectFrom('events').select('position').where('tenant', '=', number);
  const end = await trail.orderBy('position', 'desc').limit(1).executeTakeFirst();
  // Entries and their head are committed together, so the head is never behind.
  if (end !== undefined && end.position > (await headOf(db, number)).position)
    throw new ChainFault(`There is an entry at position ${end.position}, after the head.`);
  return check.summary().entries;
}

async function headOf(db: Kysely<Tables>, tenant: number) {
  const heads = db.selectFrom('heads').select(['position', 'digest', 'at']).where('tenant', '=', tenant);
  return (await heads.executeTakeFirst()) ?? { position: 0, digest: noDigest, at: null };
}
