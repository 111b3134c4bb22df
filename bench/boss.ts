import { serveTasks } from './programs.ts';
import type { LoadResult } from './times.ts';
import { timesOf } from './times.ts';

/** The part of pg-boss's interface that the benchmark uses. pg-boss is an optional installation. */
interface Boss {
  start(): Promise<unknown>;
  createQueue(name: string): Promise<unknown>;
  send(name: string, data: object): Promise<string | null>;
  insert(name: string, jobs: { data: object }[]): Promise<unknown>;
  fetch(name: string): Promise<{ id: string }[]>;
  complete(name: string, id: string): Promise<unknown>;
  on(event: 'error', listener: () => void): void;
}

/** Separate queues for sending and fetching, so that fetches do not scan the sent jobs. */
const sent = 'sent';
const ready = 'ready';

/** Concurrent calls: as many as pg-boss has connections. */
const atOnce = 10;

let boss: Boss;
let fetched: string[] = [];

const tasks = {
  async start(url: string): Promise<void> {
    // Not a dependency of the project, so the compiler can't resolve its name.
    const name = 'pg-boss';
    const { PgBoss } = (await import(name)) as { PgBoss: new (options: object) => Boss };
    boss = new PgBoss({ connectionString: url, max: atOnce });
    boss.on('error', () => undefined);
    await boss.start();
    await boss.createQueue(sent);
    await boss.createQueue(ready);
  },
  send({ body, count }: { body: object; count: number }): Promise<LoadResult> {
    return timesOf(count, atOnce, () => boss.send(sent, body));
  },
  /** Adds jobs to the queue that is fetched from. */
  async fill({ body, count }: { body: object; count: number }): Promise<void> {
    await boss.insert(
      ready,
      Array.from({ length: count }, () => ({ data: body })),
    );
  },
  /** Fetches jobs one by one, with concurrent calls. */
  async fetch({ count, atOnce: several }: { count: number; atOnce: number }): Promise<LoadResult> {
    fetched = [];
    return timesOf(count, several, async () => {
      const [job] = await boss.fetch(ready);
      fetched.push(job!.id);
    });
  },
  /** Completes the jobs that were fetched last. */
  complete(_: null): Promise<LoadResult> {
    return timesOf(fetched.length, atOnce, () => boss.complete(ready, fetched.pop()!));
  },
};

/** The tasks of pg-boss. */
export type BossTasks = typeof tasks;

serveTasks(tasks);
