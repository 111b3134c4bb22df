import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import { describe, test } from 'node:test';
import { createExample } from '../../../src/handoff/model/examples.ts';
import { canonicalJson } from '../../../src/handoff/rules/canonical-json.ts';
import { ChainCheck } from '../../../src/handoff/rules/chain-check.ts';
import type { Tables } from '../../../src/handoff/store/tables.ts';
import { verifyTrails } from '../../../src/handoff/store/verify.ts';
import { withDatabase } from '../../../src/kit/sql/database.ts';
import { assertSound, looking } from '../../support/consistency.ts';
import { openInstances } from '../../support/instances.ts';
import { claimant } from '../../support/life.ts';
import { startReceiver } from '../../support/receiver.ts';
import { createPacket, packetRequest, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { onDisk, postgresql, stores } from '../../support/stores.ts';
import { register } from '../../support/webhooks.ts';

/** An export as lines. */
async function exported(service: TestService, query = ''): Promise<string[]> {
  const { status, text, headers } = await service.call('GET', `/audit/export${query}`);
  assert.equal(status, 200, text);
  assert.equal(headers['content-type'], 'application/jsonl; charset=utf-8');
  return text.trimEnd().split('\n');
}

/** What a check of an export says: its summary, or the sentence of its fault. */
function checked(lines: readonly string[], options: ConstructorParameters<typeof ChainCheck>[0] = {}) {
  const check = new ChainCheck(options);
  try {
    for (const line of lines) check.take(JSON.parse(line));
    return check.summary();
  } catch (error) {
    return (error as Error).message;
  }
}

/** Lines with a changed member of one of them. */
const changed = (lines: readonly string[], index: number, change: (entry: Record<string, unknown>) => object) =>
  lines.map((line, at) => (at === index ? JSON.stringify({ ...JSON.parse(line), ...change(JSON.parse(line)) }) : line));

for (const store of stores) {
  describe(`The chain of the audit log, on ${store.name}`, () => {
    test('an export holds, also after a hard delete, and each changed, removed, inserted or swapped entry is found [H600, H612]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'wörker \u2028"' } });
      const { id: erased } = await createPacket(service);
      assert.equal((await service.call('DELETE', `/packets/${erased}?hard=true`)).status, 204);
      const lines = await exported(service);
      const entries = lines.length - 2;
      assert.deepEqual(checked(lines), { entries, from: 1, to: entries, isFiltered: false, isSigned: false });
      const ofErased = lines.map((line) => JSON.parse(line)).filter(({ packet_id }) => packet_id === erased);
      assert.deepEqual(
        ofErased.map(({ type, salt, details }) => [type, salt === null, details]),
        [
          ['created', true, null],
          ['erased', false, {}],
        ],
      );

      const middle = Math.floor(entries / 2) + 1;
      for (const [what, wrong] of Object.entries({
        actor: changed(lines, middle, () => ({ actor: 'human:eve' })),
        details: changed(lines, middle, () => ({ details: { fields: ['hitl'] } })),
        time: changed(lines, middle, () => ({ timestamp: '2026-03-01T09:00:00.000Z' })),
        removed: lines.toSpliced(middle, 1),
        swapped: lines.toSpliced(middle, 2, lines[middle + 1]!, lines[middle]!),
        inserted: lines.toSpliced(middle, 0, lines[middle]!),
        'cut off at the end': lines.toSpliced(entries, 1),
        'without a head': lines.slice(0, -1),
        'the same salt in other letters': changed(lines, middle, ({ salt }) => ({ salt: String(salt).toUpperCase() })),
        'a salt without details': changed(lines, middle, () => ({ details: null })),
        'a member more': changed(lines, middle, () => ({ note: 'none' })),
        'a member that is missing': changed(lines, middle, () => ({ details: undefined, salt: undefined })),
        'another version': changed(lines, 0, ({ header }) => ({ header: { ...(header as object), version: 2 } })),
        'a header of another tenant': changed(lines, 0, ({ header }) => ({ header: { ...(header as object), tenant_id: 'other' } })),
        'a head of another time': changed(lines, entries + 1, ({ head }) => ({ head: { ...(head as object), at: null } })),
      })) {
        assert.equal(typeof checked(wrong), 'string', what);
      }
    });

    test('a head that was kept shows that the log before it is the same, and one of another log is refused [H600]', async () => {
      const service = await shareService(store);
      await createPacket(service);
      const { body: head } = await service.call('GET', '/audit/head');
      await createPacket(service);
      const lines = await exported(service);
      assert.equal(typeof checked(lines, { known: head }), 'object');
      assert.match(String(checked(lines, { known: { ...head, digest: '1'.repeat(64) } })), /is not that of the head that was kept/);
      assert.match(String(checked(lines, { known: { ...head, position: 10_000 } })), /There is no entry at position 10000/);
    });

    test('a range begins with the digest before it; a filter leaves entries out; CSV has no digests and no formulas [H601]', async () => {
      const service = await shareService(store);
      const { id } = await createPacket(service);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: '=cmd' } });
      const lines = await exported(service);
      const { position } = JSON.parse(lines.at(-1)!).head;
      const part = await exported(service, `?from=${position}&to=${position}`);
      assert.equal(part.length, 3);
      assert.equal(JSON.parse(part[0]!).header.previous, JSON.parse(part[1]!).previous);
      assert.deepEqual(checked(part), { entries: 1, from: position, to: position, isFiltered: false, isSigned: false });
      const claims = await exported(service, '?action=claimed');
      assert.deepEqual(
        claims.slice(1, -1).map((line) => JSON.parse(line).type),
        ['claimed'],
      );
      assert.equal((checked(claims) as { isFiltered: boolean }).isFiltered, true);
      const { text, headers } = await service.call('GET', '/audit/export?format=csv&action=claimed');
      assert.equal(headers['content-type'], 'text/csv; charset=utf-8');
      const [head, row] = text.trimEnd().split('\r\n');
      assert.equal(head, '\uFEFFtimestamp,action,resource,packet_id,actor,key_id,details,id');
      assert.match(row!, /,claimed,packet,[0-9a-f-]+,agent:=cmd,/);
      assert.equal((await service.call('GET', '/audit/export?from=3&to=2')).status, 400);
    });
  });
}

test('with a key the head is signed over its canonical JSON, and the public key can be read [H602]', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const service = await startService(t, { settings: { SERVICE_AUDIT_SIGNING_KEY: pem } });
  const { body } = await service.call('GET', '/audit/head');
  const { signature, key_id, ...head } = body;
  assert.ok(verify(null, Buffer.from(canonicalJson(head)), publicKey, Buffer.from(signature, 'base64')));
  const { body: known } = await service.call('GET', '/audit/keys');
  assert.deepEqual(known, { keys: [{ key_id, public_key: publicKey.export({ type: 'spki', format: 'pem' }) }] });
  const lines = await exported(service);
  const other = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString();
  assert.equal((checked(lines, { publicKey: known.keys[0]!.public_key }) as { isSigned: boolean }).isSigned, true);
  assert.equal(checked(lines, { publicKey: other }), 'The signature of the head is not by this key.');
});

for (const store of [onDisk, postgresql])
  test(`a check of a database finds changed, removed, inserted and swapped rows, and with a head rows cut off at the end, on ${store.name} [H610]`, async (t) => {
    const service = await startService(t, { store });
    for (let count = 0; count < 3; count += 1) {
      const { id } = await createPacket(service);
      await service.call('POST', `/packets/${id}/claim`, { body: { agent_id: 'a' } });
    }
    const { id: erased } = await createPacket(service);
    await service.call('POST', '/erasures', { body: { packet_ids: [erased], reason: 'Request' } });
    await service.handoff.runOnce.erase();
    const { body: head } = await service.call('GET', '/audit/head');
    const found = (known?: { position: number; digest: string }) =>
      withDatabase<Tables, unknown>(service.databaseUrl, (database) => verifyTrails(database, { known })).catch(
        (error: Error) => error.message,
      );
    assert.deepEqual(await found(head), { tenants: 1, entries: head.position });
    const columns = 'id, packet_id, event_type, actor, key_id, resource, details, timestamp, person, salt, details_digest, digest';
    const last = head.position;
    const faults: Record<string, [statements: string[], fault: RegExp]> = {
      actor: [["update events set actor = 'human:eve' where position = 3"], /position 3 was changed/],
      details: [[`update events set details = '{"a":1}' where position = 3`], /position 3 was changed: the digest of its details/],
      salt: [['update events set salt = null where position = 3'], /position 3 was changed/],
      'an erased entry': [
        ['update events set digest = details_digest where position = (select min(position) from events where salt is null)'],
        /was changed/,
      ],
      removed: [['delete from events where position = 3'], /position 4 follows position 2/],
      swapped: [
        [
          'update events set position = -1 where position = 3',
          'update events set position = 3 where position = 4',
          'update events set position = 4 where position = -1',
        ],
        /position 3/,
      ],
      inserted: [
        [`insert into events (tenant, position, ${columns}) select tenant, position + 1, ${columns} from events where position = ${last}`],
        /There is an entry at position \d+, after the head/,
      ],
      'inserted, with its head': [
        [
          `insert into events (tenant, position, ${columns}) select tenant, position + 1, ${columns} from events where position = ${last}`,
          'update heads set position = position + 1',
        ],
        /was changed/,
      ],
      'cut off at the end': [[`delete from events where position = ${last}`], /Entries are missing/],
      'the head': [['update heads set digest = at'], /The head is not the last entry/],
    };
    await looking(service.databaseUrl, async ({ query }) => {
      for (const table of ['events', 'heads']) await query(`create table saved_${table} as select * from ${table}`);
      const restore = async () => {
        for (const table of ['events', 'heads']) {
          await query(`delete from ${table}`);
          await query(`insert into ${table} select * from saved_${table}`);
        }
      };
      for (const [what, [statements, fault]] of Object.entries(faults)) {
        for (const statement of statements) await query(statement);
        assert.match(String(await found()), fault, what);
        await restore();
      }
      // With its head the chain is whole again: only a head that was kept shows what is missing.
      await query(`delete from events where position = ${last}`);
      await query(`update heads set position = ${last - 1}, digest = (select digest from events where position = ${last - 1})`);
      assert.deepEqual(await found(), { tenants: 1, entries: last - 1 });
      assert.match(String(await found(head)), new RegExp(`There is no entry at position ${last}`));
      await restore();
      for (const table of ['events', 'heads']) await query(`drop table saved_${table}`);
    });
    assert.deepEqual(await found(head), { tenants: 1, entries: last });
  });

test('heads that have moved are logged and sent to webhooks that name them, signed, once by all instances [H611]', async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const settings = { SERVICE_AUDIT_SIGNING_KEY: pem, SERVICE_AUDIT_ANCHOR_SECONDS: '60', SERVICE_WEBHOOK_ALLOW: '127.0.0.1' };
  const { start } = await openInstances(t);
  const [one, other] = [await start(settings), await start(settings)];
  const receiver = await startReceiver(t);
  await register(one, receiver.url, { events: ['audit.head'] });
  await register(one, receiver.url.replace('/hook', '/usual'));
  await createPacket(one);
  const round = async () => {
    await Promise.all([one.handoff.runOnce.anchor(), other.handoff.runOnce.anchor()]);
    one.clock.turn(1);
    await one.handoff.runOnce.deliver();
    return receiver.posts.filter(({ path }) => path === '/hook').map(({ body }) => JSON.parse(body));
  };
  const [first] = await round();
  const { body: head } = await one.call('GET', '/audit/head');
  assert.deepEqual([first.type, first.packet_id, first.data], ['audit.head', null, head]);
  const { signature, key_id: _, ...covered } = first.data;
  assert.ok(verify(null, Buffer.from(canonicalJson(covered)), publicKey, Buffer.from(signature, 'base64')));
  const logged = () => [...one.logs, ...other.logs].filter((line) => line.includes('"audit head"')).map((line) => JSON.parse(line));
  assert.deepEqual(
    logged().map(({ position, digest, signature: by }) => [position, digest, by]),
    [[head.position, head.digest, signature]],
  );
  assert.equal((await round()).length, 1);
  await createPacket(other);
  assert.equal((await round()).length, 2);
  assert.equal(logged().length, 2);
  assert.equal(receiver.posts.filter(({ path }) => path === '/usual').length, 2);
});

test('two instances that write to one tenant at once make one chain without a fork, also while they erase', async (t) => {
  const { url, start } = await openInstances(t);
  const instances = [await start(), await start()];
  const writers = 6;
  const person = { metadata: { ...createExample.metadata, subjects: ['customer:4711'] } };
  const write = async ({ call }: TestService, number: number) => {
    for (let round = 0; round < 4; round += 1) {
      const { status, body } = await call('POST', '/packets', { body: packetRequest(number % 2 === 0 ? person : {}) });
      assert.equal(status, 201);
      // An erasure may have been faster.
      const claimed = await call('POST', `/packets/${body.id}/claim`, { body: claimant });
      assert.ok([200, 410].includes(claimed.status), claimed.text);
    }
  };
  const erase = async ({ call, handoff }: TestService) => {
    const asked = await call('POST', '/erasures', { body: { subject: 'customer:4711', reason: 'Request' } });
    assert.equal(asked.status, 202);
    await handoff.runOnce.erase();
  };
  await Promise.all(
    instances.flatMap((instance) => [...Array.from({ length: writers }, (_, number) => write(instance, number)), erase(instance)]),
  );
  const [one, other] = instances as [TestService, TestService];
  await one.handoff.runOnce.erase();
  const [{ body: head }, { body: same }] = [await one.call('GET', '/audit/head'), await other.call('GET', '/audit/head')];
  assert.deepEqual(same, head);
  assert.deepEqual(await withDatabase<Tables, unknown>(url, (database) => verifyTrails(database, { known: head })), {
    tenants: 1,
    entries: head.position,
  });
  const { body: created } = await one.call('GET', '/audit?action=created&limit=1');
  assert.ok(created.total >= 2 * writers * 4);
  await assertSound(url);
});
