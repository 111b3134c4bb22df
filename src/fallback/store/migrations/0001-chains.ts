import type { Migration } from '../../../kit/sql/migrate.ts';

/** The initial schema. */
export const chains: Migration = {
  name: '0001-chains',
  up(database) {
    // Ids must sort by bytes, which is their time order; a locale's collation is different and slower.
    const text = database === 'sqlite' ? 'text' : 'text collate "C"';
    return [
      `create table chains (id ${text} primary key, version integer not null, text text not null)`,
      `create table test_results (id ${text} primary key, chain_id ${text} not null, status text not null, text text not null)`,
      `create index test_results_by_chain on test_results (chain_id, id)`,
      `create index test_results_running on test_results (id) where status = 'running'`,
      `create table test_prompts (result_id ${text} not null, position integer not null, text text not null, primary key (result_id, position))`,
    ];
  },
};
