import assert from 'node:assert/strict';
import { generateKeyPairSync, verify } from 'node:crypto';
import { describe, test } from 'node:test';
import { canonicalJson } from '../../../src/handoff/rules/canonical-json.ts';
import { ChainCheck } from '../../../src/handoff/rules/chain-check.ts';
import { createPacket, startService, type TestService } from '../../support/service.ts';
import { shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

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
    test('an export holds, also after a hard delete, and each changed, removed, inserted or swapped entry is found [H600]', async () => {
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
