import type { Awaitable } from '../../../kit/awaitable.ts';
import type { NewId } from '../../../kit/id.ts';
import type { Session } from '../../../kit/sql/dialect.ts';
import { type AccessNeeds, AccessTransaction } from './access.ts';
import { AnswerTransaction } from './answers.ts';
import { CounterTransaction } from './counters.ts';
import { DeliveryTransaction } from './deliveries.ts';
import { EventTransaction } from './events.ts';
import { Journal } from './journal.ts';
import { type NextFilter, NextTransaction } from './next.ts';
import { OpenTransaction } from './open.ts';
import { PacketTransaction, type StoredPacket } from './packets.ts';
import { WebhookTransaction } from './webhooks.ts';

/**
 * A unit of work: the rows it needs locked, and the work on them. Concurrent units share a database transaction; `work` is
 * synchronous, uses only the transaction it is given, and may run more than once.
 */
export interface Unit<T> {
  /** Packets to lock. A unit that only creates packets gives an empty list, so that it gets the tenant's webhooks. */
  readonly packets?: readonly string[];
  /** About how many packets it creates. */
  readonly creates?: number;
  /** Which waiting packet it takes. */
  readonly next?: NextFilter;
  /** Source agents whose open packets it needs counted; their counts are locked. */
  readonly openOf?: readonly string[];
  /** Whether it parses the packets with their content. */
  readonly whole?: boolean;
  /** About how many characters of input it has, where they may be many. */
  readonly size?: number;
  /** Counters to read and lock. */
  readonly counters?: readonly string[];
  readonly idempotencyKey?: string | undefined;
  /** Webhooks to lock. */
  readonly webhooks?: readonly string[];
  /** Whether it needs all webhooks of the tenant; a unit with `packets` always does. */
  readonly allWebhooks?: boolean;
  /** Deliveries to lock, by `seq` or by id. */
  readonly deliveries?: readonly number[];
  readonly deliveryIds?: readonly string[];
  /** Tenants and keys to lock. */
  readonly access?: AccessNeeds;
  work(transaction: Transaction): T;
}

/** A unit and the number of its tenant. */
export interface TenantUnit {
  readonly tenant: number;
  readonly unit: Unit<unknown>;
  /** The request that submitted it; undefined for a background job. */
  readonly requestId?: string | undefined;
}

/** What a unit of work reads and changes of its tenant, with one member for each kind of data. */
export class Transaction {
  readonly tenant: number;
  readonly access: AccessTransaction;
  readonly packets: PacketTransaction;
  readonly webhooks: WebhookTransaction;
  readonly deliveries: DeliveryTransaction;
  readonly next: NextTransaction;
  readonly open: OpenTransaction;
  readonly answers: AnswerTransaction;
  readonly counters: CounterTransaction;
  readonly events: EventTransaction;

  constructor(tenant: number, group: Group, newId: NewId) {
    const { journal } = group;
    this.tenant = tenant;
    this.access = group.access;
    this.counters = new CounterTransaction(tenant, journal);
    this.packets = new PacketTransaction(tenant, journal, this.counters);
    this.next = new NextTransaction(this.packets);
    this.open = new OpenTransaction(journal);
    this.answers = new AnswerTransaction(tenant, journal);
    this.webhooks = new WebhookTransaction(tenant, journal);
    this.deliveries = new DeliveryTransaction(tenant, journal, newId, this.webhooks);
    this.events = new EventTransaction(tenant, {
      journal,
      newId,
      packets: this.packets,
      counters: this.counters,
      deliveries: this.deliveries,
    });
  }
}

/** The units that share one database transaction, and the data of each of their tenants. */
export class Group {
  readonly units: readonly TenantUnit[];
  readonly journal = new Journal();
  readonly access: AccessTransaction;
  /** Reserved `seq` numbers for new packets. */
  packetNumbers: number[] = [];
  /** After the commit, the last position of each tenant whose trail the group appended to. */
  readonly lastPositions = new Map<number, number>();
  readonly #tenants = new Map<number, Transaction>();
  readonly #newId: NewId;

  constructor(units: readonly TenantUnit[], newId: NewId) {
    this.units = units;
    this.#newId = newId;
    this.access = new AccessTransaction(this);
  }

  of(tenant: number): Transaction {
    const known = this.#tenants.get(tenant);
    if (known !== undefined) return known;
    const fresh = new Transaction(tenant, this, this.#newId);
    this.#tenants.set(tenant, fresh);
    return fresh;
  }

  /** Items of all tenants of the group. */
  each<T>(of: (transaction: Transaction) => readonly T[]): T[] {
    return [...this.#tenants.values()].flatMap(of);
  }

  /** The distinct names that units of each tenant give, as pairs. */
  wanted(namesOf: (unit: Unit<unknown>) => readonly string[] | undefined): [tenant: number, name: string][] {
    const names = new Map<number, Set<string>>();
    for (const { tenant, unit } of this.units) {
      for (const name of namesOf(unit) ?? []) {
        const own = names.get(tenant);
        if (own === undefined) names.set(tenant, new Set([name]));
        else own.add(name);
      }
    }
    return [...names].flatMap(([tenant, own]) => [...own].map((name): [number, string] => [tenant, name]));
  }
}

/** A stored packet that a group deletes permanently. */
export interface RemovedPacket {
  readonly tenant: number;
  readonly stored: StoredPacket;
}

/** How a group reads, writes and erases one kind of data. */
export interface Kind {
  /** Reads and locks what the units name. */
  find?(session: Session, group: Group): Awaitable<void>;
  /** Erases the data of permanently deleted packets. It runs before all other writes. */
  erase?(session: Session, group: Group, removed: readonly RemovedPacket[]): Awaitable<void>;
  /** Writes the changes of the units. */
  flush(session: Session, group: Group): Awaitable<void>;
}
