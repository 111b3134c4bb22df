import { makesSource, sourceEvents } from '../rules/sources.ts';
import type { Group, Kind } from './engine/group.ts';
import { type TrailBuffer, trail } from './trail.ts';

/** The packets whose sources a unit needs. */
export interface SourceNeeds {
  readonly sourcesOf?: readonly string[];
}

/** The keys that are sources of the questions of a tenant's packets. */
export class SourceBuffer {
  /** Those of the committed events, by packet. */
  readonly found = new Map<string, string[]>();
  readonly #trail: TrailBuffer;

  constructor(tenant: number, group: Group<unknown>) {
    this.#trail = group.of(trail, tenant);
  }

  /** The ids of the keys that are sources of the question of a packet that the unit names. */
  of(packetId: string): string[] {
    const committed = this.found.get(packetId);
    if (committed === undefined) throw new Error('A unit reads sources of a packet that it does not name.');
    const own = this.#trail.appended.filter((draft) => draft.packet_id === packetId && makesSource(draft.event_type, draft.details));
    return [...committed, ...own.flatMap(({ key_id }) => key_id ?? [])];
  }
}

/** The sources of questions, read from the trail. */
export const sources: Kind<SourceNeeds, SourceBuffer> = {
  stage: (tenant, group) => new SourceBuffer(tenant, group as Group<unknown>),

  async find(session, group) {
    const wanted = group.wanted('packet_id', (unit) => unit.sourcesOf);
    if (wanted.length === 0) return;
    const keys = wanted.flatMap((key) => sourceEvents.map((event_type) => ({ ...key, event_type })));
    const rows = await session.read('events', ['tenant', 'packet_id', 'key_id', 'event_type', 'details'], keys);
    for (const { tenant, packet_id } of wanted) group.of(sources, tenant).found.set(packet_id, []);
    for (const [tenant, packet_id, key_id, event_type, details] of rows as [number, string, string | null, string, string][]) {
      if (key_id !== null && makesSource(event_type, details)) group.of(sources, tenant).found.get(packet_id)!.push(key_id);
    }
  },
};
