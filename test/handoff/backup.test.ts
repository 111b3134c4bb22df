import assert from 'node:assert/strict';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { refused } from '../support/cli.ts';
import { runCliProgram } from '../support/cli-program.ts';
import { assertSound } from '../support/consistency.ts';
import { temporaryFolder } from '../support/folder.ts';
import { startProcess } from '../support/process.ts';
import { adminKey, packetRequest, startService } from '../support/service.ts';

const backUp = (databaseUrl: string, file: string) =>
  runCliProgram(['backup', file], { environment: { SERVICE_DATABASE_URL: databaseUrl } });

describe('service-cli backup', () => {
  test('copies the database of a service under load; a service started from the copy has everything answered before', async (t) => {
    const folder = temporaryFolder(t);
    const databaseUrl = `sqlite://${join(folder, 'handoff.db')}`;
    const program = await startProcess({ databaseUrl });
    t.after(() => program.kill());
    const answered: string[] = [];
    let ended = false;
    const caller = async () => {
      while (!ended) {
        const { status, body } = await program.call('POST', '/packets', { body: packetRequest() });
        assert.equal(status, 201);
        answered.push(body.id);
      }
    };
    const callers = Array.from({ length: 4 }, caller);
    const before = await program.call('POST', '/packets', { body: packetRequest({ context: { summary: 'the walrus was here' } }) });
    assert.equal(before.status, 201);
    const copy = join(folder, 'copy.db');
    const { exitCode, stdout, stderr } = await backUp(databaseUrl, copy);
    ended = true;
    await Promise.all(callers);
    assert.equal(exitCode, 0, stderr);
    assert.equal(stdout, '');
    assert.equal(stderr, `Copied the database to ${copy}: ${statSync(copy).size} bytes.\n`);
    assert.equal(statSync(copy).mode & 0o777, 0o600);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('copy')),
      ['copy.db'],
    );

    await assertSound(`sqlite://${copy}`);
    const restored = await startService(t, { databaseUrl: `sqlite://${copy}` });
    assert.deepEqual(restored.handoff.warnings, []);
    assert.equal((await restored.call('GET', `/packets/${before.body.id}`, { key: adminKey })).text, before.text);
    const found = await restored.call('GET', '/packets/search?q=walrus');
    assert.deepEqual([found.status, found.body.total], [200, 1]);
    const { status, body } = await restored.call('POST', '/packets', { body: packetRequest() });
    assert.equal(status, 201);
    assert.ok(!answered.includes(body.id));
  });

  test('refuses to overwrite a file, and what is not a SQLite database on disk', async (t) => {
    const folder = temporaryFolder(t);
    const databaseUrl = `sqlite://${join(folder, 'handoff.db')}`;
    await (await startProcess({ databaseUrl })).stop();
    const taken = join(folder, 'taken.db');
    writeFileSync(taken, 'mine');
    writeFileSync(join(folder, 'begun.db.partial'), 'mine');
    writeFileSync(join(folder, 'text.db'), 'This is not a database. '.repeat(100));
    const free = join(folder, 'free.db');
    for (const [url, file, sentence] of [
      [databaseUrl, taken, /^service-cli: .*taken\.db exists, and is not overwritten\.$/m],
      [databaseUrl, join(folder, 'begun.db'), /^service-cli: .*begun\.db\.partial exists: another process is writing it/m],
      [databaseUrl, join(folder, 'missing', 'copy.db'), /^service-cli: .*copy\.db can't be created \(ENOENT\)\.$/m],
      [`sqlite://${join(folder, 'none.db')}`, free, /^service-cli: There is no database file .*none\.db\.$/m],
      [
        `sqlite://${join(folder, 'text.db')}`,
        free,
        /^service-cli: The database file .*text\.db can't be copied: file is not a database\.$/m,
      ],
      ['sqlite::memory:', free, /^service-cli: A database in memory belongs to the process that opened it\.$/m],
      ['postgres://user:secret@127.0.0.1:1/handoff', free, /^service-cli: .*pg_dump --format=custom --file=.*free\.db/m],
    ] as const) {
      const result = await backUp(url, file);
      refused(result, 1, sentence);
      assert.doesNotMatch(result.stderr, /secret/);
    }
    assert.equal(existsSync(free), false);
    assert.equal(existsSync(join(folder, 'none.db')), false);
    assert.equal(statSync(taken).size, 4);
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.endsWith('.partial')),
      ['begun.db.partial'],
    );
  });
});
