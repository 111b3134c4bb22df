import assert from 'node:assert/strict';
import { chownSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import pg from 'pg';
import { freePort } from '../../src/kit/free-port.ts';
import { assertSound } from '../support/consistency.ts';
import { answersTo, continues, fill, fillSettings } from '../support/filled.ts';
import { temporaryFolder } from '../support/folder.ts';
import { runProgram, startProgram } from '../support/program.ts';
import { debianPostgres } from '../support/programs.ts';
import { createPacket, startService } from '../support/service.ts';

/** PostgreSQL refuses to run as root, which runs it as the user of Debian's package. */
const asPostgres = process.getuid?.() === 0 ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : [];

/** The owner of what PostgreSQL stores: that user, or this one. */
async function ownerId(): Promise<number> {
  return asPostgres.length === 0 ? process.getuid!() : Number((await runProgram(['id', '-u', 'postgres'])).stdout);
}

async function must(...command: string[]): Promise<void> {
  const { exitCode, stderr } = await runProgram(command, { cwd: tmpdir() });
  assert.equal(exitCode, 0, stderr);
}

/** Starts Debian's PostgreSQL, whose `pg_dump` has its version; resolves with its address. */
async function startDebian(t: TestContext, bin: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'baton-dump-'));
  chownSync(folder, await ownerId(), -1);
  const [data, port] = [join(folder, 'data'), String(await freePort())];
  const run = [...asPostgres, join(bin, 'initdb'), '--username=baton', '--auth=trust', '--encoding=UTF8', '--locale=C'];
  await must(...run, `--pgdata=${data}`);
  const flags = ['-D', data, '-p', port, '-k', folder, '-c', 'listen_addresses=127.0.0.1', '-c', 'fsync=off'];
  const server = startProgram([...asPostgres, join(bin, 'postgres'), ...flags], { cwd: folder });
  t.after(async () => {
    server.child.kill('SIGINT');
    await server.ended;
    rmSync(folder, { recursive: true, force: true });
  });
  await server.logged(/ready to accept connections/);
  return `postgres://baton@127.0.0.1:${port}`;
}

describe('A dump of pg_dump', { skip: debianPostgres === undefined }, () => {
  test('taken under load and restored is a database from which a service continues, with everything answered before', async (t) => {
    const ends: (() => Promise<unknown>)[] = [];
    const before = { after: (end: unknown) => void ends.unshift(end as () => Promise<unknown>) };
    const server = await startDebian(t, debianPostgres!);
    const folder = temporaryFolder(t);
    const client = new pg.Client(`${server}/postgres`);
    await client.connect();
    for (const name of ['handoff', 'restored']) await client.query(`create database ${name}`);
    await client.end();
    const service = await startService(before, { databaseUrl: `${server}/handoff`, settings: fillSettings });
    const filled = await fill(service, 'http://127.0.0.1:1/hook');
    // What the load below does not change.
    const unchanged = { ...filled, paths: filled.paths.filter((path) => /^\/packets\/[0-9a-f]{8}-/.test(path)) };
    const answers = await answersTo(service, unchanged);
    const state = { dumped: false };
    const load = async () => {
      while (!state.dumped) await createPacket(service);
    };
    const loads = [load(), load(), load()];
    const file = join(folder, 'handoff.dump');
    await must(join(debianPostgres!, 'pg_dump'), '--format=custom', `--file=${file}`, `${server}/handoff`).finally(() => {
      state.dumped = true;
    });
    await Promise.all(loads);
    assert.ok(statSync(file).size > 0);
    await must(join(debianPostgres!, 'pg_restore'), `--dbname=${server}/restored`, '--exit-on-error', file);

    const { clock } = service;
    const restored = await startService(before, { databaseUrl: `${server}/restored`, clock, settings: fillSettings });
    t.after(async () => {
      for (const end of ends) await end();
    });
    assert.deepEqual(await answersTo(restored, unchanged), answers);
    await assertSound(`${server}/restored`);
    await continues(t, restored, filled);
  });
});
