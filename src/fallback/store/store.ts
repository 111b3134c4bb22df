import type { Clock } from '../../kit/clock.ts';
import { openDatabase } from '../../kit/sql/database.ts';
import { migrate } from '../../kit/sql/migrate.ts';
import { watchSpace } from '../../kit/sql/space.ts';
import { createChainStore } from './chains.ts';
import { schema } from './migrations/index.ts';
import { createResultStore } from './results.ts';
import type { Tables } from './tables.ts';

/** The service's storage, in memory, in SQLite or in PostgreSQL. */
export type Store = Awaited<ReturnType<typeof openStore>>;

/** Opens the store and migrates its schema. */
export async function openStore({ databaseUrl, clock }: { databaseUrl: string; clock: Clock }) {
  const database = watchSpace(openDatabase<Tables>(databaseUrl), clock);
  await migrate(database, schema.migrations, clock, schema.migrationsTable).catch(async (error: unknown) => {
    await database.close();
    throw error;
  });
  return {
    chains: createChainStore(database),
    results: createResultStore(database),
    /** Whether no other instance can have the database open, as with a SQLite file. */
    isExclusive: database.name === 'sqlite',
    ping: () => database.ping(),
    spaceWarnings: database.spaceWarnings,
    isFull: database.isFull,
    waiting: () => database.waiting(),
    isUnavailable: database.isUnavailable,
    close: () => database.close(),
  };
}
