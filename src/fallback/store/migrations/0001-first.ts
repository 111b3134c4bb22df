import type { Migration } from '../../../kit/sql/migrate.ts';
import type { Tables } from '../tables.ts';

/**
 * The name in the text of a chain, as JSON, in SQL. It is indexed and has no column, so that a chain is found by its name
 * whichever version wrote it. PostgreSQL would refuse to parse a text with `\u0000` or half a surrogate pair in any field.
 */
export const nameOf = {
  sqlite: `(text -> '$.name')`,
  postgres: String.raw`substring(text from '^\{"id":"[^"]*","name":("(?:[^"\\]|\\.)*")')`,
};

/** The first schema. */
export const first: Migration = {
  name: '0001-first',
  up(database) {
    // Ids must sort by bytes, which is their time order; a locale's collation is different and slower.
    const text = database === 'sqlite' ? 'text' : 'text collate "C"';
    const statements: Record<keyof Tables, readonly string[]> = {
      chains: [
        // `findings` are those of the import that made the chain, as JSON.
        `create table chains (id ${text} primary key, version integer not null, text text not null, rehearsal_token text,
          findings text not null default '[]')`,
        // To find other chains of a name.
        `create index chains_by_name on chains (${nameOf[database]}, id)`,
      ],
      test_results: [
        // Until `lease_until` an instance runs the test; others request its cancellation by the flag.
        `create table test_results (id ${text} primary key, chain_id ${text} not null, status text not null, text text not null,
          prompts text not null default '[]', lease_until ${text}, cancel_requested integer not null default 0)`,
        `create index test_results_by_chain on test_results (chain_id, id)`,
        `create index test_results_running on test_results (id) where status = 'running'`,
      ],
      test_prompts: [
        `create table test_prompts (result_id ${text} not null, position integer not null, text text not null, primary key (result_id, position))`,
      ],
    };
    return Object.values(statements).flat();
  },
};
