import type { Selectable } from 'kysely';

/**
 * The tables, which the files of nouns add (`declare module`). Times are ISO 8601 UTC with milliseconds, as text; ids are UUIDs version 7,
 * so that text order is time order. `tenant` is a tenant's `number`, and `packet` a packet's `seq`.
 */
export interface Tables {
  /** Numbers that rise with each change of what instances keep in memory, by name; and `deployment`, which tells deployments apart. */
  versions: { name: string; value: number };
}

/** A row of a table as it is read. */
export type RowOf<Name extends keyof Tables> = Readonly<Selectable<Tables[Name]>>;
