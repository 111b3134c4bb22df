import { serveTasks } from './programs.ts';
import type { LoadResult } from './times.ts';
import { timesOf } from './times.ts';

/** What the benchmark uses of pg-boss, which is installed beside it or not at all. */
interface Boss {
  start(): Promise<unknown>;
  createQueue(name: string): Promise<unknown>;
  send(name: string, data: object): Promise<string | null>;
  insert(jobs: { name: string; data: object }[]): Promise<unknown>;
  fetch(name: string): Promise<{ id: string }[]>;
  complete(name: string, id: string): Promise<unknown>;
  on(event: 'error', listener: () => void): void;
}

/** What is sent, and what is fetched: apart, so that a fetch has no more to look through than it needs. */
const sent = 'sent';
const ready = 'ready';

/** As many at a time as pg-boss has connections. */
const atOnce = 10;

let boss: Boss;
let fetched: string[] = [];

const tasks = {
  async start(url: string): Promise<void> {
    // Not in the project's own dependencies, so its name is not known to the compiler.
    const name = 'pg-boss';
    const { default: PgBoss } = (await import(name)) as { default: new (options: object) => Boss };
    boss = new PgBoss({ connectionString: url, max: atOnce });
    boss.on('error', () => undefined);
    await boss.start();
    await boss.createQueue(sent);
    await boss.createQueue(ready);
  },
  send({ body, count }: { body: object; count: number }): Promise<LoadResult> {
    return timesOf(count, atOnce, () => boss.send(sent, body));
  },
  /** Puts jobs where they are fetched. */
  async fill({ body, count }: { body: object; count: number }): Promise<void> {
    await boss.insert(Array.from({ length: count }, () => ({ name: ready, data: body })));
  },
  /** Fetches one job at a time, so many of them at once. */
  async fetch({ count, atOnce: several }: { count: number; atOnce: number }): Promise<LoadResult> {
    fetched = [];
    return timesOf(count, several, async () => {
      const [job] = await boss.fetch(ready);
      fetched.push(job!.id);
    });
  },
  /** Completes what was fetched last. */
  complete(_: null): Promise<LoadResult> {
    return timesOf(fetched.length, atOnce, () => boss.complete(ready, fetched.pop()!));
  },
};

/** What pg-boss does for the benchmark. */
export type BossTasks = typeof tasks;

serveTasks(tasks);
