import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { freePort } from '../../src/kit/free-port.ts';
import { type Program, startProgram } from './program.ts';
import { findProgram } from './programs.ts';

/** A PgBouncer in transaction mode. */
export interface TestPgbouncer {
  /** Its host and port. */
  readonly host: string;
  /** The address of a database of the server, through it. */
  through(databaseUrl: string): string;
  stop(): Promise<void>;
}

/** Why the PgBouncer suites are skipped on this machine, or false. */
export const skipWithoutPgbouncer = findProgram('pgbouncer') === undefined && 'no pgbouncer on this machine';

/** How many server connections each database has: few, so that transactions of one client use several. */
const serverConnections = 3;

/** Starts PgBouncer before a server. */
export async function startPgbouncer(server: string): Promise<TestPgbouncer> {
  const { hostname, port, username, password } = new URL(server);
  const folder = await mkdtemp(join(tmpdir(), 'baton-pgbouncer-'));
  await chmod(folder, 0o755);
  const listenPort = await freePort();
  const config = join(folder, 'pgbouncer.ini');
  await writeFile(
    config,
    `[databases]
* = host=${hostname} port=${port} user=${username} password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${serverConnections}
max_client_conn = 1000
server_idle_timeout = 10
${process.getuid?.() === 0 ? 'user = nobody' : ''}
`,
  );
  const program: Program = startProgram([findProgram('pgbouncer')!, config]);
  await program.logged(/process up/);
  const host = `127.0.0.1:${listenPort}`;
  return {
    host,
    through(databaseUrl) {
      const url = new URL(databaseUrl);
      url.host = host;
      url.searchParams.set('pgbouncer', 'true');
      return url.href;
    },
    async stop() {
      program.child.kill('SIGKILL');
      await program.ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
