import { type ExpressionBuilder, type SqlBool, sql } from 'kysely';

import type { ReadDependencies } from './noun.ts';
import type { Tables } from './tables.ts';

/** A filter for a tenant's audit log. */
export interface AuditFilter {
  readonly actor?: string;
  readonly action?: string;
  readonly packet_id?: string;
  readonly key_id?: string;
  /** The name, or the provider's id, of a person who signed in. */
  readonly person?: string;
  /** The digest of the id of a person whose data the packet holds. */
  readonly subject_digest?: string;
  readonly created_after?: Date;
  readonly created_before?: Date;
}

/** The condition of a filter, beginning with the tenant. */
export function matches(
  { name }: Pick<ReadDependencies['database'], 'name'>,
  tenant: number,
  { actor, action, packet_id, key_id, person, subject_digest, created_after, created_before }: AuditFilter,
) {
  // Of an actor and an action, SQLite would take the index of the action, which has far more entries and not the other column.
  const ofAction = name === 'sqlite' && actor !== undefined ? sql<string>`+event_type` : 'event_type';
  return (eb: ExpressionBuilder<Tables, 'events'>) => {
    const conditions = [eb('tenant', '=', tenant)];
    if (actor !== undefined) conditions.push(eb('actor', '=', actor));
    if (action !== undefined) conditions.push(eb(ofAction, '=', action));
    if (packet_id !== undefined) conditions.push(eb('packet_id', '=', packet_id));
    if (key_id !== undefined) conditions.push(eb('key_id', '=', key_id));
    if (person !== undefined) {
      // As canonical JSON has them: a quotation mark in a value is escaped, so these match nothing else.
      const within = (text: string) =>
        name === 'sqlite' ? sql<SqlBool>`instr(person, ${text}) > 0` : sql<SqlBool>`strpos(person, ${text}) > 0`;
      const members = ['name', 'subject'].map((member) => within(`"${member}":${JSON.stringify(person)}`));
      conditions.push(eb('person', 'is not', null), eb.or(members));
    }
    if (subject_digest !== undefined) {
      const about = eb.selectFrom('packet_subjects').select('packet_subjects.packet_id').where('packet_subjects.tenant', '=', tenant);
      conditions.push(eb('packet_id', 'in', about.where('packet_subjects.subject_digest', '=', subject_digest)));
    }
    if (created_after !== undefined) conditions.push(eb('timestamp', '>=', created_after.toISOString()));
    if (created_before !== undefined) conditions.push(eb('timestamp', '<=', created_before.toISOString()));
    return eb.and(conditions);
  };
}
