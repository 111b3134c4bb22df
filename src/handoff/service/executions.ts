import { conflict, invalid, notFound, ServiceError } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import { isId } from '../../kit/uuid.ts';
import type { Execution } from '../model/action.ts';
import { requireKept } from '../rules/erasure.ts';
import { isOfFamily, withSource } from '../rules/exclusion.ts';
import { ended, requireExecutable, started } from '../rules/execution.ts';
import type { AnyPacket, Decision } from '../rules/packet.ts';
import { latestQuestion } from '../rules/question-state.ts';
import { actingAgent } from '../rules/rights.ts';
import { executionKey, type StoredExecution, shownExecution } from '../store/executions.ts';
import type { Idempotency } from '../store/idempotency.ts';
import type { Provenance } from '../store/provenance.ts';
import type { Transaction } from '../store/transaction.ts';
import { type Caller, familyOf, provenanceOf } from './authentication.ts';
import type { ChangeOptions } from './change.ts';
import type { ServiceDependencies } from './dependencies.ts';
import type { PacketViews } from './packet-views.ts';

/** The largest result, as bytes of its JSON. */
const maxResultBytes = 64 * 1024;

interface ExecutionDependencies extends ServiceDependencies {
  views: PacketViews;
}

/** The answer to the start of an execution, as JSON, and whether it repeats that to an earlier request. */
export interface StartedExecution {
  readonly text: string;
  readonly replayed: boolean;
}

/** The operations on the executions of approved actions. Of several requests to start the same execution, exactly one succeeds. */
export function createExecutionService({ store, clock, newId, views }: ExecutionDependencies) {
  return {
    /** Starts the execution of the approved action of a packet. @throws ServiceError 409 unless this call is the first for its approval */
    async start(
      caller: Caller,
      id: string,
      digest: string,
      { agentId, token, holder, idempotency }: ChangeOptions & { readonly idempotency?: Idempotency | undefined } = {},
    ): Promise<StartedExecution> {
      if (!isId(id)) throw notFound('packet');
      const acting = actingAgent(caller, agentId);
      const at = provenanceOf(caller, clock());
      return store.of(caller).commit<StartedExecution>({
        packets: [id],
        executionsOf: id,
        idempotencyKey: idempotency?.key,
        notifies: true,
        work(transaction) {
          const { packets, executions, idempotency: answers } = transaction;
          const again = answers.repeated(idempotency);
          if (again !== undefined) return { text: again.body, replayed: true };
          const packet = packets.get(id);
          if (packet === undefined) throw notFound('packet');
          requireKept(packet);
          const latest = latestQuestion(packet, at.now);
          const begun =
            latest.state === 'answered'
              ? executions.get(executionKey({ packet_id: id, question_id: latest.asked.question_id }))
              : undefined;
          const question_id = requireExecutable(packet, digest, begun && shownExecution(begun), at.now);
          const agent_id = acting ?? packet.claimed_by?.agent_id ?? packet.metadata.source_agent.id;
          const execution: StoredExecution = {
            ...{ packet_id: id, question_id, id: newId(at.now), status: 'started', arguments_digest: digest },
            ...{ started_at: at.now.toISOString(), agent_id, key_id: caller.key_id },
            ...{ family: JSON.stringify(withSource([], familyOf(caller))), ended_at: null, result: 'null' },
          };
          const shown = shownExecution(execution);
          carryOut(
            transaction,
            started(packet, shown, { now: at.now, kept: packets.kept(id), lease: packets.lease(id), proof: { token, holder } }),
            at,
          );
          executions.start(execution);
          const text = JSON.stringify({ execution: shown });
          if (idempotency !== undefined) answers.remember(idempotency, { status: 201, body: text, etag: null }, at.now, [id]);
          return { text, replayed: false };
        },
      });
    },

    /** Reports the end of the execution of the packet's latest question, or of the one that is named, once. @throws ServiceError 403, 404, 409 */
    async end(
      caller: Caller,
      id: string,
      { status, result = null, questionId }: { status: 'succeeded' | 'failed'; result?: unknown; questionId?: string | undefined },
      options: ChangeOptions = {},
    ) {
      if (!isId(id)) throw notFound('packet');
      const text = JSON.stringify(result);
      const size = Buffer.byteLength(text);
      if (size > maxResultBytes) throw invalid('result', `result has ${size} bytes as JSON; at most ${maxResultBytes} are allowed.`);
      actingAgent(caller, options.agentId);
      const at = provenanceOf(caller, clock());
      return store.of(caller).commit<Execution>({
        packets: [id],
        executionsOf: id,
        notifies: true,
        work(transaction) {
          const { packets, executions } = transaction;
          const packet = packets.get(id);
          if (packet === undefined) throw notFound('packet');
          requireKept(packet);
          const question_id = questionId ?? packet.hitl?.question_id;
          const begun = question_id ? executions.get(executionKey({ packet_id: id, question_id })) : undefined;
          if (begun === undefined) throw notFound('execution');
          if (!caller.admin && !isOfFamily(readJson(begun.family) as string[], familyOf(caller)))
            throw new ServiceError(
              'FORBIDDEN',
              'Only the key that started the execution, one of its family or an admin key may report its end.',
            );
          if (begun.status !== 'started')
            throw conflict(`The execution has ended: ${begun.status} at ${begun.ended_at}.`, { execution: shownExecution(begun) });
          const after: StoredExecution = { ...begun, status, ended_at: at.now.toISOString(), result: text };
          const shown = shownExecution(after);
          const { token, holder } = options;
          const decision = ended(packet, shown, {
            now: at.now,
            kept: packets.kept(id),
            lease: packets.lease(id),
            proof: { token, holder },
          });
          carryOut(transaction, decision, at);
          executions.save(executionKey(begun), after);
          return shown;
        },
      });
    },

    /** The execution of the latest question of a packet, or of the question that is named. @throws ServiceError 404 */
    async get(caller: Caller, id: string, questionId?: string): Promise<Execution> {
      const view = isId(id) ? await views.of(caller, id) : undefined;
      if (view === undefined) throw notFound('packet');
      const question = questionId ?? view.packet.hitl?.question_id;
      const found = question ? await store.of(caller).executions.find(view.packet.id, question) : undefined;
      if (found === undefined) throw notFound('execution');
      return shownExecution(found);
    },
  };
}

/** Stores the packet after the start or the end of its execution. `changeIn` does so for all commands. */
function carryOut({ packets, trail }: Transaction, { packet, lease, kept, searchable, events }: Decision<AnyPacket>, at: Provenance): void {
  packets.save(packet, { searchable, lease, kept });
  trail.append(packet, events, at);
}

export type ExecutionService = ReturnType<typeof createExecutionService>;
