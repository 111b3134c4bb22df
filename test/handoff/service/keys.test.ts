import assert from 'node:assert/strict';
import { randomBytes, randomFillSync } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';

import { keyFrom } from '../../../src/handoff/rules/keys.ts';
import { createKeyService, defaultTenantId } from '../../../src/handoff/service/keys.ts';
import { openStore } from '../../../src/handoff/store/store.ts';
import type { Awaitable } from '../../../src/kit/awaitable.ts';
import { createIds } from '../../../src/kit/id.ts';
import { adminCaller } from '../../support/caller.ts';
import { TestClock } from '../../support/service.ts';
import type { TestStore } from '../../support/store.ts';
import { stores } from '../../support/stores.ts';

/** A key of the right form that does not exist. */
const unknownKey = () => keyFrom(randomBytes(32));

/** A generated key with one changed character, so that its checksum is wrong. */
const mistypedKey = () => {
  const key = unknownKey();
  return `${key.slice(0, 20)}${key[20] === 'x' ? 'y' : 'x'}${key.slice(21)}`;
};

/** A key service with its own store, its first key, and a way to delay the result of one read. */
async function openAccess(t: Pick<TestContext, 'after'>, testStore: TestStore) {
  const { url, drop } = await testStore.open('handoff');
  const clock = new TestClock().read;
  const newId = createIds();
  const store = await openStore({ databaseUrl: url, clock, newId });
  t.after(async () => {
    await store.close();
    await drop();
  });
  const held: Partial<Record<'keyByHash' | 'version', { reached(): void; gate: Promise<void> }>> = {};
  async function answerOf<T>(name: keyof typeof held, found: Awaitable<T>): Promise<T> {
    const value = await found;
    const hold = held[name];
    delete held[name];
    hold?.reached();
    await hold?.gate;
    return value;
  }
  const access = createKeyService({
    store: {
      ...store,
      keys: {
        ...store.keys,
        byHash: (hash) => answerOf('keyByHash', store.keys.byHash(hash)),
        version: () => answerOf('version', store.keys.version()),
      },
    },
    clock,
    newId,
    random: (bytes) => void randomFillSync(bytes),
  });
  const key = (await access.bootstrap(undefined)).createdKey!;
  const [first] = await store.keys.of(defaultTenantId, clock());
  const caller = { ...adminCaller, key_id: first!.id };
  /** Delays the result of the next read of this name until `release`; `begun` resolves when the read has started. */
  function hold(name: keyof typeof held): { begun: Promise<void>; release(): void } {
    const reached = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    held[name] = { reached: reached.resolve, gate: gate.promise };
    return { begun: reached.promise, release: gate.resolve };
  }
  return { access, caller, key, hold };
}

for (const store of stores) {
  describe(`The key service on ${store.name}`, () => {
    test('a key that was looked up before its revocation is not cached after it', async (t) => {
      const { access, caller, key, hold } = await openAccess(t, store);
      const looking = hold('keyByHash');
      const early = access.authenticate(key);
      await looking.begun;
      await access.revokeKey(caller, caller.key_id);
      // This call clears the cache; the earlier lookup ends afterwards.
      assert.equal(await access.authenticate(unknownKey()), undefined);
      looking.release();
      await early;
      assert.equal(await access.authenticate(key), undefined);
    });

    test('a request after a revocation does not share a lookup that began before it', async (t) => {
      const { access, caller, key, hold } = await openAccess(t, store);
      assert.notEqual(await access.authenticate(key), undefined);
      const looking = hold('version');
      const early = access.authenticate(key);
      await looking.begun;
      await access.revokeKey(caller, caller.key_id);
      const late = access.authenticate(key);
      looking.release();
      await early;
      assert.equal(await late, undefined);
    });

    test('on one connection each request is judged by its own key, and a revoked key is refused at the next', async (t) => {
      const { access, caller, key } = await openAccess(t, store);
      const connection = {};
      assert.equal((await access.authenticate(key, connection))?.key_id, caller.key_id);
      const last = key.at(-1) === '0' ? '1' : '0';
      for (const other of [unknownKey(), `${key.slice(0, -1)}${last}`, `${key}x`, key.slice(0, -1), '']) {
        assert.equal(await access.authenticate(other, connection), undefined);
        assert.equal((await access.authenticate(key, connection))?.key_id, caller.key_id);
      }
      await access.revokeKey(caller, caller.key_id);
      assert.equal(await access.authenticate(key, connection), undefined);
    });

    test('a key with a wrong checksum is refused without a database lookup [H199]', async () => {
      const opened = await store.open('handoff');
      const clock = new TestClock();
      const newId = createIds();
      const data = await openStore({ databaseUrl: opened.url, clock: clock.read, newId });
      const access = createKeyService({
        store: data,
        clock: clock.read,
        newId,
        random: (bytes) => void randomBytes(bytes.length).copy(bytes),
      });
      assert.equal(await access.authenticate(unknownKey()), undefined);
      await data.close();
      // A lookup in the closed database would fail.
      await assert.rejects(async () => access.authenticate(unknownKey()));
      for (const key of [mistypedKey(), 'svc_', `${unknownKey()}x`, unknownKey().slice(0, -1), 'x'.repeat(10_240), ''])
        assert.equal(await access.authenticate(key), undefined);
      await opened.drop();
    });
  });
}
