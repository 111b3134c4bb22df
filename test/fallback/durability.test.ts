import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';

import { openEmptyDatabase } from '../support/databases.ts';
import { chainRequest, createChain, startFallback } from '../support/fallback.ts';
import { databaseInMemory } from '../support/faults.ts';
import { temporaryFolder } from '../support/folder.ts';
import { fallbackRefusal, startFallbackProcess, type TestProcess } from '../support/process.ts';
import { answering, startProvider } from '../support/providers.ts';
import { createPacket, startService } from '../support/service.ts';
import { storesOfSeveral } from '../support/stores.ts';

/** Enough concurrent callers that some requests are in progress when the process ends. */
const callers = 8;
/** How many writes are answered before the process is ended during the next ones. */
const answersARound = 60;
/** How many prompts the provider answers before it hangs. Prompts are stored in batches of a hundred, or after two seconds. */
const promptsAnswered = 120;
const promptsKept = promptsAnswered - 99;

/** Many callers create, change and delete chains until the process ends. */
async function loadAndEnd(program: TestProcess, how: 'kill' | 'stop', known: Map<string, string | undefined>, unsure: Set<string>) {
  let answered = 0;
  let ended: Promise<unknown> | undefined;
  const note = (id: string, text: string | undefined) => {
    known.set(id, text);
    unsure.delete(id);
    answered += 1;
    if (answered >= answersARound) ended ??= program[how]();
  };
  const work = async (caller: number) => {
    for (let turn = 0; ; turn += 1) {
      const created = await program.call('POST', '/chains', { body: chainRequest({ name: `${caller}-${turn}` }) });
      assert.equal(created.status, 201, created.text);
      const { id } = created.body;
      note(id, created.text);
      // Until the answer arrives it is unknown which of the two is stored.
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
  // `fetch` rejects when the connection breaks; any other failure is an error of the test.
  const ends = await Promise.allSettled(Array.from({ length: callers }, (_, caller) => work(caller)));
  for (const end of ends) if (end.status === 'rejected' && !(end.reason instanceof TypeError)) throw end.reason;
  return ended;
}

/** Checks that acknowledged writes are found unchanged. */
async function requireKept(program: TestProcess, known: Map<string, string | undefined>, unsure: ReadonlySet<string>): Promise<void> {
  for (const [id, text] of known) {
    const { status, text: found } = await program.call('GET', `/chains/${id}`);
    // Requests in progress at the end were applied completely or not at all.
    if (unsure.has(id)) known.set(id, status === 200 ? found : undefined);
    else assert.deepEqual([status, status === 200 ? found : undefined], text === undefined ? [404, undefined] : [200, text]);
  }
  assert.ok(known.size >= answersARound / 3);
}

/** Starts a test whose provider answers some prompts and then hangs; returns the result's id once these are stored. */
async function startLongTest(t: TestContext, program: TestProcess): Promise<string> {
  const hanging = Promise.withResolvers<void>();
  let hung = 0;
  const provider = await startProvider(t, ...Array.from({ length: promptsAnswered }, () => answering()), () => {
    hung += 1;
    // Each of the four workers stores its due prompts before its next call.
    if (hung === 4) hanging.resolve();
  });
  const providers = [{ name: 'a', model_id: 'm', api_base: provider.base, timeout_ms: 300_000 }];
  const chain = await program.call('POST', '/chains', { body: { name: 'long', providers } });
  const started = await program.call('POST', `/chains/${chain.body.id}/test`, {
    body: { mode: 'live', prompt_count: 1000 },
    headers: { prefer: 'respond-async' },
  });
  assert.equal(started.status, 202, started.text);
  await hanging.promise;
  return started.body.id;
}

for (const store of storesOfSeveral) {
  test(`neither kill -9 nor a stop under load loses acknowledged writes, on ${store.name} [F51, F82, F94]`, {
    timeout: 120_000,
  }, async (t) => {
    const { url, drop } = await store.open();
    const start = async () => {
      const started = await startFallbackProcess({
        storage: url,
        flags: ['--allow-live'],
        settings: { SERVICE_LIVE_ALLOW: '127.0.0.1' },
      });
      t.after(() => started.kill());
      return started;
    };
    let program = await start();
    const testId = await startLongTest(t, program);
    const known = new Map<string, string | undefined>();
    for (const how of ['kill', 'stop'] as const) {
      const unsure = new Set<string>();
      const ended = await loadAndEnd(program, how, known, unsure);
      if (how === 'stop') assert.equal(ended, 0);
      program = await start();
      await requireKept(program, known, unsure);
    }
    const { body: result } = await program.call('GET', `/test-results/${testId}`);
    // If other instances may share the database, the test ends when the lease of the killed instance expires.
    const [status, error] =
      store.name === 'PostgreSQL' ? ['running', null] : ['cancelled', 'The service stopped while the test was running.'];
    assert.deepEqual([result.status, result.error], [status, error]);
    assert.ok(result.results.length >= promptsKept && result.results.length <= promptsAnswered);
    assert.equal(result.progress.done, result.results.length);
    assert.equal(await program.stop(), 0);
    await drop();
  });
}

test('on a full disk a write is a clear 503, nothing is partly written, and reads continue [F94]', { timeout: 60_000 }, async (t) => {
  const folder = temporaryFolder(t);
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

test('while a SQLite file is read-only a write is a clear 503, reads continue, and later writes succeed', async (t) => {
  const service = await startFallback(t);
  const { id } = await createChain(service);
  // SQLite refuses writes with the same code as for a file on a file system that is mounted read-only.
  const database = databaseInMemory();
  database.exec('pragma query_only = on');
  for (const [method, path, body] of [
    ['POST', '/chains', chainRequest()],
    ['PATCH', `/chains/${id}`, { description: 'changed' }],
    ['DELETE', `/chains/${id}`, undefined],
    ['POST', `/chains/${id}/test`, { prompt_count: 5 }],
  ] as const) {
    const refusal = await service.call(method, path, body === undefined ? {} : { body });
    assert.deepEqual([path, refusal.status, refusal.body?.code], [path, 503, 'SERVICE_UNAVAILABLE']);
    assert.doesNotMatch(refusal.text, /sqlite|readonly|insert/i);
  }
  assert.equal((await service.call('GET', `/chains/${id}`)).status, 200);
  database.exec('pragma query_only = off');
  assert.equal((await service.call('PATCH', `/chains/${id}`, { body: { description: 'changed' } })).status, 200);
});

describe('A start is refused with one clear line', { concurrency: true }, () => {
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
      'for a database file that may not be written',
      (folder) => ['--storage', `sqlite://${folder}/read-only.db`],
      /^fallback: The service could not start: The database file \S+read-only\.db can't be written: /,
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
      /^fallback: No API key is configured, and other machines can reach --host 0\.0\.0\.0/,
    ],
  ];
  for (const [what, args, sentence] of cases) {
    test(what, async (t) => {
      const folder = temporaryFolder(t);
      writeFileSync(join(folder, 'none.db'), 'This is a text, and by no means a database. '.repeat(50));
      mkdirSync(join(folder, 'folder.db'));
      writeFileSync(join(folder, 'read-only.db'), '');
      chmodSync(join(folder, 'read-only.db'), 0o444);
      const { code, errors } = await fallbackRefusal(args(folder));
      assert.equal(code, 1);
      assert.equal(errors.length, 1, errors.join('\n'));
      assert.match(errors[0]!, sentence);
      assert.match(readFileSync(join(folder, 'none.db'), 'utf8'), /^This is a text/);
    });
  }
});

describe('Both services in one PostgreSQL', () => {
  test('keep their data separate, started in either order, and each can start again while the other runs [F84]', async () => {
    for (const first of ['handoff', 'fallback'] as const) {
      const { url, drop } = await openEmptyDatabase();
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
