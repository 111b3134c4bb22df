import { hash } from 'node:crypto';
import { type Fault, invalid, invalidRequest } from '../../kit/errors.ts';
import type { Action } from '../model/action.ts';
import type { Question } from '../model/hitl.ts';
import { canonicalJson } from './canonical-json.ts';
import type { AnyPacket } from './packet.ts';
import type { Subject } from './policy.ts';

/** The largest arguments, as bytes of their JSON, and their depth. */
const maxArgumentBytes = 64 * 1024;
const maxArgumentDepth = 32;

/** The SHA-256, in hex, of the canonical JSON (RFC 8785) of arguments. */
export const argumentsDigestOf = (given: Action['arguments']): string => hash('sha256', canonicalJson(given));

/** Requires arguments that are digested and executed as they are shown. @throws ServiceError 400 */
export function requireSoundArguments(given: Action['arguments'], field: string): void {
  const fault = faultIn(given, 1);
  if (fault !== undefined) throw invalid(field, `${field} ${fault}.`);
  const size = Buffer.byteLength(JSON.stringify(given));
  if (size > maxArgumentBytes) throw invalid(field, `${field} has ${size} bytes as JSON; at most ${maxArgumentBytes} are allowed.`);
}

function faultIn(value: unknown, depth: number): string | undefined {
  // A larger integer may have been another one before it was parsed.
  if (typeof value === 'number' && !Number.isSafeInteger(value) && (Number.isInteger(value) || !Number.isFinite(value)))
    return "has a number that a double can't hold exactly; send it as a text";
  if (typeof value !== 'object' || value === null) return undefined;
  if (depth > maxArgumentDepth) return `is nested deeper than ${maxArgumentDepth}`;
  for (const inner of Object.values(value)) {
    const fault = faultIn(inner, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** A question with its action as it is stored: sound, with the digest of its arguments. @throws ServiceError 400 */
export function withSoundAction<Q extends Partial<Question>>(question: Q, path: string): Q {
  const { action } = question;
  if (action === undefined) return question;
  const field = `${path}action`;
  if (question.options !== undefined)
    throw invalid(`${path}options`, `${path}options can't stand beside an action, whose decisions are offered.`);
  if (question.schema !== undefined)
    throw invalid(`${path}schema`, `${path}schema can't stand beside an action; its arguments have ${field}.schema.`);
  requireSoundArguments(action.arguments, `${field}.arguments`);
  const arguments_digest = argumentsDigestOf(action.arguments);
  if (action.arguments_digest !== undefined && action.arguments_digest !== arguments_digest)
    throw invalid(`${field}.arguments_digest`, `${field}.arguments_digest is not that of the arguments; leave it out.`);
  return { ...question, action: { ...action, arguments_digest }, question: question.question ?? `Run ${action.tool}?` };
}

/** The subject that policies judge: an action that an agent asks about in a packet. */
export function subjectOf(
  { metadata, claimed_by, ...packet }: AnyPacket,
  { tool }: Action,
  given: Action['arguments'],
  agent: string,
): Subject {
  const holder = claimed_by?.agent_id === agent ? claimed_by.framework : null;
  const custom = 'counts' in packet ? {} : packet.context.custom;
  const framework = holder ?? (metadata.source_agent.id === agent ? metadata.source_agent.framework : '');
  return { tool, arguments: given, agent, framework, tags: metadata.tags, priority: metadata.priority, custom };
}

/** @throws ServiceError 400 with each fault of arguments by the schema of their action */
export function requireSatisfied(faults: readonly Fault[]): void {
  if (faults.length > 0) throw invalidRequest(faults);
}
