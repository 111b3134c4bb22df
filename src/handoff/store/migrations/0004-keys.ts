import type { Migration } from '../../../kit/sql/migrate.ts';

/** The expiry of rotated keys, and whether a tenant's key limit was set explicitly. */
export const keys: Migration = {
  name: '0004-keys',
  up(database) {
    const text = database === 'sqlite' ? 'text' : 'text collate "C"';
    return [
      `alter table api_keys add column expires_at ${text}`,
      `alter table tenants add column max_api_keys_set integer not null default 0`,
      `update tenants set max_api_keys_set = 1 where max_api_keys <> case tier when 'free' then 1 when 'pro' then 5 else 25 end`,
    ];
  },
};
