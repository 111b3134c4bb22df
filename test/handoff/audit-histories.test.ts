import assert from 'node:assert/strict';
import { generateKeyPairSync, hash } from 'node:crypto';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';

import { maintain } from '../../src/handoff/maintenance.ts';
import { createExample } from '../../src/handoff/model/examples.ts';
import { canonicalJson } from '../../src/handoff/rules/canonical-json.ts';
import { ChainCheck, type KnownHead } from '../../src/handoff/rules/chain-check.ts';
import type { Tables } from '../../src/handoff/store/tables.ts';
import { verifyTrails } from '../../src/handoff/store/verify.ts';
import { withDatabase } from '../../src/kit/sql/database.ts';
import { assertSound, type Inspector, looking, type Row } from '../support/consistency.ts';
import { injectFault } from '../support/faults.ts';
import { temporaryFolder } from '../support/folder.ts';
import { claimant, question } from '../support/life.ts';
import { newTenant, packetRequest, startService, TestClock, type TestService } from '../support/service.ts';
import type { TestStore } from '../support/store.ts';
import { storesOfSeveral } from '../support/stores.ts';

/** Nothing listens on port 1. */
const unreachable = 'http://127.0.0.1:1/hook';

const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
const settings = {
  SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
  SERVICE_AUDIT_SIGNING_KEY: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
};

/** A service that ends when it is told to, and at the latest with the test. */
class Deployment {
  readonly url: string;
  readonly clock: TestClock;
  service!: TestService;
  #stop: () => Promise<void> = async () => undefined;

  private constructor(url: string, clock: TestClock) {
    this.url = url;
    this.clock = clock;
  }

  static async open(t: TestContext, store: TestStore, clock = new TestClock()): Promise<Deployment> {
    const { url, drop } = await store.open('handoff');
    const deployment = new Deployment(url, clock);
    t.after(async () => {
      await deployment.stop();
      await drop();
    });
    await deployment.start();
    return deployment;
  }

  async start(): Promise<void> {
    const after = (stop: unknown) => {
      this.#stop = stop as () => Promise<void>;
    };
    this.service = await startService({ after }, { databaseUrl: this.url, clock: this.clock, settings });
  }

  stop(): Promise<void> {
    const stop = this.#stop;
    this.#stop = async () => undefined;
    return stop();
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.start();
  }
}

const about = (subject: string) => packetRequest({ metadata: { ...createExample.metadata, subjects: [subject] } });

for (const store of storesOfSeveral)
  test(`an erasure that ends in the middle goes on after a restart, with the receipt of one that did not, on ${store.name}`, async (t) => {
    const deployment = await Deployment.open(t, store);
    const call: TestService['call'] = (...given) => deployment.service.call(...given);
    const hook = await call('POST', '/hooks', { body: { url: unreachable, secret: 'a-secret-for-tests-0123456789' } });
    assert.equal(hook.status, 201, hook.text);
    const subjects = ['customer:whole', 'customer:halved'];
    for (const subject of subjects) {
      // Three steps of an erasure.
      for (const half of [25, 20]) {
        const packets = Array.from({ length: half }, () => about(subject));
        assert.equal((await call('POST', '/packets/batch', { body: { packets } })).status, 201);
      }
    }
    // As if all had been sent.
    await looking(deployment.url, ({ query }) => query('update deliveries set attempts = 1'));
    const ask = async (subject: string) => (await call('POST', '/erasures', { body: { subject, reason: 'Request' } })).body.id;
    const receiptOf = async (id: string) => (await call('GET', `/erasures/${id}`)).body;
    const whole = await ask(subjects[0]!);
    await deployment.service.handoff.runOnce.erase();

    const halved = await ask(subjects[1]!);
    const fault = injectFault(2, { matching: (sql) => /^update "?erasures/i.test(sql), kind: 'unavailable' });
    try {
      await assert.rejects(deployment.service.handoff.runOnce.erase());
    } finally {
      fault.remove();
    }
    const { status, stores } = await receiptOf(halved);
    assert.deepEqual([status, stores], ['running', undefined]);
    const left = async () => (await call('GET', `/packets?subject=${subjects[1]}`)).body.total;
    assert.equal(await left(), 25);
    await deployment.restart();
    assert.equal(await left(), 25);
    await deployment.service.handoff.runOnce.erase();
    assert.equal(await left(), 0);

    const [expected, receipt] = [await receiptOf(whole), await receiptOf(halved)];
    assert.deepEqual([receipt.status, receipt.packets, receipt.stores.packets.count], ['done', 45, 45]);
    assert.deepEqual(receipt.stores, expected.stores);
    assert.deepEqual(receipt.delivered, expected.delivered);
    assert.deepEqual(
      receipt.delivered.map(({ id, count }: { id: string; count: number }) => [id, count]),
      [[hook.body.id, 45]],
    );
    const { body: log } = await call('GET', '/audit?action=erased&limit=200');
    const entries = log.entries.filter(({ details }: { details: { erasure_id: string } }) => details.erasure_id === halved);
    assert.equal(entries.length, 46);
    assert.equal(
      entries.find(({ resource }: { resource: string }) => resource === 'erasure').details.receipt_digest,
      hash('sha256', canonicalJson(receipt)),
    );
    await assertSound(deployment.url);
  });

/** What a history is made of; `at` selects the packet. */
const act = fc.record({
  kind: fc.constantFrom('create', 'create', 'claim', 'ask', 'answer', 'end', 'erase one', 'erase a person', 'hide', 'retain'),
  at: fc.nat(50),
});
type Act = typeof act extends fc.Arbitrary<infer Value> ? Value : never;

/** A bit of a stored value or of a byte. */
const flip = fc.record({ row: fc.nat(), column: fc.nat(), place: fc.nat(), bit: fc.nat(7) });

const personAt = (at: number): string => `customer:${at % 2}`;

/** A tenant whose history is made at random. */
class History {
  readonly ids: string[] = [];
  /** The heads that were kept elsewhere. */
  readonly heads: KnownHead[] = [];
  deployment: Deployment;
  readonly tenant: string;
  readonly #key: string;

  constructor(deployment: Deployment, tenant: string, key: string) {
    this.deployment = deployment;
    this.tenant = tenant;
    this.#key = key;
  }

  static async begin(deployment: Deployment): Promise<History> {
    const { id } = await newTenant(deployment.service);
    await deployment.service.call('PATCH', `/tenants/${id}`, { body: { retention_days: 1 } });
    const scopes = ['read', 'work', 'respond', 'manage', 'erase'];
    const { body } = await deployment.service.call('POST', '/keys', { body: { name: 'all', tenant_id: id, scopes } });
    return new History(deployment, id, body.key);
  }

  call: TestService['call'] = (method, path, options) => this.deployment.service.call(method, path, { key: this.#key, ...options });

  async take(acts: readonly Act[]): Promise<void> {
    for (const one of acts) {
      const answer = await this.#take(one);
      // What a packet in this status refuses is part of a history.
      if (answer !== undefined) assert.ok(answer.status < 500, answer.text);
    }
    this.heads.push((await this.call('GET', '/audit/head')).body);
  }

  async #take({ kind, at }: Act) {
    const id = this.ids[at % Math.max(this.ids.length, 1)] ?? 'none';
    const erasing = async (body: object) => {
      const asked = await this.call('POST', '/erasures', { body: { ...body, reason: 'Request' } });
      // Some are still open when the service stops.
      if (at % 3 > 0) await this.deployment.service.handoff.runOnce.erase();
      return asked;
    };
    switch (kind) {
      case 'create': {
        const made = await this.call('POST', '/packets', { body: about(personAt(at)) });
        this.ids.push(made.body.id);
        return made;
      }
      case 'claim':
        return this.call('POST', `/packets/${id}/claim`, { body: { ...claimant, agent_name: 'wörker \u2028"\\' } });
      case 'ask':
        return this.call('POST', `/packets/${id}/questions`, { body: question });
      case 'answer':
        return this.call('POST', `/packets/${id}/respond`, { body: { response: 'Yes', responded_by: 'dana' } });
      case 'end':
        return this.call('PATCH', `/packets/${id}`, { body: { status: 'completed' } });
      case 'erase one':
        return erasing({ packet_ids: [id] });
      case 'erase a person':
        return erasing({ subject: personAt(at) });
      case 'hide':
        return this.call('DELETE', `/packets/${id}?hard=true`);
      case 'retain':
        this.deployment.clock.turn(2 * 86_400);
        await this.deployment.service.handoff.runOnce.erase();
        return undefined;
    }
  }

  /** Moves the tenant to another deployment, which has tenants of its own. */
  async move(t: TestContext, to: TestStore): Promise<void> {
    const next = await Deployment.open(t, to, this.deployment.clock);
    const file = join(temporaryFolder(t), 'tenant.jsonl');
    await this.deployment.stop();
    await next.stop();
    const sourceOf = (url: string) => ({ environment: { SERVICE_DATABASE_URL: url }, config: undefined, tenant: this.tenant });
    await maintain('export', file, sourceOf(this.deployment.url), () => undefined);
    await maintain('import', file, { ...sourceOf(next.url), tenant: undefined }, () => undefined);
    await next.start();
    this.deployment = next;
  }

  /** Verifies the chain with all heads that were kept; returns how many entries it has. */
  verify(): Promise<number> {
    return withDatabase<Tables, number>(this.deployment.url, async (database) => {
      const checks = this.heads.map((known) => verifyTrails(database, { tenant: this.tenant, known }));
      const [first] = await Promise.all(checks);
      return first!.entries;
    });
  }
}

type Flip = typeof flip extends fc.Arbitrary<infer Value> ? Value : never;

const numbers = ['position'];
const ofEvents = [
  ...['position', 'id', 'packet_id', 'event_type', 'actor', 'key_id', 'resource', 'details', 'timestamp', 'person'],
  ...['salt', 'details_digest', 'digest'],
];
const ofHeads = ['position', 'digest', 'at'];

/** The value with a flipped bit, which a database stores as a text. A bit of a number is above those of the positions of a test. */
function flipped(value: string | number, column: string, { place, bit }: Flip): string | number {
  if (numbers.includes(column)) return Number(value) ^ (1 << (10 + bit));
  const text = String(value);
  const index = place % text.length;
  // The bits that make a control character are those of another one.
  for (let other = bit % 6; ; other = (other + 1) % 7) {
    const code = text.charCodeAt(index) ^ (1 << other);
    if (code >= 0x20 && code !== 0x7f) return text.slice(0, index) + String.fromCharCode(code) + text.slice(index + 1);
  }
}

const literal = (value: string | number): string => (typeof value === 'number' ? String(value) : `'${value.replaceAll("'", "''")}'`);

/** Flips bits of what the database keeps of the tenant's chain, one after another, and asserts that each one is found. */
async function findEachIn(history: History, flips: readonly Flip[]): Promise<void> {
  const { url } = history.deployment;
  await looking(url, async ({ query }: Inspector) => {
    const [{ number }] = (await query(`select number from tenants where id = '${history.tenant}'`)) as [Row];
    for (const one of flips) {
      const isHead = one.row % 10 === 0;
      const [table, columns] = isHead ? ['heads', ofHeads] : ['events', ofEvents];
      const rows = await query(`select ${columns.join(', ')} from ${table} where tenant = ${number} order by position`);
      const row = rows[one.row % rows.length]!;
      const stored = columns.filter((name) => row[name] !== null);
      const column = stored[one.column % stored.length]!;
      const value = flipped(row[column], column, one);
      const update = (from: number, to: string | number) =>
        query(`update ${table} set ${column} = ${literal(to)} where tenant = ${number} and position = ${from}`);
      await update(row.position, value);
      await assert.rejects(history.verify(), `${table}.${column}: ${row[column]} as ${value}`);
      await update(column === 'position' ? Number(value) : row.position, row[column]!);
    }
  });
}

/** What a check of an exported file says: its lines, or undefined if it does not hold. */
function linesOf(file: Buffer): unknown[] | undefined {
  const check = new ChainCheck({ publicKey: publicPem });
  try {
    const lines = file.toString('utf8').trimEnd().split('\n');
    const parsed = lines.map((line) => JSON.parse(line));
    for (const line of parsed) check.take(line);
    check.summary();
    return parsed;
  } catch {
    return undefined;
  }
}

test('random histories with erasures, moves and restarts hold, and one flipped bit anywhere in what is kept is found [H612]', async (t) => {
  const acts = fc.array(act, { minLength: 12, maxLength: 12 });
  const flips = fc.array(flip, { minLength: 25, maxLength: 25 });
  let run = 0;
  await fc.assert(
    fc.asyncProperty(acts, acts, acts, flips, async (first, second, third, chosen) => {
      const [from, to] =
        run % 2 === 0 ? [storesOfSeveral.at(0)!, storesOfSeveral.at(-1)!] : [storesOfSeveral.at(-1)!, storesOfSeveral.at(0)!];
      run += 1;
      const history = await History.begin(await Deployment.open(t, from));
      await history.take(first);
      await history.deployment.restart();
      await history.take(second);
      await history.move(t, to);
      await history.take(third);
      assert.ok((await history.verify()) > 12);
      await assertSound(history.deployment.url);
      await findEachIn(history, chosen);
      assert.ok((await history.verify()) > 12);

      const file = Buffer.from((await history.call('GET', '/audit/export')).text);
      const whole = linesOf(file);
      assert.ok(whole);
      for (const { row, bit } of chosen) {
        const place = row % file.length;
        const changed = Buffer.from(file);
        changed[place]! ^= 1 << bit;
        const lines = linesOf(changed);
        // Two spellings of one escaped character say the same.
        if (lines !== undefined) assert.deepEqual(lines, whole, `byte ${place}, bit ${bit}: ${file.subarray(place - 20, place + 20)}`);
      }
      await history.deployment.stop();
    }),
    { numRuns: 2, seed: 63, endOnFailure: true },
  );
});
