import type { Awaitable } from '../../../kit/awaitable.ts';
import type { CurrentRequest } from '../../../kit/current-request.ts';
import type { NewId } from '../../../kit/id.ts';
import type { TraceContext } from '../../../kit/trace-context.ts';
import type { Sight } from '../../rules/sight.ts';
import type { ErasedContent } from '../erasure.ts';
import type { Beginnings } from './beginnings.ts';
import { Journal } from './journal.ts';
import type { Session } from './session.ts';

/** A unit of work and the number of its tenant. */
export interface TenantUnit<Unit> {
  readonly tenant: number;
  readonly unit: Unit;
  /** What the caller sees; undefined: all that the tenant has. */
  readonly sight?: Sight | undefined;
  /** The request that submitted it; undefined for a background job. */
  readonly request?: CurrentRequest | undefined;
}

/** A packet that a group erases or deletes permanently, as the key of rows that belong to it. */
export type ErasedPacket = { readonly tenant: number; readonly packet_id: string };

/** Says that the rows of a noun contain nothing from the content of packets, so that an erasure leaves them. */
export const noContent = 'no content';

/**
 * How a group of units reads, writes and erases the rows of one noun. `Needs` is the part of a unit that names its rows, and
 * `Buffer` holds what the units of one tenant read and change of them.
 */
export interface Writes<Needs, Buffer> {
  /** The members of a unit that `find` reads: without any of them, a group does not call it. */
  readonly needs: Readonly<Record<keyof Needs & string, true>>;
  /** Makes the buffer of a tenant. Called when something of the group first reads or changes its rows. */
  stage(tenant: number, group: Group<unknown>): Buffer;
  /** Reads and locks what the units name. */
  find?(session: Session, group: Group<Needs>): Awaitable<void>;
  /** Erases the data of packets that are erased or deleted permanently. It runs before all other writes. */
  erase: typeof noContent | ((session: Session, group: Group<Needs>, erased: readonly ErasedPacket[]) => Awaitable<void>);
  /**
   * Writes the changes of the units, if the group staged anything. It need not wait for what it writes: a session writes in
   * the order of the calls, and its commit waits.
   */
  flush?(session: Session, group: Group<Needs>): Awaitable<void>;
}

/** The number under which a group stages data that belongs to no single tenant. */
export const noTenant = 0;

/** The units that share one database transaction, and what they stage. */
export class Group<Unit> {
  readonly units: readonly TenantUnit<Unit>[];
  readonly journal = new Journal();
  readonly newId: NewId;
  /** 16 random bytes, in hexadecimal. */
  readonly newSalt: () => string;
  readonly beginnings: Beginnings;
  /** After the commit, the last position of each tenant whose trail the group appended to. */
  readonly lastPositions = new Map<number, number>();
  /** The events that say that a packet was erased: what belongs to them stays. */
  readonly ofErasures = new Set<string>();
  /** What was erased of packets, by tenant and packet, if an erasure needs it. */
  readonly erasedContent = new Map<string, ErasedContent>();
  /** The trace of the unit that runs. */
  trace: TraceContext | undefined;
  /** What the caller of the unit that runs sees. */
  sight: Sight | undefined;
  /** The buffers by tenant, by the noun's writes. */
  readonly #buffers = new Map<unknown, Map<number, unknown>>();

  constructor(units: readonly TenantUnit<Unit>[], { newId, newSalt, beginnings }: Pick<Group<Unit>, 'newId' | 'newSalt' | 'beginnings'>) {
    this.units = units;
    this.newId = newId;
    this.newSalt = newSalt;
    this.beginnings = beginnings;
  }

  /** What the units of a tenant read and change of a noun. */
  of<Buffer>(writes: Writes<never, Buffer>, tenant: number): Buffer {
    const buffers = this.#buffersOf(writes);
    const known = buffers.get(tenant);
    if (known !== undefined) return known;
    const buffer = writes.stage(tenant, this);
    buffers.set(tenant, buffer);
    return buffer;
  }

  /** Whether anything of a noun was read or changed. */
  has(writes: Writes<never, unknown>): boolean {
    return (this.#buffers.get(writes)?.size ?? 0) > 0;
  }

  /** Items of a noun of all tenants of the group. */
  each<Buffer, T>(writes: Writes<never, Buffer>, itemsOf: (buffer: Buffer, tenant: number) => readonly T[]): T[] {
    return [...this.#buffersOf(writes)].flatMap(([tenant, buffer]) => itemsOf(buffer, tenant));
  }

  #buffersOf<Buffer>(writes: Writes<never, Buffer>): Map<number, Buffer> {
    const known = this.#buffers.get(writes);
    if (known !== undefined) return known as Map<number, Buffer>;
    const fresh = new Map<number, Buffer>();
    this.#buffers.set(writes, fresh);
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
