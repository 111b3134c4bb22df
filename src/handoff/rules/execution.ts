import { ServiceError } from '../../kit/errors.ts';
import type { Execution } from '../model/action.ts';
import { errors } from '../model/errors.ts';
import type { KeptOfQuestions } from './kept.ts';
import { type LeaseProof, leaseAfter, requireToken, type StoredLease } from './lease.ts';
import type { AnyPacket, Decision, PacketEvent } from './packet.ts';
import { allows, move, touched } from './packet-life.ts';
import { latestQuestion } from './question-state.ts';

interface ExecutionInputs {
  readonly now: Date;
  readonly kept: KeptOfQuestions;
  readonly lease: StoredLease | null;
  readonly proof: LeaseProof;
}

/** An approval of the packet's latest question that can be executed now: the id of its question. @throws ServiceError 409 that says why not */
export function requireExecutable(packet: AnyPacket, digest: string, begun: Execution | undefined, now: Date): string {
  const latest = latestQuestion(packet, now);
  if (begun !== undefined)
    throw new ServiceError(
      errors.ALREADY_EXECUTED,
      `The execution began at ${begun.started_at}${begun.ended_at === null ? ' and may have happened' : ''}.`,
      {
        extra: { execution: begun },
      },
    );
  const decision = latest.state === 'answered' ? latest.answer.decision : undefined;
  if (latest.state !== 'answered' || decision === undefined || decision.valid_until === null)
    throw new ServiceError(
      errors.NOT_APPROVED,
      decision === undefined ? 'The packet has no approved action.' : `The decision is ${decision.decision}.`,
    );
  if (decision.arguments_digest !== digest)
    throw new ServiceError(errors.DIGEST_MISMATCH, 'The arguments are not those that were approved; execute hitl.decision.arguments.');
  if (now >= new Date(decision.valid_until))
    throw new ServiceError(errors.APPROVAL_EXPIRED, `The approval was valid until ${decision.valid_until}; ask again.`);
  if (!allows(packet, 'complete'))
    throw new ServiceError('CONFLICT', `The packet is ${packet.status}: its action can't be executed any more.`);
  return latest.asked.question_id;
}

/** The packet with its execution started. */
export const started = <P extends AnyPacket>(packet: P, execution: Execution, inputs: ExecutionInputs): Decision<P> =>
  changed(packet, execution, 'execution_started', inputs);

/** The packet with the end of an execution. A packet that `POST /approvals` made is completed, unless another question has been asked since. */
export function ended<P extends AnyPacket>(packet: P, execution: Execution, inputs: ExecutionInputs): Decision<P> {
  const decision = changed(packet, execution, execution.status === 'failed' ? 'execution_failed' : 'execution_succeeded', inputs);
  const isLatest = packet.hitl?.question_id === execution.question_id;
  if (inputs.kept.own === undefined || !isLatest || !allows(packet, 'complete')) return decision;
  const event: PacketEvent = {
    ...{ event_type: 'completed', type: 'packet.completed', actor: `agent:${execution.started_by.agent_id}` },
    details: { execution_id: execution.id },
  };
  const completed = { ...decision, packet: move(packet, 'complete', inputs.now), events: [...decision.events, event] };
  return { ...completed, ...leaseOf(completed.packet, inputs) };
}

const leaseOf = (packet: AnyPacket, { lease, now }: ExecutionInputs) => (packet.lease === null ? {} : leaseAfter(packet, lease, now));

function changed<P extends AnyPacket>(
  packet: P,
  { id, question_id, arguments_digest, started_by }: Execution,
  event_type: 'execution_started' | 'execution_succeeded' | 'execution_failed',
  { now, kept, lease, proof }: ExecutionInputs,
): Decision<P> {
  requireToken(packet, lease, proof, now);
  const event: PacketEvent = {
    ...{ event_type, type: 'packet.updated', actor: `agent:${started_by.agent_id}` },
    details: { execution_id: id, question_id, arguments_digest },
  };
  return {
    ...{ packet: touched(packet, now), events: [event], searchable: false },
    kept: kept.own === undefined ? kept : { ...kept, own: 'begun' },
  };
}
