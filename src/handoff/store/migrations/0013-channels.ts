import type { Migration } from '../../../kit/sql/migrate.ts';

/** Channels: mail addresses and Slack channels that learn of questions. They are stored beside webhooks, and deliveries go to either. */
export const channels: Migration = {
  name: '0013-channels',
  up: () => [
    `alter table webhooks add column kind text not null default 'webhook'`,
    'alter table webhooks add column name text',
    'alter table webhooks add column responder text',
    // The key that set the target, and the first key of its chain of rotations.
    'alter table webhooks add column key_id text',
    'alter table webhooks add column key_origin text',
    // The origin of that request, with which answer links begin.
    'alter table webhooks add column origin text',
    // The id of the channel that a link was made for.
    'alter table answer_links add column channel text',
    // The first keys of the chains of rotations of the keys through which a key was created, as a JSON array.
    'alter table api_keys add column lineage text',
  ],
};
