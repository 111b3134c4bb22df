import type { Migration } from '../../../kit/sql/migrate.ts';

/** The trace that a message to webhooks continues. */
export const traces: Migration = {
  name: '0012-traces',
  up: () => ['alter table messages add column traceparent text'],
};
