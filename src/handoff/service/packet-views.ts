import { LRUCache } from 'lru-cache';

import type { Awaitable } from '../../kit/awaitable.ts';
import { FairQueue } from '../../kit/fair-queue.ts';
import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import type { Packet } from '../model/packet.ts';
import { agentsOf, isSeen, type Viewer } from '../rules/sight.ts';
import type { PacketStamp } from '../store/packets.ts';
import { sharing } from '../store/sharing.ts';
import type { TenantStore } from '../store/tenant-store.ts';

/** A packet as it is read, and the root of its chain. Shared by all who read the same revision, so nobody changes it. */
export interface PacketView {
  readonly packet: Packet;
  /** The id of the root of its chain; its own if it is the root. */
  readonly root: string;
  /** What it was compared by: see `PacketStamp`. */
  readonly due_at: string | null;
  /** The characters of its text. */
  readonly length: number;
}

/** The store's reads of the packets of a tenant. */
export interface PacketReads {
  of(viewer: Viewer): { readonly packets: Pick<TenantStore['packets'], 'stamp' | 'find'> };
}

/** The characters of the packets that are kept, of all tenants; a larger one is not kept. */
const maxKept = 16 * 1024 * 1024;

/**
 * How many packets are read at once, of all tenants and of one, from the query to the parsed value. A packet has a few MiB
 * at most, so this bounds the texts that wait to be parsed, which on PostgreSQL come faster than they are parsed.
 */
const maxReading = { concurrency: 16, perOwner: 4, what: 'reads of packets' };

/**
 * Returns the functions that read packets for the protocols in which many listeners want the same one. A revision with its lease
 * is read and parsed once for all of them.
 */
export function createPacketViews(store: PacketReads, turns: Turns) {
  const reads = new FairQueue(maxReading);
  /** By tenant and packet. */
  const kept = new LRUCache<string, PacketView>({ maxSize: maxKept, sizeCalculation: ({ length }) => length });
  const reading = new Map<string, Promise<PacketView | undefined>>();
  /** Rises when all is forgotten, so that a read that began before is not kept. */
  let generation = 0;

  async function read(tenant: number, id: string, key: string): Promise<PacketView | undefined> {
    await turns.next(tenant);
    const begun = generation;
    const { packets } = store.of({ tenant_number: tenant });
    const [stamp, found] = [await packets.stamp(id), await packets.find(id)];
    if (stamp === undefined || found === undefined) return undefined;
    await turns.next(tenant, { first: true });
    const view = { packet: readJson(found.packet) as Packet, root: stamp.root, due_at: stamp.due_at, length: found.packet.length };
    if (begun === generation) kept.set(key, view);
    return view;
  }

  function shared(tenant: number, id: string, key: string, { revision, due_at }: PacketStamp): Promise<PacketView | undefined> {
    const name = `${key} ${revision} ${due_at}`;
    const begun = reading.get(name) ?? reads.run(tenant, () => read(tenant, id, key)).finally(() => reading.delete(name));
    reading.set(name, begun);
    return begun;
  }

  /** By tenant and id. */
  const stamps = sharing((key: string) => {
    const [tenant, id] = key.split(' ');
    return store.of({ tenant_number: Number(tenant) }).packets.stamp(id!);
  });

  return {
    /** Forgets all packets, since the content of some has been erased. */
    forget(): void {
      generation += 1;
      kept.clear();
    },

    /** What a packet is compared by; undefined for an unknown one. An event wakes many who ask for the same one. */
    stamp: (viewer: Viewer, id: string): Awaitable<PacketStamp | undefined> =>
      viewer.sight === undefined ? stamps(`${viewer.tenant_number} ${id}`) : store.of(viewer).packets.stamp(id),

    /**
     * A packet as it is now; undefined for one that is unknown or not seen. Resolves in a turn of the tenant, in which the caller can
     * use it.
     */
    async of({ tenant_number: tenant, sight }: Viewer, id: string): Promise<PacketView | undefined> {
      const key = `${tenant} ${id}`;
      const stamp = await stamps(key);
      if (stamp === undefined) {
        kept.delete(key);
        return undefined;
      }
      const known = kept.get(key);
      const isCurrent = known?.packet.revision === stamp.revision && known.due_at === stamp.due_at;
      const view = isCurrent ? known : await shared(tenant, id, key, stamp);
      await turns.next(tenant);
      return view !== undefined && isSeen(sight, agentsOf(view.packet)) ? view : undefined;
    },
  };
}

export type PacketViews = ReturnType<typeof createPacketViews>;
