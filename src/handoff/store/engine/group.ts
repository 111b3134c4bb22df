import type { Awaitable } from '../../../kit/awaitable.ts';
import type { CurrentRequest } from '../../../kit/current-request.ts';
import type { NewId } from '../../../kit/id.ts';
import type { TraceContext } from '../../../kit/trace-context.ts';
import { Journal } from './journal.ts';
import type { Session } from './session.ts';

/** A unit of work and the number of its tenant. */
export interface TenantUnit<Unit> {
  readonly tenant: number;
  readonly unit: Unit;
  /** The request that submitted it; undefined for a background job. */
  readonly request?: CurrentRequest | undefined;
}

/** A packet that a group deletes permanently, as the key of rows that belong to it. */
type ErasedPacket = { readonly tenant: number; readonly packet_id: string };

/** What a group stages by: a noun with a kind. */
export interface Staging<Staged> {
  readonly kind: Kind<never, Staged>;
}

/**
 * How a group reads, writes and erases one kind of data. `Needs` is the part of a unit that names rows of this kind, and
 * `Staged` holds what the units of one tenant read and change of it.
 */
export interface Kind<Needs, Staged> {
  /** Whether its rows belong to no single tenant. */
  readonly ofEveryTenant?: true;
  /** The members of a unit that `find` reads: without any of them, a group does not call it. */
  readonly needs: Readonly<Record<keyof Needs & string, true>>;
  /** Called when something of the group first reads or changes data of this kind. */
  stage(tenant: number, group: Group<Needs>): Staged;
  /** Reads and locks what the units name. */
  find?(session: Session, group: Group<Needs>): Awaitable<void>;
  /** Erases the data of permanently deleted packets. It runs before all other writes. */
  erase?(session: Session, group: Group<Needs>, erased: readonly ErasedPacket[]): Awaitable<void>;
  /**
   * Writes the changes of the units, if the group staged anything. It need not wait for what it writes: a session writes in
   * the order of the calls, and its commit waits.
   */
  flush?(session: Session, group: Group<Needs>): Awaitable<void>;
}

/** The number under which a group stages data that belongs to no single tenant. */
export const everyTenant = 0;

/** The units that share one database transaction, and what they stage. */
export class Group<Unit> {
  readonly units: readonly TenantUnit<Unit>[];
  readonly journal = new Journal();
  readonly newId: NewId;
  /** After the commit, the last position of each tenant whose trail the group appended to. */
  readonly lastPositions = new Map<number, number>();
  /** The trace of the unit that runs. */
  trace: TraceContext | undefined;
  readonly #staged = new Map<unknown, Map<number, unknown>>();

  constructor(units: readonly TenantUnit<Unit>[], newId: NewId) {
    this.units = units;
    this.newId = newId;
  }

  /** What the units of a tenant stage of a kind. */
  of<Staged>({ kind }: Staging<Staged>, tenant: number): Staged {
    const own = this.#ofKind(kind);
    const known = own.get(tenant);
    if (known !== undefined) return known;
    const staged = kind.stage(tenant, this as unknown as Group<never>);
    own.set(tenant, staged);
    return staged;
  }

  /** Whether anything of a kind is staged. */
  has(kind: Kind<never, unknown>): boolean {
    return (this.#staged.get(kind)?.size ?? 0) > 0;
  }

  /** Items of a kind of all tenants of the group. */
  each<Staged, T>({ kind }: Staging<Staged>, itemsOf: (staged: Staged, tenant: number) => readonly T[]): T[] {
    return [...this.#ofKind(kind)].flatMap(([tenant, staged]) => itemsOf(staged, tenant));
  }

  #ofKind<Staged>(kind: Kind<never, Staged>): Map<number, Staged> {
    const known = this.#staged.get(kind);
    if (known !== undefined) return known as Map<number, Staged>;
    const fresh = new Map<number, Staged>();
    this.#staged.set(kind, fresh);
    return fresh;
  }

  /** The keys of the rows that units of each tenant name, with the names in this column; each key once. */
  wanted<Column extends string, Name extends string | number>(
    column: Column,
    namesOf: (unit: Unit) => readonly Name[] | undefined,
  ): ({ tenant: number } & Record<Column, Name>)[] {
    const names = new Map<number, Set<Name>>();
    for (const { tenant, unit } of this.units) {
      for (const name of namesOf(unit) ?? []) {
        const own = names.get(tenant);
        if (own === undefined) names.set(tenant, new Set([name]));
        else own.add(name);
      }
    }
    return [...names].flatMap(([tenant, own]) => [...own].map((name) => ({ tenant, [column]: name }) as never));
  }
}
