import { randomFillSync } from 'node:crypto';
import pg from 'pg';

import { createIds } from '../src/kit/id.ts';
import { serveTasks } from './programs.ts';
import { type LoadResult, timesOf } from './times.ts';

/** The number of connections. */
const atOnce = 10;

/** The row of a packet and of its event, as the service wrote them, with new ids. */
type Row = Record<string, string | number | null>;

const newId = createIds((bytes) => void randomFillSync(bytes));
const clients: pg.Client[] = [];

/** A tenant of its own, since positions of events are those of a tenant, and the service counts its own. */
const tenant = 1_000_000;
let position = 0;
let rows: { packets: Row; events: Row };

function insertOf(table: string, row: Row): { name: string; text: string; values: unknown[] } {
  const columns = Object.keys(row);
  const text = `insert into ${table} (${columns.join(', ')}) values (${columns.map((_, index) => `$${index + 1}`).join(', ')})`;
  return { name: table, text, values: Object.values(row) };
}

const withoutSeq = ({ seq: _, ...row }: Row & { seq?: unknown }): Row => row as Row;

const tasks = {
  /** Connects to a database of the service with one packet. */
  async start(url: string): Promise<void> {
    for (let index = 0; index < atOnce; index += 1) {
      const client = new pg.Client(url);
      // The database stops before this program does.
      client.on('error', () => undefined);
      await client.connect();
      clients.push(client);
    }
    const only = async (table: string) => withoutSeq((await clients[0]!.query(`select * from ${table} limit 1`)).rows[0]);
    rows = { packets: await only('packets'), events: await only('events') };
  },
  /** Runs the transaction that stores a packet and its event a number of times: begin, insert, insert, commit. */
  run(count: number): Promise<LoadResult> {
    const free = [...clients];
    return timesOf(count, atOnce, async () => {
      const client = free.pop()!;
      const id = newId(new Date());
      await client.query('begin');
      await client.query(insertOf('packets', { ...rows.packets, tenant, id }));
      position += 1;
      await client.query(insertOf('events', { ...rows.events, tenant, position, id, packet_id: id }));
      await client.query('commit');
      free.push(client);
    });
  },
};

/** The tasks of the bare PostgreSQL client. */
export type TransactionTasks = typeof tasks;

serveTasks(tasks);
