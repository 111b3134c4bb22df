import type { Migration } from '../../../kit/sql/migrate.ts';

/**
 * The name in the text of a chain, as JSON, in SQL. It is indexed and has no column, so that a chain is found by its name
 * whichever version wrote it. PostgreSQL would refuse to parse a text with `\u0000` or half a surrogate pair in any field.
 */
export const nameOf = {
  sqlite: `(text -> '$.name')`,
  postgres: String.raw`substring(text from '^\{"id":"[^"]*","name":("(?:[^"\\]|\\.)*")')`,
};

/** Adds an index of chains by name, to find others of that name. */
export const chainNames: Migration = {
  name: '0003-chain-names',
  up: (database) => [`create index chains_by_name on chains (${nameOf[database]}, id)`],
};
