import { randomFillSync } from 'node:crypto';

import { createHandoff } from '../src/handoff/main.ts';
import type { CreateRequest } from '../src/handoff/model/packet.ts';
import { newPacket } from '../src/handoff/rules/new-packet.ts';
import { readHandoffSettings } from '../src/handoff/settings.ts';
import { openStore, type Store } from '../src/handoff/store/store.ts';
import { nextTurn } from '../src/kit/awaitable.ts';
import { systemClock } from '../src/kit/clock.ts';
import { createIds } from '../src/kit/id.ts';
import { seededRequest } from './bodies.ts';
import { serveTasks } from './programs.ts';

/** Packets per unit of work. */
const unitSize = 250;

interface Seeding {
  /** The service's environment, with its database and admin key. */
  env: Record<string, string>;
  packets: number;
  /** Whether to return the ids. */
  ids?: boolean;
}

const newId = createIds((bytes) => void randomFillSync(bytes));

/** The number of the default tenant, the first one. */
const defaultTenant = 1;

/** Writes packets of the default tenant through the store, with timestamps one millisecond apart up to now. */
async function insert(store: Store, packets: number): Promise<string[]> {
  const ids: string[] = [];
  const begin = Date.now() - packets;
  const tenant = store.whole(defaultTenant);
  for (let first = 0; first < packets; first += unitSize) {
    const made = Array.from({ length: Math.min(unitSize, packets - first) }, (_, index) => {
      const now = new Date(begin + first + index);
      const request = seededRequest(first + index) as unknown as CreateRequest;
      return { now, ...newPacket(request, { id: newId(now), now, agentId: undefined }) };
    });
    await tenant.commit({
      notifies: true,
      work({ packets: rows, trail }) {
        for (const { packet, events, now } of made) {
          rows.insert(packet);
          trail.append(packet, events, { now, keyId: null });
        }
      },
    });
    for (const { packet } of made) ids.push(packet.id);
  }
  return ids;
}

/** Fills a database including its search index, so that the service has no backlog; returns the seconds it took. */
async function seed({ env, packets, ids = false }: Seeding): Promise<{ seconds: number; ids: string[] }> {
  const settings = readHandoffSettings({ environment: env });
  // Creates the tenant and its key.
  await (await createHandoff(settings, { logs: { write: () => undefined } })).stop();
  const store = await openStore({ databaseUrl: settings.databaseUrl, clock: systemClock, newId });
  const begun = performance.now();
  let inserting = true;
  const indexing = (async () => {
    while (inserting || (await store.index.queued(1)) > 0) {
      // A step with nothing to index never yields to the event loop, which would starve the inserts.
      const { taken } = await store.index.step();
      if (taken === 0) await nextTurn();
    }
  })();
  const made = await insert(store, packets);
  inserting = false;
  await indexing;
  const seconds = (performance.now() - begun) / 1000;
  await store.close();
  return { seconds, ids: ids ? made : [] };
}

const tasks = { seed };

/** The tasks of the seeder. */
export type SeedTasks = typeof tasks;

serveTasks(tasks);
