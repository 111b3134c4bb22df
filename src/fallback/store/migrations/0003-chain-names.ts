import type { Migration } from '../../../kit/sql/migrate.ts';

/** Adds the name of a chain beside its text, to find others of that name. */
export const chainNames: Migration = {
  name: '0003-chain-names',
  up(database) {
    const [text, name] = database === 'sqlite' ? ['text', `json_extract(text, '$.name')`] : ['text collate "C"', `text::json ->> 'name'`];
    return [
      `alter table chains add column name ${text}`,
      `update chains set name = ${name}`,
      `create index chains_by_name on chains (name)`,
    ];
  },
};
