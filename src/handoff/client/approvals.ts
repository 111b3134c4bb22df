import { ApiError, ClientError } from '../../kit/client-errors.ts';
import { systemClock } from '../../kit/clock.ts';
import { readJson } from '../../kit/json.ts';
import type { Action, ActionDecision as DecidedAction, DecisionWord, Execution } from '../model/action.ts';
import type { ApprovalRequest } from '../model/approval.ts';
import { maxWaitSeconds } from '../model/constants.ts';
import type { AskRequest } from '../model/hitl.ts';
import type { Packet } from '../model/packet.ts';
import { canonicalJson } from '../rules/canonical-json.ts';
import type { HandoffClient } from './client.ts';
import { ActionFailed, ActionRejected, CallChanged, isPassing, isRefusal, NoAnswer, wordsOf } from './errors.ts';

/** What was decided about a tool call. */
export interface ActionDecision {
  readonly decision: DecisionWord;
  /** Whether the tool may be called, with `arguments`. */
  readonly approved: boolean;
  /** The arguments that were approved; with `edit` they are the person's. */
  readonly arguments: Record<string, unknown>;
  /** With which an execution starts. */
  readonly arguments_digest: string;
  /** What the person says to the agent: why it is rejected, or with `respond` what to take instead of the result. */
  readonly message: string | null;
  /** The packet that asks, with all of the decision in `hitl`. */
  readonly packet: Packet;
}

/** What `approve` and `requiresApproval` take beside the call: fields of the action and of the request, and how long to wait. */
export interface ApprovalOptions
  extends Omit<Action, 'tool' | 'arguments' | 'arguments_digest' | 'call_id'>,
    Omit<ApprovalRequest, 'agent' | 'action' | 'timeout_seconds'> {
  /** The id of the agent that asks. */
  readonly agent: string;
  /** What the agent runs on. */
  readonly framework?: string;
  /** How long to wait for a decision; without end by default. */
  readonly timeoutSeconds?: number;
  /** Ends the waiting. The question stays. */
  readonly signal?: AbortSignal;
}

/** The options of `approve`. */
export interface ApproveOptions extends ApprovalOptions {
  /** The id of the call, which is the same when the program is started over. */
  readonly call_id: string;
}

/** The options of `requiresApproval`. */
export interface RequiresApprovalOptions<Args extends object, Rest extends readonly unknown[]> extends ApprovalOptions {
  /** What people see; the function's name by default. */
  readonly tool?: string;
  /** The id of a call, or a function of the call that returns it; by default that which the framework hands in. */
  readonly call_id?: string | ((given: Args, ...rest: Rest) => string);
}

/** What approvals need of their client. */
export interface ApprovalDependencies {
  readonly client: HandoffClient;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** A tool call that needs an approval. */
interface Call {
  readonly action: Action & { readonly call_id: string };
  readonly fields: Omit<ApprovalRequest, 'action'>;
  readonly timeoutSeconds: number | undefined;
  readonly signal: AbortSignal | undefined;
}

/** How often the end of an execution is reported while the service is unavailable. */
const attempts = 8;
const finalStatuses: readonly string[] = ['completed', 'failed', 'expired'];

/** Asks about tool calls, waits, and executes what was approved once. */
export class Approvals {
  readonly #client: HandoffClient;
  readonly #sleep: ApprovalDependencies['sleep'];

  constructor({ client, sleep }: ApprovalDependencies) {
    this.#client = client;
    this.#sleep = sleep;
  }

  /** The decision about a call. */
  approve(tool: string, given: object, options: ApproveOptions): Promise<ActionDecision> {
    return this.#decide(callOf(tool, given, options.call_id, options));
  }

  /** The function that asks, waits, and runs once. */
  requiresApproval<Args extends object, Rest extends readonly unknown[], Result>(
    run: (given: Args, ...rest: Rest) => Result | Promise<Result>,
    { tool = run.name, call_id, ...options }: RequiresApprovalOptions<Args, Rest>,
  ): (given: Args, ...rest: Rest) => Promise<Result> {
    if (tool === '') throw new TypeError('The function has no name: give `tool`.');
    return async (given, ...rest) => {
      const id = typeof call_id === 'function' ? call_id(given, ...rest) : (call_id ?? callIdIn(rest));
      if (id === undefined) throw new TypeError(`The call of ${tool} needs a call_id, which is the same when the program is started over.`);
      return (await this.#execute(callOf(tool, given, id, options), async (approved) => run(approved as Args, ...rest))) as Result;
    };
  }

  /**
   * Asks about the call, or finds what became of it, and waits for the decision. Where a question is over without a decision, or its
   * approval is, it is asked anew: in the same packet, or, if that has ended, in a new one.
   * @param over the question whose approval the service calls expired
   */
  async #decide(call: Call, over?: string): Promise<ActionDecision> {
    // Counted from before the question is asked, so that it passes before the time of the question.
    const until = call.timeoutSeconds === undefined ? undefined : systemClock().getTime() + call.timeoutSeconds * 1000;
    let ended: Packet | undefined;
    for (let count = 1; ; count += 1) {
      const packet = await this.#ask(call, count, ended);
      const decided = await this.#decisionIn(call, packet, until, over);
      if (!('ended' in decided)) return decided;
      ({ ended } = decided);
    }
  }

  /** The packet that asks about the call; the next one where all before have ended without an approval. */
  async #ask({ action, fields, signal }: Call, count: number, ended: Packet | undefined): Promise<Packet> {
    const next = ended === undefined ? {} : { parent_packet_id: ended.id };
    const asked = ended === undefined ? action : { ...action, call_id: `${action.call_id}~${count}` };
    try {
      return await this.#client.askApproval({ body: { ...fields, ...next, action: asked }, ...signalled(signal) });
    } catch (error) {
      if (!isRefusal(error, 'CALL_CHANGED')) throw error;
      // A framework that carries an edit calls the tool with what was approved.
      const changed = new CallChanged(error);
      const packet = await this.#read(changed.packet_id);
      if (isApprovedAs(packet, action)) return packet;
      throw changed;
    }
  }

  /** The decision in a packet, or the packet that has ended without one that holds. */
  async #decisionIn(
    call: Call,
    first: Packet,
    until: number | undefined,
    over: string | undefined,
  ): Promise<ActionDecision | { ended: Packet }> {
    let packet = first;
    for (let waited = false; ; ) {
      const decision = packet.hitl?.decision;
      const isEnded = finalStatuses.includes(packet.status);
      if (decision !== undefined) {
        // The service says when an approval has expired: clocks differ.
        if (packet.status === 'expired' && decision.valid_until !== null) return { ended: packet };
        if (packet.hitl?.question_id !== over) return shown(decision, packet);
        packet = await this.#askAnew(call, packet);
        continue;
      }
      try {
        const state = await this.#stateOf(packet);
        if ((state === 'open' || state === 'timed_out') && until !== undefined && systemClock().getTime() >= until)
          throw new NoAnswer(`Nobody decided about ${call.action.tool} within ${call.timeoutSeconds} seconds.`);
        if (state === 'open') {
          waited = true;
          packet = await this.#wait(packet, until, call.signal);
        } else if (state === 'timed_out' || (state === 'withdrawn' && !waited)) {
          if (isEnded) return { ended: packet };
          packet = await this.#askAnew(call, packet);
        } else if (state === 'withdrawn' || state === 'ended')
          throw new NoAnswer(`Nobody decided about ${call.action.tool}: the question is ${state}.`);
        // It was answered or changed just now.
        else packet = await this.#read(packet.id);
      } catch (error) {
        if (!isPassing(error) || (until !== undefined && systemClock().getTime() >= until)) throw error;
        await this.#sleep(1000, call.signal);
      }
    }
  }

  #read(id: string): Promise<Packet> {
    return this.#client.getPacket({ params: { id } });
  }

  /** The packet after its next change, or after a while. */
  #wait({ id, hitl, revision }: Packet, until: number | undefined, signal: AbortSignal | undefined): Promise<Packet> {
    const now = systemClock().getTime();
    const ends = [until, hitl?.expires_at == null ? undefined : Date.parse(hitl.expires_at)].filter((end) => end !== undefined);
    const seconds = Math.max(1, Math.min(maxWaitSeconds, ...ends.map((end) => Math.ceil((end - now) / 1000))));
    return this.#client.getPacket({ params: { id }, query: { wait_seconds: seconds, until_revision: revision + 1 }, ...signalled(signal) });
  }

  /** Where the packet's latest question stands. */
  async #stateOf({ id, hitl, status }: Packet): Promise<string> {
    if (hitl?.question_id == null) return 'withdrawn';
    if (status === 'awaiting_human' && hitl.expires_at === null) return 'open';
    return (await this.#client.getQuestion({ params: { id, question_id: hitl.question_id } })).state;
  }

  /** Asks the latest question of a packet again. A person is told of an execution that may have happened. */
  async #askAnew({ fields }: Call, { id, claimed_by }: Packet): Promise<Packet> {
    const { questions } = await this.#client.listQuestions({ params: { id }, query: { limit: 200 } });
    const earlier = questions.at(-1)!;
    const begun = await this.#executionOf(id, earlier.question_id);
    const happened = begun?.status === 'started' ? ` An execution began at ${begun.started_at} and may have happened.` : '';
    const { timeout_seconds, on_timeout } = fields;
    const again = { ...earlier.question, timeout_seconds, on_timeout, reason: `${earlier.question.reason}${happened}`.trim() };
    try {
      return await this.#client.askQuestion({
        params: { id },
        body: again as AskRequest,
        headers: claimed_by === null ? {} : { 'x-agent-id': claimed_by.agent_id },
      });
    } catch (error) {
      // Another process has asked.
      if (!isRefusal(error, 'QUESTION_OPEN')) throw error;
      return this.#read(id);
    }
  }

  async #executionOf(id: string, question_id: string): Promise<Execution | undefined> {
    try {
      return await this.#client.getExecution({ params: { id }, query: { question_id } });
    } catch (error) {
      if (error instanceof ApiError && error.status_code === 404) return undefined;
      throw error;
    }
  }

  /** Asks, waits, and calls the tool once with what was approved; the result is that of the first call. */
  async #execute(call: Call, run: (given: Record<string, unknown>) => Promise<unknown>): Promise<unknown> {
    const { tool } = call.action;
    let decision = await this.#decide(call);
    while (decision.approved) {
      const begun = await this.#begin(decision);
      if (begun === undefined) return this.#run(decision, run);
      const { code, execution } = begun;
      if (execution?.status === 'succeeded') return execution.result;
      if (execution?.status === 'failed') throw new ActionFailed(`${tool} failed: ${String(execution.result)}`, execution);
      if (execution !== undefined) await this.#askAnew(call, decision.packet);
      decision = await this.#decide(call, code === 'APPROVAL_EXPIRED' ? (decision.packet.hitl?.question_id ?? undefined) : undefined);
    }
    if (decision.decision === 'respond') return decision.message;
    throw new ActionRejected(decision.message ?? `${tool} was rejected.`, decision);
  }

  /** Starts the execution: undefined, or why it can't be started, with the execution that has begun before. */
  async #begin({
    packet,
    arguments_digest,
  }: ActionDecision): Promise<{ code: string | undefined; execution: Execution | undefined } | undefined> {
    try {
      await this.#client.startExecution({ params: { id: packet.id }, body: { arguments_digest } });
      return undefined;
    } catch (error) {
      if (!isRefusal(error, 'ALREADY_EXECUTED', 'APPROVAL_EXPIRED', 'NOT_APPROVED', 'DIGEST_MISMATCH')) throw error;
      return { code: error.code, execution: error.body.execution as Execution | undefined };
    }
  }

  async #run(decision: ActionDecision, run: (given: Record<string, unknown>) => Promise<unknown>): Promise<unknown> {
    let result: unknown;
    try {
      result = await run(decision.arguments);
    } catch (error) {
      await this.#report(decision, { status: 'failed', result: wordsOf(error, 'The tool failed.') });
      throw error;
    }
    await this.#report(decision, { status: 'succeeded', result: jsonOrText(result) });
    return result;
  }

  /** Reports the end of the execution. If that fails, it stays `started`: what was executed is not undone. */
  async #report({ packet: { id, hitl } }: ActionDecision, report: { status: 'succeeded' | 'failed'; result?: unknown }): Promise<void> {
    let body = report;
    for (let attempt = 1; ; ) {
      try {
        await this.#client.endExecution({ params: { id }, query: { question_id: hitl!.question_id! }, body });
        return;
      } catch (error) {
        const isTooLarge = error instanceof ApiError && (error.status_code === 400 || error.status_code === 413) && 'result' in body;
        if (!(error instanceof ClientError) || (!isTooLarge && (!isPassing(error) || attempt >= attempts))) {
          console.error(`The execution of ${id} could not be reported.`, error);
          return;
        }
        // The end is reported without a result that is too large.
        if (isTooLarge) body = { status: body.status };
        else await this.#sleep(Math.min(10_000, 250 * 2 ** attempt));
        attempt += 1;
      }
    }
  }
}

/** The call to ask about. */
function callOf(
  tool: string,
  given: object,
  call_id: string,
  { agent, framework, title, description, schema, decisions, valid_seconds, timeoutSeconds, signal, ...fields }: ApprovalOptions,
): Call {
  const { call_id: _, ...rest } = fields as typeof fields & { call_id?: unknown };
  return {
    action: givenOf({ tool, arguments: given as Record<string, unknown>, call_id, title, description, schema, decisions, valid_seconds }),
    fields: givenOf({
      ...rest,
      agent: givenOf({ id: agent, framework }),
      timeout_seconds: timeoutSeconds === undefined ? undefined : Math.max(1, Math.ceil(timeoutSeconds)),
    }),
    ...{ timeoutSeconds, signal },
  };
}

/** The fields that are not undefined. */
const givenOf = <Fields extends object>(fields: Fields): { [Name in keyof Fields]: Exclude<Fields[Name], undefined> } =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;

const signalled = (signal: AbortSignal | undefined) => (signal === undefined ? {} : { signal });

const shown = ({ decision, arguments: given, arguments_digest, message, valid_until }: DecidedAction, packet: Packet): ActionDecision => ({
  ...{ decision, approved: valid_until !== null, arguments: given, arguments_digest, message, packet },
});

/** Whether a packet's action is approved with exactly these arguments. */
function isApprovedAs({ hitl }: Packet, action: Action): boolean {
  const { decision, action: asked } = hitl ?? {};
  if (decision === undefined || decision.valid_until === null) return false;
  return asked?.tool === action.tool && canonicalJson(decision.arguments) === canonicalJson(action.arguments);
}

/** The id of the call in what a framework hands in beside the arguments: AI SDK, Claude Agent SDK, OpenAI Agents SDK. */
function callIdIn(rest: readonly unknown[]): string | undefined {
  for (const one of rest) {
    const { toolCallId, toolUseID, toolCall } = (one ?? {}) as {
      toolCallId?: unknown;
      toolUseID?: unknown;
      toolCall?: { callId?: unknown };
    };
    const found = toolCallId ?? toolUseID ?? toolCall?.callId;
    if (typeof found === 'string') return found;
  }
  return undefined;
}

/** A result as it is reported: its JSON, or its text where it has none. */
function jsonOrText(result: unknown): unknown {
  try {
    return result === undefined ? null : readJson(JSON.stringify(result));
  } catch {
    return String(result);
  }
}
