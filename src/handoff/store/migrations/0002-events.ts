import type { Migration } from '../../../kit/sql/migrate.ts';

/** The columns of stream events, and the order and the key of every event. */
export const events: Migration = {
  name: '0002-events',
  up(database) {
    const text = database === 'sqlite' ? 'text' : 'text collate "C"';
    return [
      `alter table events add column key_id ${text}`,
      // A tenant's events in commit order; the counter `position` has the last number.
      `alter table events add column position bigint not null default 0`,
      // The stream event; null where there is none. Retention later sets the payload to null.
      `alter table events add column type ${text}`,
      `alter table events add column status ${text}`,
      `alter table events add column source_agent ${text}`,
      `alter table events add column target_agent ${text}`,
      `alter table events add column claimant ${text}`,
      `alter table events add column payload text`,
      `update events set position = numbered.number
        from (select seq as place, row_number() over (partition by tenant order by seq) as number from events) as numbered
        where numbered.place = events.seq`,
      `insert into counters (tenant, name, value) select tenant, 'position', max(position) from events group by tenant`,
      `drop index events_by_tenant`,
      `create index events_by_position on events (tenant, position)`,
    ];
  },
};
