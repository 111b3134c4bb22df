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
 * A unit of work: what it must find locked, and what it does with that. Units that wait together share a database
 * transaction; `work` is synchronous, touches nothing but the transaction it is given, and may be run again.
 */
export interface Unit<T> {
  /** Packets to lock. A unit that creates some names none, and is told of webhooks all the same. */
  readonly packets?: readonly string[];
  /** About how many packets it creates, where it does. */
  readonly creates?: number;
  /** Which packet, of those that wait, it takes. */
  readonly next?: NextFilter;
  /** Source agents whose open packets it needs counted, and so locks. */
  readonly openOf?: readonly string[];
  /** Whether the packets are wanted with their content, which is then parsed. */
  readonly whole?: boolean;
  /** About how many characters it brings, where they may be many. */
  readonly size?: number;
  /** Counters whose value it needs, and so locks. */
  readonly counters?: readonly string[];
  readonly idempotencyKey?: string | undefined;
  /** Webhooks to lock. */
  readonly webhooks?: readonly string[];
  /** Whether it needs the tenant's webhooks, all of them; a unit on packets always does. */
  readonly allWebhooks?: boolean;
  /** Deliveries to lock, by their numbers or by their ids. */
  readonly deliveries?: readonly number[];
  readonly deliveryIds?: readonly string[];
  /** Tenants and keys to lock. */
  readonly access?: AccessNeeds;
  work(transaction: Transaction): T;
}

/** A unit, and the number of the tenant it works for. */
export interface TenantUnit {
  readonly tenant: number;
  readonly unit: Unit<unknown>;
}

/** What a unit of work sees of its tenant, and what it wants written: one member for each kind of thing that is stored. */
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
    this.open = new OpenTransaction(this.packets);
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

/** The units that share one database transaction, and what is found and written for them, tenant by tenant. */
export class Group {
  readonly units: readonly TenantUnit[];
  readonly journal = new Journal();
  readonly access: AccessTransaction;
  /** Numbers for new packets, fetched with what is found. */
  packetNumbers: number[] = [];
  /** The last position of each tenant whose trail the group appended to: known once it is committed. */
  lastPositions: Awaitable<ReadonlyMap<number, number>> = new Map();
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

  /** What all tenants of the group have of something. */
  each<T>(of: (transaction: Transaction) => readonly T[]): T[] {
    return [...this.#tenants.values()].flatMap(of);
  }

  /** What the units name of something: each tenant's names, once each, as pairs. */
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

/** A packet that a group removes for good, as it is stored. */
export interface RemovedPacket {
  readonly tenant: number;
  readonly stored: StoredPacket;
}

/** How a group finds, writes and erases one kind of thing. What is sent to the database need not be awaited. */
export interface Kind {
  /** Reads what the units name, locked. */
  find?(session: Session, group: Group): Awaitable<void>;
  /** Erases what belongs to packets that are removed for good. It comes before everything else that is written. */
  erase?(session: Session, group: Group, removed: readonly RemovedPacket[]): Awaitable<void>;
  /** Writes what the units want written. */
  flush(session: Session, group: Group): Awaitable<void>;
}
