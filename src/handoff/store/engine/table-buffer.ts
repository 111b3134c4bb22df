import { type Awaitable, andThen } from '../../../kit/awaitable.ts';
import type { Row, Values } from '../../../kit/sql/dialect.ts';
import type { Group, Writes } from './group.ts';
import type { Journal } from './journal.ts';
import type { Session } from './session.ts';

/** How the rows of a table are read and written. */
interface TableOptions<Stored> {
  readonly name: string;
  /** The columns that are read. */
  readonly columns: readonly string[];
  /** The column by which rows are updated; rows of tenants also by their tenant. */
  readonly key: string;
  /** Whether the rows belong to tenants, and the database numbers new ones in `seq`. */
  readonly ofTenants?: true;
  /** The columns that an update writes; by default all that are read. */
  readonly updated?: readonly string[];
  /** An item from its row. */
  readonly decode: (row: Row) => Stored;
  /** The row of a new or changed item. */
  readonly encode: (stored: Stored) => Row;
}

/** An item, and the values of the other columns that were asked for. */
interface Found<Stored> {
  readonly stored: Stored;
  readonly more: Values;
}

/** What a flush needs of a buffer. */
type Flushed<Stored> = Pick<TableBuffer<unknown, Stored>, 'inserted'> & { readonly changed: ReadonlyMap<unknown, Stored> };

/** A table whose rows groups read into buffers and write from them. */
export class Table<Stored> {
  readonly #options: TableOptions<Stored>;

  constructor(options: TableOptions<Stored>) {
    this.#options = options;
  }

  /** Reads and locks the rows with these keys. */
  find(session: Session, keys: readonly Row[], more: readonly string[] = []): Awaitable<Found<Stored>[]> {
    const { name, columns } = this.#options;
    return andThen(session.find(name, [...columns, ...more], keys), (rows) => rows.map((values) => this.#item(values)));
  }

  /** Reads the rows with these keys without a lock. */
  read(session: Session, keys: readonly Row[], more: readonly string[] = []): Awaitable<Found<Stored>[]> {
    const { name, columns } = this.#options;
    return andThen(session.read(name, [...columns, ...more], keys), (rows) => rows.map((values) => this.#item(values)));
  }

  #item(values: Values): Found<Stored> {
    const { columns, decode } = this.#options;
    const row = Object.fromEntries(columns.map((column, index) => [column, values[index]!]));
    return { stored: decode(row), more: values.slice(columns.length) };
  }

  /** Writes what the buffers of all tenants contain. */
  flush<Needs>(session: Session, group: Group<Needs>, writes: Writes<never, Flushed<Stored>>): void {
    const { name, columns, key, ofTenants = false, updated = columns, encode } = this.#options;
    const keys = ofTenants ? ['tenant', key] : [key];
    const written = [...keys, ...updated.filter((column) => column !== key)];
    const fresh = (stored: Stored, tenant: number): Row => {
      if (!ofTenants) return encode(stored);
      const { seq: _, ...row } = encode(stored);
      return { tenant, ...row };
    };
    const changes = (stored: Stored, tenant: number): Row => {
      const row: Row = { ...encode(stored), tenant };
      return Object.fromEntries(written.map((column) => [column, row[column]!]));
    };
    session.insert(
      name,
      group.each(writes, ({ inserted }, tenant) => inserted.map((stored) => fresh(stored, tenant))),
    );
    session.update(
      name,
      keys,
      group.each(writes, ({ changed }, tenant) => [...changed.values()].map((stored) => changes(stored, tenant))),
    );
  }
}

/** What the units of one tenant read and change of a table. */
export class TableBuffer<Key, Stored> {
  /** The current state of the rows that units named. */
  readonly found = new Map<Key, Stored>();
  inserted: Stored[] = [];
  readonly changed = new Map<Key, Stored>();
  protected readonly journal: Journal;

  constructor(journal: Journal) {
    this.journal = journal;
  }

  /** An item that the unit names; undefined when it is unknown or removed. */
  get(key: Key): Stored | undefined {
    return this.found.get(key);
  }

  all(): Stored[] {
    return [...this.found.values()];
  }

  insert(stored: Stored): void {
    this.journal.push(this.inserted, stored);
  }

  save(key: Key, stored: Stored): void {
    this.journal.set(this.changed, key, stored);
    this.journal.set(this.found, key, stored);
  }

  /** Forgets the writes of items that the group erases. Called after all units have run. */
  drop(isErased: (stored: Stored) => boolean): void {
    this.inserted = this.inserted.filter((stored) => !isErased(stored));
    for (const [key, stored] of this.changed) if (isErased(stored)) this.changed.delete(key);
  }

  /** Saves an item that later units do not find. */
  remove(key: Key, stored: Stored): void {
    this.journal.set(this.changed, key, stored);
    this.journal.delete(this.found, key);
  }
}
