import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { SchemaChecks } from '../../src/handoff/json-schema/checks.ts';
import type { CreateRequest } from '../../src/handoff/model/packet.ts';
import { createContractService } from '../../src/handoff/service/contracts.ts';
import { createKeyService } from '../../src/handoff/service/keys.ts';
import { createPacketService } from '../../src/handoff/service/packets.ts';
import { createPolicyService } from '../../src/handoff/service/policies.ts';
import { noSignIn } from '../../src/handoff/service/sign-in.ts';
import { readHandoffSettings, tierLimits } from '../../src/handoff/settings.ts';
import type { CommittedEvents } from '../../src/handoff/store/event-rows.ts';
import { openStore, type Store } from '../../src/handoff/store/store.ts';
import { createIds } from '../../src/kit/id.ts';
import { Turns } from '../../src/kit/turns.ts';
import { adminCaller } from './caller.ts';
import { packetRequest, TestClock } from './service.ts';
import type { TestStore } from './store.ts';

const random = (bytes: Buffer): void => void bytes.fill(7);

/**
 * Opens a new database with the first tenant, and the packet service on it without HTTP: calls made in one turn of the event loop share
 * one commit, in order.
 */
export async function openPackets(
  t: Pick<TestContext, 'after'>,
  testStore: TestStore,
  listeners: Partial<Record<'onSeen' | 'onCreated', () => void>> = {},
) {
  const { url, drop } = await testStore.open('handoff');
  const stores: Store[] = [];
  const checks = new SchemaChecks();
  t.after(async () => {
    await Promise.all([checks.stop(), ...stores.map((store) => store.close())]);
    await drop();
  });
  const time = new TestClock();
  const clock = time.read;
  const newId = createIds();
  /** Opens one more instance on the database. */
  const another = async () => {
    const store = await openStore({ databaseUrl: url, clock, newId });
    stores.push(store);
    const reported: CommittedEvents[] = [];
    store.onCommit((appended) => void reported.push(appended));
    const contracts = createContractService({ store, clock, turns: new Turns(), checks, onSeen: () => undefined });
    const policies = createPolicyService({
      store,
      clock,
      turns: new Turns(),
      checks,
      providerPrefix: 'idp:',
      views: { of: () => assert.fail('no packet is read') },
    });
    const packets = createPacketService({
      ...{ store, clock, newId, random, contracts, policies, checks, signIn: noSignIn, callerOfOrigin: async () => undefined },
      quotas: { chainDepthMax: 0, openPacketsPerAgent: 0 },
      limits: tierLimits(readHandoffSettings({})),
      onSeen: () => undefined,
      onCreated: () => undefined,
      ...listeners,
    });
    return { store, packets, contracts, reported };
  };
  const first = await another();
  await createKeyService({ store: first.store, clock, newId, random }).bootstrap('a-key-of-sixteen-characters');
  const newPacket = async (): Promise<string> =>
    JSON.parse((await first.packets.create(adminCaller, packetRequest() as CreateRequest)).text).id;
  return { url, clock: time, ...first, tenant: first.store.of(adminCaller), newPacket, another };
}
