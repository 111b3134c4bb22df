import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';

import { chainRequest, createChain, startFallback } from '../support/fallback.ts';
import { fallbackRefusal, startFallbackProcess, type TestProcess } from '../support/process.ts';
import { createPacket, startService } from '../support/service.ts';
import { openPostgresDatabase, stores } from '../support/stores.ts';

const rounds = 2;
const callers = 8;
/** How many writes are answered before the program is killed in the middle of the next ones. */
const answersARound = 60;

function newFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-fallback-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Many callers create, change and delete chains, until the program is killed under their hands. */
async function loadAndKill(program: TestProcess, known: Map<string, string | undefined>, unsure: Set<string>): Promise<void> {
  let answered = 0;
  let killed: Promise<void> | undefined;
  const note = (id: string, text: string | undefined) => {
    known.set(id, text);
    unsure.delete(id);
    answered += 1;
    if (answered >= answersARound) killed ??= program.kill();
  };
  const work = async (caller: number) => {
    for (let turn = 0; ; turn += 1) {
      const created = await program.call('POST', '/chains', { body: chainRequest({ name: `${caller}-${turn}` }) });
      assert.equal(created.status, 201, created.text);
      const { id } = created.body;
      note(id, created.text);
      // From here until it is answered nobody knows which of the two is kept.
      unsure.add(id);
      const changed = await program.call('PATCH', `/chains/${id}`, { body: { description: `turn ${turn}` } });
      assert.equal(changed.status, 200, changed.text);
      note(id, changed.text);
      if (turn % 3 !== 0) continue;
      unsure.add(id);
      assert.equal((await program.call('DELETE', `/chains/${id}`)).status, 204);
      note(id, undefined);
    }
  };
  // `fetch` rejects when the connection breaks; any other failure is the test's.
  const ends = await Promise.allSettled(Array.from({ length: callers }, (_, caller) => work(caller)));
  for (const end of ends) if (end.status === 'rejected' && !(end.reason instanceof TypeError)) throw end.reason;
  await killed;
}

for (const store of stores.filter(({ name }) => name !== 'SQLite in memory')) {
  test(`kill -9 under load loses no chain, change or deletion that was answered, on ${store.name}`, { timeout: 120_000 }, async (t) => {
    const { url, drop } = await store.open();
    t.after(drop);
    const known = new Map<string, string | undefined>();
    for (let round = 0; round < rounds; round += 1) {
      const program = await startFallbackProcess({ storage: url });
      const unsure = new Set<string>();
      await loadAndKill(program, known, unsure);
      const again = await startFallbackProcess({ storage: url });
      for (const [id, text] of known) {
        const { status, text: found } = await again.call('GET', `/chains/${id}`);
        // What was in hand when it was killed is whole: as it was before, or as it was to be.
        if (unsure.has(id)) known.set(id, status === 200 ? found : undefined);
        else assert.deepEqual([status, status === 200 ? found : undefined], text === undefined ? [404, undefined] : [200, text]);
      }
      assert.ok(known.size >= answersARound / 3);
      assert.equal(await again.stop(), 0);
    }
  });

  test(`a clean stop and a new start lose nothing, on ${store.name}`, async (t) => {
    const { url, drop } = await store.open();
    t.after(drop);
    const first = await startFallbackProcess({ storage: url });
    const { text, body } = await first.call('POST', '/chains', { body: chainRequest() });
    assert.equal(await first.stop(), 0);
    const second = await startFallbackProcess({ storage: url });
    assert.equal((await second.call('GET', `/chains/${body.id}`)).text, text);
    assert.equal(await second.stop(), 0);
  });
}

test('on a full disk a write is a clear 503, nothing is half written, and reads go on', { timeout: 60_000 }, async (t) => {
  const folder = newFolder(t);
  const storage = `sqlite://${folder}/full.db`;
  const full = await startFallbackProcess({ storage, fileLimitKib: 512 });
  t.after(() => full.kill());
  const metadata = { filler: 'x'.repeat(60_000) };
  const kept: string[] = [];
  let refusal: { status: number; body: { code: string; detail: string } } | undefined;
  for (let turn = 0; turn < 40 && refusal === undefined; turn += 1) {
    const answer = await full.call('POST', '/chains', { body: chainRequest({ metadata }) });
    if (answer.status === 201) kept.push(answer.body.id);
    else refusal = answer;
  }
  assert.deepEqual([refusal?.status, refusal?.body.code], [503, 'SERVICE_UNAVAILABLE']);
  assert.doesNotMatch(refusal!.body.detail, /sqlite|disk I\/O|insert/i);
  assert.ok(kept.length > 0);
  assert.equal((await full.call('GET', '/chains')).headers['x-total-count'], String(kept.length));
  await full.kill();
  const roomy = await startFallbackProcess({ storage });
  t.after(() => roomy.kill());
  assert.deepEqual(
    (await roomy.call('GET', '/chains')).body.map(({ id }: { id: string }) => id),
    kept,
  );
  assert.equal((await roomy.call('POST', '/chains', { body: chainRequest({ metadata }) })).status, 201);
});

describe('A start is refused with one clear line', () => {
  const cases: [what: string, args: (folder: string) => readonly string[], sentence: RegExp][] = [
    [
      'for a database file that is none',
      (folder) => ['--storage', `sqlite://${folder}/none.db`],
      /^fallback: The service could not start: The database file \S+none\.db can't be used: file is not a database\.$/,
    ],
    [
      'for a folder in place of the file',
      (folder) => ['--storage', `sqlite://${folder}/folder.db`],
      /^fallback: The service could not start: The database file \S+folder\.db can't be used: unable to open database file\.$/,
    ],
    [
      'for a misspelt rate limit',
      () => ['--rate-limit', '100/minuet'],
      /^fallback: --rate-limit must be a count of 1 or more and a period .*not "100\/minuet"$/,
    ],
    [
      'for a settings file that is not there',
      (folder) => ['--config', `${folder}/no.toml`],
      /^fallback: The settings file \S+no\.toml could not be read: /,
    ],
    [
      'for an open service beyond this machine',
      () => ['--host', '0.0.0.0'],
      /^fallback: No API key is configured, and --host 0\.0\.0\.0 is reached by others/,
    ],
  ];
  for (const [what, args, sentence] of cases) {
    test(what, async (t) => {
      const folder = newFolder(t);
      writeFileSync(join(folder, 'none.db'), 'This is a text, and by no means a database. '.repeat(50));
      mkdirSync(join(folder, 'folder.db'));
      const { code, errors } = await fallbackRefusal(args(folder));
      assert.equal(code, 1);
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0]!, sentence);
      assert.match(readFileSync(join(folder, 'none.db'), 'utf8'), /^This is a text/);
    });
  }
});

describe('Both services in one PostgreSQL', () => {
  test('keep their data apart, whichever comes first, and start anew beside one another', async () => {
    for (const first of ['handoff', 'fallback'] as const) {
      const { url, drop } = await openPostgresDatabase();
      const started: (() => Promise<void>)[] = [];
      const mine = { after: (stop: () => Promise<void>) => void started.push(stop) } as unknown as Pick<TestContext, 'after'>;
      const start = { handoff: () => startService(mine, { databaseUrl: url }), fallback: () => startFallback(mine, { storage: url }) };
      if (first === 'handoff') await start.handoff();
      const fallback = await start.fallback();
      const handoff = await start.handoff();
      const packet = await createPacket(handoff);
      const chain = await createChain(fallback);
      const again = await start.fallback();
      assert.equal((await again.call('GET', `/chains/${chain.id}`)).status, 200);
      assert.equal((await (await start.handoff()).call('GET', `/packets/${packet.id}`)).status, 200);
      for (const stop of started) await stop();
      await drop();
    }
  });
});
