import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, realpathSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import packageJson from '../../package.json' with { type: 'json' };
import { looksLikeKey } from '../../src/handoff/rules/keys.ts';
import { freePort } from '../../src/kit/free-port.ts';
import { connectTo, openEmptyDatabase } from '../support/databases.ts';
import { temporaryFolder } from '../support/folder.ts';
import { listenFor } from '../support/listen.ts';
import { startProcess, withFilePermissions } from '../support/process.ts';
import { adminKey, packetRequest } from '../support/service.ts';
import { sendRaw } from '../support/socket.ts';
import { until } from '../support/until.ts';

const program = fileURLToPath(new URL('../../bin/service-cli.js', import.meta.url));

/** A running program: its output so far, and its exit. */
interface Running {
  readonly child: ChildProcess;
  readonly stdout: () => string[];
  readonly stderr: () => string[];
  /** Resolves when standard output has this many lines. */
  lines(count: number): Promise<string[]>;
  readonly ended: Promise<{ code: number | null; signal: string | null }>;
}

/** Runs `service-cli` in its own folder, with only the given environment and the compiled modules of earlier tests. */
function run(
  t: TestContext,
  folder: string,
  args: string[],
  environment: Record<string, string> = {},
  before: readonly string[] = [],
): Running {
  const [command = '', ...rest] = [...before, process.execPath, program, ...args];
  const child = spawn(command, rest, {
    cwd: folder,
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let out = '';
  let err = '';
  const waiting: { count: number; resolve: (lines: string[]) => void; reject: (error: Error) => void }[] = [];
  const whole = (text: string) => text.split('\n').slice(0, -1);
  child.stdout!.setEncoding('utf8').on('data', (chunk) => {
    out += chunk;
    for (const { count, resolve } of waiting) if (whole(out).length >= count) resolve(whole(out));
  });
  child.stderr!.setEncoding('utf8').on('data', (chunk) => {
    err += chunk;
  });
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.on('close', (code, signal) => {
      for (const { count, reject } of waiting)
        reject(new Error(`The program ended (${code}) before it wrote ${count} lines: ${out}${err}`));
      resolve({ code, signal });
    });
  });
  t.after(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    child,
    stdout: () => whole(out),
    stderr: () => whole(err),
    lines: (count) =>
      new Promise((resolve, reject) => {
        if (whole(out).length >= count) resolve(whole(out));
        else waiting.push({ count, resolve, reject });
      }),
    ended,
  };
}

/** Starts the service on a free port of the loopback and returns it with its address. */
async function serve(
  t: TestContext,
  folder: string,
  environment: Record<string, string> = {},
  args: string[] = [],
): Promise<{ running: Running; address: string }> {
  const running = run(t, folder, ['serve', '--host', '127.0.0.1', '--port', '0', ...args], environment);
  const [first] = await running.lines(1);
  const [, address] =
    /^handoff listening on (http:\/\/127\.0\.0\.1:\d+)( and on all other addresses of this machine)?$/.exec(first!) ??
    assert.fail(`The first line is: ${first}`);
  return { running, address: address! };
}

async function call(address: string, method: string, path: string, key: string, body?: unknown): Promise<{ status: number; text: string }> {
  return await new Promise((resolve, reject) => {
    const sent = request(
      `${address}/api/v1${path}`,
      { method, headers: { 'x-api-key': key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) } },
      (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (chunk) => {
          text += chunk;
        });
        answer.on('end', () => resolve({ status: answer.statusCode!, text }));
        answer.on('error', reject);
      },
    );
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function stop({ child, ended }: Running, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
  child.kill(signal);
  return (await ended).code;
}

describe('service-cli serve', { concurrency: 3 }, () => {
  test('prints its address in the first line; creates and prints the admin key at the first start only [H187]', async (t) => {
    const folder = temporaryFolder(t);
    const { running, address } = await serve(t, folder);
    const [, second] = await running.lines(2);
    const [, key] = /^handoff admin key \(shown only once\): (\S+)$/.exec(second!) ?? assert.fail(second);
    assert.ok(looksLikeKey(key!));
    assert.equal((await call(address, 'GET', '/tenants', key!)).status, 200);
    assert.equal((await call(address, 'GET', '/tenants', `${key}x`)).status, 401);
    assert.equal(await stop(running), 0);
    // The default database, which did not exist before.
    assert.ok(existsSync(join(folder, 'data', 'handoff.db')));

    const again = await serve(t, folder);
    assert.equal((await call(again.address, 'GET', '/tenants', key!)).status, 200);
    assert.equal(await stop(again.running), 0);
    const written = [...again.running.stdout(), ...again.running.stderr()].join('\n');
    assert.ok(!written.includes('admin key') && !written.includes(key!));
  });

  test('takes the first admin key from SERVICE_ADMIN_KEY, and then prints none [H187]', async (t) => {
    const folder = temporaryFolder(t);
    const { running, address } = await serve(t, folder, { SERVICE_ADMIN_KEY: adminKey });
    assert.equal((await call(address, 'GET', '/tenants', adminKey)).status, 200);
    assert.equal(await stop(running), 0);
    const written = [...running.stdout(), ...running.stderr()].join('\n');
    assert.ok(!written.includes(adminKey) && !written.includes('admin key'));

    // Once a key exists the setting is ignored, with a warning.
    const other = await serve(t, folder, { SERVICE_ADMIN_KEY: 'another-admin-key-0123456789' });
    assert.equal((await call(other.address, 'GET', '/tenants', 'another-admin-key-0123456789')).status, 401);
    assert.equal((await call(other.address, 'GET', '/tenants', adminKey)).status, 200);
  });

  test('prints what to register at an identity provider, which need not answer then, and nothing of it without one', async (t) => {
    const folder = temporaryFolder(t);
    const environment = {
      SERVICE_ADMIN_KEY: adminKey,
      SERVICE_OIDC_ISSUER: `http://127.0.0.1:${await freePort()}`,
      SERVICE_PUBLIC_URL: 'https://baton.example.com/at/',
    };
    const { running, address } = await serve(t, folder, {
      ...environment,
      SERVICE_OIDC_CLIENT_ID: 'baton',
      SERVICE_OIDC_CLIENT_SECRET: 'a-secret-of-the-client',
    });
    assert.deepEqual((await running.lines(5)).slice(1), [
      'handoff sign-in, redirect address: https://baton.example.com/at/sign-in/callback',
      'handoff sign-in, address after sign-out: https://baton.example.com/at/signed-out',
      'handoff sign-in, back-channel logout: https://baton.example.com/at/sign-in/back-channel-logout',
      'handoff sign-in, sessions last 12 hours, and at most an hour if the provider gives no refresh tokens',
    ]);
    assert.equal((await call(address, 'GET', '/tenants', adminKey)).status, 200);
    assert.equal(await stop(running), 0);
    assert.doesNotMatch([...running.stdout(), ...running.stderr()].join(), /a-secret-of-the-client/);
    // With an issuer alone, only tokens are taken, and nobody signs in.
    const { running: again } = await serve(t, folder, environment);
    assert.equal(await stop(again), 0);
    assert.doesNotMatch(again.stdout().join(), /sign-in/);
  });

  test('keeps its packets over a restart', async (t) => {
    const folder = temporaryFolder(t);
    const first = await serve(t, folder, { SERVICE_ADMIN_KEY: adminKey });
    const created = await call(first.address, 'POST', '/packets', adminKey, packetRequest());
    assert.equal(created.status, 201);
    first.running.child.kill('SIGKILL');
    await first.running.ended;
    const second = await serve(t, folder);
    assert.deepEqual(await call(second.address, 'GET', `/packets/${JSON.parse(created.text).id}`, adminKey), {
      status: 200,
      text: created.text,
    });
  });

  test('writes its log as JSON lines after the first lines, and completely before it exits [H287]', { timeout: 60_000 }, async (t) => {
    const { running, address } = await serve(t, temporaryFolder(t), { SERVICE_ADMIN_KEY: adminKey });
    const started = JSON.parse((await running.lines(2))[1]!);
    assert.deepEqual([started.msg, started.address, started.pid], ['started', address, running.child.pid]);
    await call(address, 'GET', '/packets', adminKey);
    // A single line is written at once, without waiting for more.
    assert.equal(JSON.parse((await running.lines(3))[2]!).msg, 'request');
    for (let index = 1; index < 20; index += 1) await call(address, 'GET', '/packets', adminKey);
    assert.equal(await stop(running), 0);
    const [, ...log] = running.stdout();
    assert.deepEqual(
      log.slice(-2).map((line) => JSON.parse(line).msg),
      ['stopping', 'stopped'],
    );
    assert.equal(log.map((line) => JSON.parse(line)).filter(({ msg, status }) => msg === 'request' && status === 200).length, 20);
  });

  test('loses no log line at its exit, however slowly the log is read', async (t) => {
    const { running, address } = await serve(t, temporaryFolder(t), { SERVICE_ADMIN_KEY: adminKey });
    running.child.stdout!.pause();
    // More lines than the buffer of a pipe holds.
    for (let round = 0; round < 40; round += 1)
      await Promise.all(Array.from({ length: 50 }, () => call(address, 'GET', '/tenants', adminKey)));
    running.child.kill('SIGTERM');
    await until(async () => (await call(address, 'GET', '/health', adminKey).catch(() => undefined)) === undefined);
    running.child.stdout!.resume();
    assert.equal((await running.ended).code, 0);
    assert.equal(running.stdout().filter((line) => line.includes('"route":"/api/v1/tenants"')).length, 2000);
  });

  for (const [kind, command] of [
    ['socket', ['exec "$0" "$@"']],
    ['pipe', ['mkfifo log; sleep 60 < log & exec "$0" "$@" > log']],
  ] as const)
    test(`ends at SIGTERM even if nobody reads its log from a ${kind}`, { timeout: 60_000 }, async (t) => {
      const [folder, port] = [temporaryFolder(t), String(await freePort())];
      const child = spawn('/bin/sh', ['-c', ...command, process.execPath, program, 'serve', '--host', '127.0.0.1', '--port', port], {
        cwd: folder,
        // In a group of its own, so that the reader is killed too.
        detached: true,
        env: {
          PATH: process.env.PATH,
          NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE,
          SERVICE_ADMIN_KEY: adminKey,
          SERVICE_RATE_LIMIT_PER_MINUTE: '0',
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
      t.after(() => {
        try {
          process.kill(-child.pid!, 'SIGKILL');
        } catch {
          // The group is empty.
        }
      });
      child.stdout!.pause();
      const address = `http://127.0.0.1:${port}`;
      await until(() => call(address, 'GET', '/health', adminKey));
      for (let round = 0; round < 40; round += 1)
        await Promise.all(Array.from({ length: 50 }, () => call(address, 'GET', '/tenants', adminKey)));
      child.kill('SIGTERM');
      assert.equal(await ended, 0);
    });

  test("keeps answering if its log can't be written, and still ends at SIGTERM", async (t) => {
    const port = String(await freePort());
    const log = join(temporaryFolder(t), 'log');
    // Files are limited to 8 KiB, which soon is a full disk for the log; the database is in memory.
    const child = spawn('/bin/sh', ['-c', 'ulimit -f 16; exec "$0" "$1" serve > "$2"', process.execPath, program, log], {
      env: {
        PATH: process.env.PATH ?? '',
        SERVICE_ADMIN_KEY: adminKey,
        SERVICE_HOST: '127.0.0.1',
        SERVICE_PORT: port,
        SERVICE_DATABASE_URL: 'sqlite::memory:',
        SERVICE_RATE_LIMIT_PER_MINUTE: '0',
      },
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    t.after(() => child.kill('SIGKILL'));
    const address = `http://127.0.0.1:${port}`;
    await until(() => call(address, 'GET', '/health', adminKey));
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(Array.from({ length: 20 }, () => call(address, 'GET', '/packets', adminKey)));
      assert.ok(answers.every(({ status }) => status === 200));
    }
    assert.equal(statSync(log).size, 8192);
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
  });

  test('exits 0 at SIGTERM and at SIGINT, with or without idle connections', async (t) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      const { running, address } = await serve(t, temporaryFolder(t), { SERVICE_ADMIN_KEY: adminKey });
      // A client that keeps its connection open.
      const answer = await fetch(`${address}/health`);
      assert.equal(answer.status, 200);
      await answer.text();
      assert.equal(await stop(running, signal), 0);
      assert.deepEqual(running.stderr(), []);
    }
  });

  test('finishes requests in progress at SIGTERM before it exits 0 [H287]', async (t) => {
    const database = await openEmptyDatabase();
    const { running, address } = await serve(t, temporaryFolder(t), { SERVICE_ADMIN_KEY: adminKey, SERVICE_DATABASE_URL: database.url });
    const client = await connectTo(t, database.url);
    t.after(() => database.drop());
    // The create waits as long as the test locks the table.
    await client.query('begin');
    await client.query('lock table packets in access exclusive mode');
    const created = fetch(`${address}/api/v1/packets`, {
      method: 'POST',
      headers: { 'x-api-key': adminKey, 'content-type': 'application/json' },
      body: JSON.stringify(packetRequest()),
    });
    const isWaiting = async () =>
      (await client.query("select 1 from pg_locks where not granted and relation = 'packets'::regclass")).rows.length > 0;
    await until(isWaiting);
    running.child.kill('SIGTERM');
    await until(() => running.stdout().some((line) => line.includes('"stopping"')));
    await client.query('commit');
    const answer = await created;
    const text = await answer.text();
    assert.equal(answer.status, 201, text);
    // The answer tells the client not to reuse the connection.
    assert.equal(answer.headers.get('connection'), 'close');
    assert.equal((await running.ended).code, 0);
    assert.equal((await client.query('select id from packets')).rows[0].id, JSON.parse(text).id);
  });

  test('exits 0 even if a request never arrives completely', async (t) => {
    const { running, address } = await serve(t, temporaryFolder(t), { SERVICE_ADMIN_KEY: adminKey });
    const head = `POST /api/v1/packets HTTP/1.1\r\nHost: x\r\nX-API-Key: ${adminKey}\r\nContent-Type: application/json\r\n`;
    const begun = sendRaw(address, `${head}Content-Length: 1000\r\n\r\n{`);
    // Another request is answered meanwhile, so the incomplete one has arrived.
    for (let index = 0; index < 10; index += 1) assert.equal((await call(address, 'GET', '/packets', adminKey)).status, 200);
    assert.equal(await stop(running), 0);
    assert.notEqual((await begun).status, 201);
  });

  test('exits 1 nine seconds after SIGTERM if a request in progress does not end', { timeout: 60_000 }, async (t) => {
    const database = await openEmptyDatabase();
    const { running, address } = await serve(t, temporaryFolder(t), { SERVICE_ADMIN_KEY: adminKey, SERVICE_DATABASE_URL: database.url });
    const client = await connectTo(t, database.url);
    t.after(() => database.drop());
    await client.query('begin; lock table packets in access exclusive mode');
    const created = call(address, 'POST', '/packets', adminKey, packetRequest()).catch(() => undefined);
    const waiting = "select 1 from pg_locks where not granted and relation = 'packets'::regclass";
    await until(async () => (await client.query(waiting)).rows.length !== 0);
    running.child.kill('SIGTERM');
    assert.equal((await running.ended).code, 1);
    assert.equal(await created, undefined);
  });

  test('runs its jobs: an unclaimed packet expires, and queued packets are indexed for search', {
    timeout: 60_000,
  }, async (t) => {
    const { running, address } = await serve(t, temporaryFolder(t), {
      SERVICE_ADMIN_KEY: adminKey,
      SERVICE_UNCLAIMED_TTL_SECONDS: '1',
      SERVICE_RATE_LIMIT_PER_MINUTE: '0',
      SERVICE_HOURLY_QUOTA_BUSINESS: '0',
    });
    const created = JSON.parse((await call(address, 'POST', '/packets', adminKey, packetRequest())).text);
    const status = async () => JSON.parse((await call(address, 'GET', `/packets/${created.id}`, adminKey)).text).status;
    await until(async () => (await status()) !== 'created');
    assert.equal(await status(), 'expired');
    const waiting = async () => /^service_search_queue_length (\d+)$/m.exec((await call(address, 'GET', '/metrics', adminKey)).text)![1];
    await until(async () => (await waiting()) === '0');
    assert.equal(await stop(running), 0);
  });

  test('an exception or rejection that no code handles is logged as fatal, requests in progress are answered, and it exits 1', {
    timeout: 60_000,
  }, async (t) => {
    for (const fault of [`throw new Error('unforeseen')`, `Promise.reject(new Error('unforeseen'))`]) {
      const preload = `data:text/javascript,process.on('SIGUSR2', () => { ${fault}; })`;
      const { running, address } = await serve(t, temporaryFolder(t), {
        SERVICE_ADMIN_KEY: adminKey,
        NODE_OPTIONS: `--import="${preload}"`,
      });
      const body = JSON.stringify(packetRequest());
      const answered = new Promise<number>((resolve, reject) => {
        const sent = request(
          `${address}/api/v1/packets`,
          {
            method: 'POST',
            headers: {
              'x-api-key': adminKey,
              'content-type': 'application/json',
              'content-length': Buffer.byteLength(body),
              expect: '100-continue',
            },
          },
          (answer) => resolve(answer.resume().statusCode!),
        );
        sent.on('error', reject);
        // The service has the request and waits for its body.
        sent.once('continue', () => {
          running.child.kill('SIGUSR2');
          running.lines(3).then(() => sent.end(body), reject);
        });
        sent.flushHeaders();
      });
      assert.equal(await answered, 201);
      assert.equal((await running.ended).code, 1);
      const line = running.stdout().find((text) => text.includes('"level":60'))!;
      const { msg, err } = JSON.parse(line);
      assert.equal(msg, 'unexpected error, the process ends');
      assert.equal(err.message, 'unforeseen');
    }
  });

  test('a PostgreSQL that refuses connections is named with its address, without its password', async (t) => {
    const url = `postgres://user:secret@127.0.0.1:${await freePort()}/packets`;
    const address = new URL(url).host;
    for (const args of [['serve', '--port', '0'], ['admin-key']]) {
      const running = run(t, temporaryFolder(t), args, { SERVICE_DATABASE_URL: url });
      assert.equal((await running.ended).code, 1);
      const [line = '', ...others] = running.stderr();
      assert.match(line, new RegExp(`PostgreSQL at ${address}/packets can't be used: connect ECONNREFUSED ${address}$`));
      assert.deepEqual(others, []);
    }
  });

  test('invalid settings: one line for each on standard error, nothing on standard output, and exit 1 [H281]', async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'handoff.toml'), 'prot = 1\nlog_level = "loud"\n');
    const running = run(t, folder, ['serve', '--port', '99999', '--config', 'handoff.toml'], {
      SERVICE_BATCH_MAX: '0',
      SERVICE_DEV_MODE: 'maybe',
      SERVICE_ADMIN_KEY: 'too short',
    });
    assert.equal((await running.ended).code, 1);
    assert.deepEqual(running.stdout(), []);
    const lines = running.stderr();
    assert.equal(lines.length, 6, lines.join('\n'));
    for (const name of ['--port', 'SERVICE_BATCH_MAX', 'SERVICE_DEV_MODE', 'SERVICE_ADMIN_KEY', 'log_level', 'prot']) {
      assert.ok(
        lines.some((line) => line.startsWith('handoff: ') && line.includes(name)),
        name,
      );
    }
    assert.ok(!lines.join('').includes('too short'));
    assert.ok(!existsSync(join(folder, 'data')));
  });

  test('flags take precedence over the environment, then the file [H281]', async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(
      join(folder, 'handoff.toml'),
      'batch_max = 1\nrate_limit_per_minute = 7\nport = 1\ndatabase_url = "sqlite://./elsewhere/own.db"\n',
    );
    const environment = { SERVICE_ADMIN_KEY: adminKey, SERVICE_BATCH_MAX: '2', SERVICE_PORT: '2' };
    const { address } = await serve(t, folder, environment, ['--config', 'handoff.toml']);
    const batch = (count: number) =>
      call(address, 'POST', '/packets/batch', adminKey, { packets: Array.from({ length: count }, () => packetRequest()) });
    assert.equal((await batch(2)).status, 201);
    assert.equal((await batch(3)).status, 400);
    const answer = await fetch(`${address}/api/v1/packets`, { headers: { 'x-api-key': adminKey } });
    assert.equal(answer.headers.get('x-ratelimit-limit'), '7');
    await answer.text();
    assert.ok(existsSync(join(folder, 'elsewhere', 'own.db')));
  });

  test('a port in use: one line that says what to do, exit 1, and the new admin key is printed nevertheless', async (t) => {
    const { port } = await listenFor(t, createServer());
    const folder = temporaryFolder(t);
    const running = run(t, folder, ['serve', '--host', '127.0.0.1', '--port', String(port)]);
    assert.equal((await running.ended).code, 1);
    assert.deepEqual(running.stdout(), []);
    const [problem, shown, ...others] = running.stderr();
    assert.equal(problem, `handoff: Port ${port} is in use by another program; choose another one with --port.`);
    assert.deepEqual(others, []);
    const [, key] = /^handoff admin key \(shown only once\): (\S+)$/.exec(shown!) ?? assert.fail(shown);
    const { address } = await serve(t, folder);
    assert.equal((await call(address, 'GET', '/tenants', key!)).status, 200);
  });

  test('a database from a newer version: one line that names it, exit 1, and the database is not changed [H288]', async (t) => {
    const folder = temporaryFolder(t);
    const first = await serve(t, folder, { SERVICE_ADMIN_KEY: adminKey });
    assert.equal(await stop(first.running), 0);
    const file = join(folder, 'data', 'handoff.db');
    const database = new DatabaseSync(file);
    database.exec("insert into migrations (name, applied_at) values ('9999-from-the-future', '2099-01-01T00:00:00.000Z')");
    database.close();
    const running = run(t, folder, ['serve', '--port', '0']);
    assert.equal((await running.ended).code, 1);
    assert.deepEqual(running.stdout(), []);
    const [problem, ...others] = running.stderr();
    assert.match(problem!, /another version, probably a newer one.*9999-from-the-future/);
    assert.deepEqual(others, []);
  });

  test("a database that can't be opened: one line, no stack, no password, exit 1", async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'file'), '');
    for (const url of ['sqlite://./file/below/a/file.db', 'postgres://user:s3cret@127.0.0.1:1/none']) {
      const running = run(t, folder, ['serve', '--port', '0'], { SERVICE_DATABASE_URL: url });
      assert.equal((await running.ended).code, 1);
      const [problem, ...others] = running.stderr();
      assert.match(problem!, /^handoff: The service could not start: ./);
      assert.deepEqual(others, []);
      assert.ok(!problem!.includes('s3cret'));
    }
  });

  test('a database file that may not be written: one line that says so, exit 1, and the file is as before', async (t) => {
    const folder = temporaryFolder(t);
    const file = join(folder, 'read-only.db');
    const first = await serve(t, folder, { SERVICE_DATABASE_URL: `sqlite://${file}` });
    assert.equal(await stop(first.running), 0);
    const before = readFileSync(file);
    chmodSync(file, 0o444);
    for (const args of [['serve', '--port', '0'], ['admin-key']]) {
      const running = run(t, folder, args, { SERVICE_DATABASE_URL: `sqlite://${file}` }, withFilePermissions);
      assert.equal((await running.ended).code, 1);
      const [problem = '', ...others] = running.stderr();
      assert.match(
        problem,
        new RegExp(`The database file ${file} can't be written: this user may only read it, or its file system is read-only\\.$`),
      );
      assert.deepEqual([others, running.stdout()], [[], []]);
    }
    assert.deepEqual(readFileSync(file), before);
  });

  test('two instances that start concurrently on one new PostgreSQL agree on the first key', async (t) => {
    const database = await openEmptyDatabase();
    const environment = { SERVICE_DATABASE_URL: database.url };
    const folder = temporaryFolder(t);
    const instances = await Promise.all([serve(t, folder, environment), serve(t, folder, environment)]);
    t.after(() => database.drop());
    await Promise.all(instances.map(({ running }) => stop(running)));
    const keys = instances.flatMap(({ running }) => running.stdout().filter((line) => line.includes('admin key')));
    assert.equal(keys.length, 1);
    const { address } = await serve(t, folder, environment);
    assert.equal((await call(address, 'GET', '/tenants', keys[0]!.split(' ').at(-1)!)).status, 200);
  });
});

describe('service-cli', () => {
  test('--reload restarts it when a source file changes', async (t) => {
    const settings = { SERVICE_ADMIN_KEY: adminKey, SERVICE_LOG_LEVEL: 'error' };
    const { running, address } = await serve(t, temporaryFolder(t), settings, ['--reload']);
    const starts = () => running.stdout().filter((line) => line.startsWith('handoff listening on ')).length;
    const source = fileURLToPath(new URL('../../src/handoff/serve.ts', import.meta.url));
    // The program reported its imports to the watcher before it listened; by now the watcher knows them.
    for (let count = 0; count < 5; count += 1) assert.equal((await call(address, 'GET', '/health', adminKey)).status, 200);
    utimesSync(source, new Date(), new Date());
    for (let lines = 2; starts() < 2; lines += 1) await running.lines(lines);
    running.child.kill('SIGTERM');
    await running.ended;
  });

  test('admin-key creates an admin key in the database of a running service and prints it [H190]', async (t) => {
    const folder = temporaryFolder(t);
    const { running, address } = await serve(t, folder, { SERVICE_ADMIN_KEY: adminKey });
    const made = run(t, folder, ['admin-key']);
    assert.equal((await made.ended).code, 0);
    const [line, ...others] = made.stdout();
    assert.deepEqual([...others, ...made.stderr()], []);
    const [file, key] = /^handoff admin key \(shown only once\) of (\/\S+): (\S+)$/.exec(line!)?.slice(1) ?? assert.fail(line);
    assert.equal(realpathSync(file!), realpathSync(join(folder, 'data/handoff.db')));
    assert.equal((await call(address, 'GET', '/tenants', key!)).status, 200);
    assert.equal(await stop(running), 0);
  });

  test('admin-key for a database in memory is refused with a sentence', async (t) => {
    const { ended, stderr } = run(t, temporaryFolder(t), ['admin-key'], { SERVICE_DATABASE_URL: 'sqlite::memory:' });
    assert.equal((await ended).code, 1);
    assert.deepEqual(stderr(), ['handoff: A database in memory belongs to the process that opened it.']);
  });

  test('admin-key in a folder without a database names the one that it looked for, creates nothing and exits 1', async (t) => {
    const folder = temporaryFolder(t);
    const { ended, stdout, stderr } = run(t, folder, ['admin-key']);
    assert.equal((await ended).code, 1);
    assert.deepEqual(stderr(), [
      `handoff: There is no database of the handoff service at ${join(realpathSync(folder), 'data/handoff.db')}: SERVICE_DATABASE_URL or --config must name it.`,
    ]);
    assert.deepEqual([stdout(), readdirSync(folder)], [[], []]);
  });

  test('--version prints the version, --help lists the commands', async (t) => {
    const folder = temporaryFolder(t);
    const version = run(t, folder, ['--version']);
    assert.equal((await version.ended).code, 0);
    assert.deepEqual(version.stdout(), [packageJson.version]);
    const help = run(t, folder, ['serve', '--help']);
    assert.equal((await help.ended).code, 0);
    for (const flag of ['--host', '--port']) assert.ok(help.stdout().join('\n').includes(flag));
  });
});

describe('The settings file', () => {
  test('is set by SERVICE_CONFIG unless --config is given [H281]', async (t) => {
    const folder = temporaryFolder(t);
    const start = (name: string, text: string) => {
      const path = join(folder, name);
      writeFileSync(path, text);
      return startProcess({ databaseUrl: 'sqlite::memory:', settings: { SERVICE_CONFIG: path } });
    };
    const service = await start('good.toml', 'batch_max = 1\n');
    t.after(() => service.kill());
    const batch = (count: number) =>
      service.call('POST', '/packets/batch', { body: { packets: Array.from({ length: count }, () => packetRequest()) } });
    assert.equal((await batch(1)).status, 201);
    assert.equal((await batch(2)).status, 400);
    await assert.rejects(start('unknown.toml', 'batch_maximum = 1\n'), /a setting that does not exist: batch_maximum/);
  });
});
