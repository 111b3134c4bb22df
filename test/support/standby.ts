import { type ChildProcess, execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';

import { listen } from './listen.ts';
import { embedded } from './postgres.ts';

/** A PostgreSQL with a synchronous hot standby, behind one address that is moved to the standby. */
interface TestPair {
  /** The address of the one that serves. */
  readonly url: string;
  /** Cuts the standby off from the primary: it gets nothing of what is written from now on. */
  cutOff(): void;
  /** Whether a commit on the primary waits for the standby. */
  isWaiting(): Promise<boolean>;
  /** Kills the primary, as `kill -9` does. */
  killPrimary(): Promise<void>;
  /** Promotes the standby, and moves the address to it. */
  promote(): Promise<void>;
  stop(): Promise<void>;
}

/** Forwards connections of one port to another, which can be changed. */
async function startForwarder(first: number): Promise<{ port: number; moveTo(port: number): void; stop: () => void }> {
  let target = first;
  const sockets = new Set<Socket>();
  const server = createServer((inside) => {
    const outside = connect(target, '127.0.0.1');
    for (const [socket, other] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  });
  const port = await listen(server);
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    moveTo(other) {
      target = other;
      cut();
    },
    stop() {
      server.close();
      cut();
    },
  };
}

/** Starts a primary that answers no commit before the standby has stored it. The standby begins as a copy of the empty primary. */
export async function startPair(): Promise<TestPair> {
  const folder = await mkdtemp(join(tmpdir(), 'baton-pair-'));
  await chmod(folder, 0o755);
  const usual = ['listen_addresses=127.0.0.1', 'max_connections=200', 'fsync=off'];
  const readOnly = Promise.withResolvers<void>();
  const primary = await embedded(join(folder, 'primary'), [...usual, 'synchronous_standby_names=*']);
  const standby = await embedded(join(folder, 'standby'), usual, (text) => {
    if (text.includes('ready to accept read-only connections')) readOnly.resolve();
  });
  await primary.server.initialise();
  const data = join(folder, 'standby');
  // With its owner and its modes, which PostgreSQL checks.
  await promisify(execFile)('cp', ['-a', join(folder, 'primary'), data]);
  const replication = await startForwarder(primary.port);
  const source = `host=127.0.0.1 port=${replication.port} user=baton password=baton application_name=standby`;
  await writeFile(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`);
  await writeFile(join(data, 'standby.signal'), '');
  await primary.server.start();
  // It resolves at the promotion only.
  const promoted = standby.server.start();
  await readOnly.promise;
  const forwarder = await startForwarder(primary.port);
  // Answered once the standby has it.
  await query(primary.port, 'create database served');

  let isKilled = false;
  return {
    url: `postgres://baton:baton@127.0.0.1:${forwarder.port}/served`,
    cutOff: replication.stop,
    async isWaiting() {
      return (await query(primary.port, `select from pg_stat_activity where wait_event = 'SyncRep'`)) > 0;
    },
    async killPrimary() {
      isKilled = true;
      const { process: child } = primary.server as unknown as { process: ChildProcess };
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
    async promote() {
      await query(standby.port, 'select pg_promote()');
      await promoted;
      forwarder.moveTo(standby.port);
    },
    async stop() {
      forwarder.stop();
      replication.stop();
      await standby.server.stop();
      if (!isKilled) await primary.server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Runs a statement; returns the number of rows. */
async function query(port: number, sql: string): Promise<number> {
  const client = new pg.Client(`postgres://baton:baton@127.0.0.1:${port}/postgres`);
  await client.connect();
  try {
    return (await client.query(sql)).rows.length;
  } finally {
    await client.end();
  }
}
