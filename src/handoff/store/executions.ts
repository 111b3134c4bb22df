import type { Awaitable } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import type { Execution } from '../model/action.ts';
import type { Writes } from './engine/group.ts';
import { TableBuffer } from './engine/table-buffer.ts';
import type { ReadDependencies, ReadScope } from './noun.ts';
import type { RowOf } from './tables.ts';

declare module './tables.ts' {
  interface Tables {
    /** The executions of approved actions: at most one for a question. */
    executions: {
      tenant: number;
      packet_id: string;
      question_id: string;
      id: string;
      status: Execution['status'];
      arguments_digest: string;
      started_at: string;
      agent_id: string;
      key_id: string | null;
      /** The keys of the family that may report its end, as a JSON array. */
      family: string;
      ended_at: string | null;
      /** JSON. */
      result: string;
    };
    /** Which packet an agent asked about a call with. */
    calls: { tenant: number; agent_id: string; call_id: string; packet_id: string; tool: string; arguments_digest: string };
  }
}

/** The executions and calls that a unit needs. */
export interface ExecutionNeeds {
  /** A locked packet whose executions it needs. */
  readonly executionsOf?: string;
  /** The call of an agent. */
  readonly callOf?: { readonly agent_id: string; readonly call_id: string } | undefined;
}

/** A stored execution. */
export type StoredExecution = Omit<RowOf<'executions'>, 'tenant'>;

/** Which packet an agent asked about a call with, and what the call was. */
export type StoredCall = Omit<RowOf<'calls'>, 'tenant'>;

const columns = [
  ...(['packet_id', 'question_id', 'id', 'status', 'arguments_digest', 'started_at'] as const),
  ...(['agent_id', 'key_id', 'family', 'ended_at', 'result'] as const),
] as const;
const callColumns = ['agent_id', 'call_id', 'packet_id', 'tool', 'arguments_digest'] as const;

/** The key of an execution in a buffer. A buffer has the executions of several packets, so the key contains the packet. */
export const executionKey = ({ packet_id, question_id }: Pick<StoredExecution, 'packet_id' | 'question_id'>): string =>
  `${packet_id} ${question_id}`;

/** A tenant's executions, by `executionKey`, and calls. */
export class ExecutionBuffer extends TableBuffer<string, StoredExecution> {
  readonly #calls = new Map<string, StoredCall>();
  newCalls: StoredCall[] = [];

  start(stored: StoredExecution): void {
    this.insert(stored);
    this.journal.set(this.found, executionKey(stored), stored);
  }

  call({ agent_id, call_id }: Pick<StoredCall, 'agent_id' | 'call_id'>): StoredCall | undefined {
    return this.#calls.get(nameOf(agent_id, call_id));
  }

  /** Adds a call that the database has. */
  addCall(stored: StoredCall): void {
    this.#calls.set(nameOf(stored.agent_id, stored.call_id), stored);
  }

  insertCall(stored: StoredCall): void {
    this.journal.push(this.newCalls, stored);
    this.journal.set(this.#calls, nameOf(stored.agent_id, stored.call_id), stored);
  }
}

const nameOf = (agent: string, call: string) => JSON.stringify([agent, call]);

const writes: Writes<ExecutionNeeds, ExecutionBuffer> = {
  needs: { executionsOf: true, callOf: true },
  stage: (_tenant, { journal }) => new ExecutionBuffer(journal),

  async find(session, group) {
    const wanted = group.wanted('packet_id', ({ executionsOf }) => (executionsOf === undefined ? undefined : [executionsOf]));
    const calls = group.units.flatMap(({ tenant, unit: { callOf } }) => (callOf === undefined ? [] : [{ tenant, ...callOf }]));
    const named = [...new Map(calls.map((call) => [`${call.tenant} ${nameOf(call.agent_id, call.call_id)}`, call])).values()];
    // Read after the packets are locked, with which all changes of their executions are committed.
    const [rows, found] = await Promise.all([
      session.find('executions', ['tenant', ...columns], wanted),
      session.find('calls', ['tenant', ...callColumns], named),
    ]);
    for (const [tenant, ...values] of rows) {
      const stored = Object.fromEntries(columns.map((column, index) => [column, values[index]])) as unknown as StoredExecution;
      group.of(writes, tenant as number).found.set(executionKey(stored), stored);
    }
    for (const [tenant, ...values] of found)
      group
        .of(writes, tenant as number)
        .addCall(Object.fromEntries(callColumns.map((column, index) => [column, values[index]])) as unknown as StoredCall);
  },

  erase(session, group, erased) {
    for (const { tenant, packet_id } of erased) {
      const own = group.of(writes, tenant);
      own.drop((stored) => stored.packet_id === packet_id);
      own.newCalls = own.newCalls.filter((call) => call.packet_id !== packet_id);
    }
    session.remove('executions', erased);
    session.remove('calls', erased);
  },

  flush(session, group) {
    session.insert(
      'executions',
      group.each(writes, ({ inserted }, tenant) => inserted.map((stored) => ({ tenant, ...stored }))),
    );
    session.update(
      'executions',
      ['tenant', 'packet_id', 'question_id'],
      group.each(writes, ({ changed }, tenant) => [...changed.values()].map((stored) => ({ tenant, ...stored }))),
    );
    session.insert(
      'calls',
      group.each(writes, ({ newCalls }, tenant) => newCalls.map((stored) => ({ tenant, ...stored }))),
    );
  },
};

/** An execution as callers see it. */
export const shownExecution = ({
  id,
  question_id,
  status,
  arguments_digest,
  started_at,
  agent_id,
  key_id,
  ended_at,
  result,
}: StoredExecution): Execution => ({
  ...{ id, question_id, status, arguments_digest, started_at, started_by: { agent_id, key_id }, ended_at },
  result: readJson(result),
});

function reads({ database: { reads: db } }: ReadDependencies) {
  const ofTenant = (scope: ReadScope) => ({
    /** The execution of a question of a packet; undefined if it was not begun. */
    find: (packetId: string, questionId: string): Awaitable<StoredExecution | undefined> => {
      const read = (tenant: number) =>
        db
          .selectFrom('executions')
          .select(columns)
          .where('tenant', '=', tenant)
          .where('packet_id', '=', packetId)
          .where('question_id', '=', questionId)
          .executeTakeFirst();
      return scope.ofPacket(packetId, read, undefined);
    },
  });
  return { ofTenant };
}

/** The executions of approved actions, and the calls that agents asked about. */
export const executions = { writes, reads };
