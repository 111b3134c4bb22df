import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import type { Packet } from '../model/packet.ts';
import type { Store } from '../store/store.ts';

/** A packet as it is read, and the root of its chain. Shared by all who read the same revision, so nobody changes it. */
export interface PacketView {
  readonly packet: Packet;
  /** The id of the root of its chain; its own if it is the root. */
  readonly root: string;
  /** The characters of its text. */
  readonly length: number;
}

/** The characters of the packets that are kept, of all tenants; a larger one is not kept. */
const maxKept = 16 * 1024 * 1024;

/**
 * Returns the function that reads packets for the protocols in which many listeners want the same one. A revision is read
 * and parsed once for all of them.
 */
export function createPacketViews(store: Store, turns: Turns) {
  /** By tenant and packet, the one that was read longest ago first. */
  const kept = new Map<string, PacketView>();
  const reading = new Map<string, Promise<PacketView | undefined>>();
  let held = 0;

  function drop(key: string): void {
    held -= kept.get(key)?.length ?? 0;
    kept.delete(key);
  }

  function keep(key: string, view: PacketView): void {
    drop(key);
    if (view.length > maxKept) return;
    kept.set(key, view);
    held += view.length;
    for (const oldest of kept.keys()) {
      if (held <= maxKept) return;
      drop(oldest);
    }
  }

  async function read(tenant: number, id: string, key: string): Promise<PacketView | undefined> {
    await turns.take(tenant);
    const { packets } = store.of(tenant);
    const [stamp, found] = [await packets.stamp(id), await packets.find(id)];
    if (stamp === undefined || found === undefined) return undefined;
    await turns.take(tenant, { first: true });
    const view = { packet: readJson(found.packet) as Packet, root: stamp.root, length: found.packet.length };
    keep(key, view);
    return view;
  }

  function shared(tenant: number, id: string, key: string, revision: number): Promise<PacketView | undefined> {
    const name = `${key} ${revision}`;
    const begun = reading.get(name) ?? read(tenant, id, key).finally(() => reading.delete(name));
    reading.set(name, begun);
    return begun;
  }

  return {
    /** A packet as it is now; undefined for an unknown one. Resolves in a turn of the tenant, in which the caller can use it. */
    async of(tenant: number, id: string): Promise<PacketView | undefined> {
      const key = `${tenant} ${id}`;
      const stamp = await store.of(tenant).packets.stamp(id);
      if (stamp === undefined) {
        drop(key);
        return undefined;
      }
      const known = kept.get(key);
      const view = known?.packet.revision === stamp.revision ? known : await shared(tenant, id, key, stamp.revision);
      await turns.take(tenant);
      return view;
    },
  };
}

export type PacketViews = ReturnType<typeof createPacketViews>;
