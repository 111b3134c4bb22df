import { hash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import fastify, { type FastifyReply } from 'fastify';

import { CreateRequest } from '../src/handoff/model/packet.ts';
import { bodyValidator } from '../src/kit/http/validate.ts';
import { createIds } from '../src/kit/id.ts';
import { serveTasks } from './programs.ts';

/**
 * The minimal service that stores a packet: the difference from the echo is the cost of the database, and the difference to
 * the product is the product's own cost. It checks a key, validates the body, writes the packet with the indexes that lists
 * need and its first event, and answers when they are on disk. It has no search, tags, counters, limits, log or metrics.
 */
const app = fastify({ logger: false });

// The product's own validator and ids, so that both pay the same for them.
const validate = bodyValidator(CreateRequest, { nullIsAbsent: true });
app.setValidatorCompiler(() => (body) => validate(body) !== undefined);
const newId = createIds();

const tables = `
  create table packets (
    seq integer primary key, id text not null, tenant text not null, status text not null, source_agent text not null,
    target_agent text not null, priority text not null, packet text not null);
  create unique index packets_by_id on packets (id);
  create index packets_by_tenant on packets (tenant, id);
  create index packets_by_status on packets (tenant, status, id);
  create index packets_by_source on packets (tenant, source_agent, id);
  create index packets_by_target on packets (tenant, target_agent, id);
  create index packets_by_priority on packets (tenant, priority, id);
  create table events (
    seq integer primary key, tenant text not null, packet_id text not null, type text not null, details text not null,
    time text not null)`;

/** A packet that is not written yet, and the request that waits for it. */
interface Made {
  id: string;
  tenant: string;
  status: string;
  created_at: string;
  body: CreateRequest;
  text: string;
  reply: FastifyReply;
}

/** Creates a file with the product's settings, which determine much of a commit's cost; returns a function that writes packets in one transaction. */
function openFile(path: string): (packets: readonly Made[]) => void {
  const database = new DatabaseSync(path);
  database.exec('pragma page_size = 8192');
  database.exec('pragma journal_mode = wal');
  database.exec('pragma synchronous = full');
  database.exec('pragma wal_autocheckpoint = 500');
  database.exec('pragma cache_size = -16384');
  database.exec(tables);
  const begin = database.prepare('begin immediate');
  const insertPacket = database.prepare(
    'insert into packets (id, tenant, status, source_agent, target_agent, priority, packet) values (?, ?, ?, ?, ?, ?, ?)',
  );
  const insertEvent = database.prepare('insert into events (tenant, packet_id, type, details, time) values (?, ?, ?, ?, ?)');
  const commit = database.prepare('commit');
  return (packets) => {
    begin.run();
    for (const { id, tenant, status, created_at, body, text } of packets) {
      const { source_agent, target_agent, priority = 'normal' } = body.metadata;
      insertPacket.run(id, tenant, status, source_agent.id, target_agent.id, priority, text);
      insertEvent.run(tenant, id, status, '{}', created_at);
    }
    commit.run();
  };
}

let write: (packets: readonly Made[]) => void;
const tenants = new Map<string, string>();
let waiting: Made[] = [];

/** Writes the packets of this turn of the event loop, then answers. A failure ends the process, and so the case. */
function keep(): void {
  const packets = waiting;
  waiting = [];
  write(packets);
  for (const { reply, text } of packets) reply.code(201).type('application/json; charset=utf-8').send(text);
}

app.post<{ Body: CreateRequest }>('/packets', { schema: { body: CreateRequest } }, (request, reply) => {
  const { headers, body } = request;
  const tenant = tenants.get(hash('sha256', String(headers['x-api-key'])));
  if (tenant === undefined) {
    reply.code(401).send();
    return;
  }
  const now = new Date();
  const made = { id: newId(now), status: 'created', created_at: now.toISOString() };
  if (waiting.length === 0) setImmediate(keep);
  waiting.push({ ...made, tenant, body, text: JSON.stringify({ ...made, ...body }), reply });
});

const tasks = {
  /** Listens, with a new file at the path and one tenant with the given key. */
  async start({ path, key }: { path: string; key: string }): Promise<string> {
    write = openFile(path);
    tenants.set(hash('sha256', key), newId(new Date()));
    return app.listen({ host: '127.0.0.1', port: 0 });
  },
};

/** The tasks of the bare create. */
export type BareCreateTasks = typeof tasks;

serveTasks(tasks);
