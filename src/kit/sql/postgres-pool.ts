import type { PostgresPool } from 'kysely';
import pg from 'pg';

/** A pool of connections for reads, and for transactions of single statements. */
export interface Pool extends PostgresPool {
  query(config: pg.QueryConfig): Promise<pg.QueryResult>;
}

/** Opens a pool of at most `max` connections. */
export function openPool(config: pg.PoolConfig, max: number): Pool & pg.Pool {
  const pool = new pg.Pool({ ...config, max });
  // A broken connection is replaced at its next use. Without these listeners it would end the process: the pool's listener
  // covers an idle connection, the client's own covers one that is checked out and between two statements.
  pool.on('error', () => undefined);
  pool.on('connect', (client) => {
    client.on('error', () => undefined);
  });
  return pool as Pool & pg.Pool;
}

/**
 * Whether the address is that of a PgBouncer in transaction mode: it has the parameter `pgbouncer=true`. Each transaction may
 * then have another server connection, so that nothing outlives one: no named statements, and no settings of a connection.
 */
export const isBehindPgbouncer = (url: string): boolean => /[?&]pgbouncer=true(?:&|$)/.test(url);

/** The query that begins a transaction with these settings, lists of `name = value`. */
export const beginWith = (settings: readonly string[]): string =>
  ['begin', ...settings.map((setting) => `set local ${setting}`)].join('; ');

/** Makes each statement of a pool a transaction, begun by this query. */
export function withSettings(pool: pg.Pool, begin: string): Pool {
  async function run(client: pg.PoolClient, config: pg.QueryConfig): Promise<pg.QueryResult> {
    try {
      await client.query(begin);
      const result = await client.query(config);
      await client.query('commit');
      return result;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    }
  }

  return {
    async connect() {
      const client = await pool.connect();
      const query = (text: string, values: readonly unknown[]) => run(client, { text, values: [...values] });
      // Cursors, the other form of a query, are not used.
      return { query: query as never, release: () => client.release() };
    },
    async query(config) {
      const client = await pool.connect();
      let failure: Error | undefined;
      try {
        return await run(client, config);
      } catch (error) {
        failure = error as Error;
        throw error;
      } finally {
        // As `pool.query` does: a connection whose query failed is closed.
        client.release(failure);
      }
    },
    end: () => pool.end(),
    options: pool.options,
  };
}
