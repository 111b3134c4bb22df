import type { Migration } from '../../../kit/sql/migrate.ts';

/** Leases, claimants, claim-next, and the agents that were seen. */
export const work: Migration = {
  name: '0005-work',
  up(database) {
    const sqlite = database === 'sqlite';
    const text = sqlite ? 'text' : 'text collate "C"';
    const number = sqlite ? 'integer' : 'bigint';
    // The state is the beginning of a JSON object and ends with a comma.
    const member = (path: string[]) =>
      sqlite ? `json_extract(state || '"end":0}', '$.${path.join('.')}')` : `(state || '"end":0}')::json #>> '{${path.join(',')}}'`;
    return [
      `alter table packets add column lease text`,
      `alter table packets add column parent ${text}`,
      `alter table packets add column depth integer not null default 1`,
      `alter table packets add column claimed_by ${text}`,
      `alter table packets add column updated_at ${text} not null default ''`,
      `update packets set parent = ${member(['parent_packet_id'])}, claimed_by = ${member(['claimed_by', 'agent_id'])},
        updated_at = ${member(['updated_at'])}, state = '{"lease":null,' || substr(state, 2)`,
      `create index packets_by_claimant on packets (tenant, claimed_by, id) where claimed_by is not null`,
      `create index packets_by_parent on packets (tenant, parent, id) where parent is not null`,
      // Packets for claim-next, oldest first: those of one target agent, and those of any.
      `create index packets_waiting_for on packets (tenant, target_agent, priority, id) where status = 'created'`,
      `create index packets_waiting on packets (tenant, priority, id) where status = 'created'`,
      `create table agents (tenant ${number} not null, agent_id ${text} not null, last_seen_at ${text} not null,
        primary key (tenant, agent_id))${sqlite ? ' without rowid' : ''}`,
      `create index agents_by_sight on agents (tenant, last_seen_at, agent_id)`,
    ];
  },
};
