import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { ApiError } from '../../kit/client-errors.ts';
import { isObject, readJson } from '../../kit/json.ts';
import { beginningOf } from '../../kit/wording.ts';
import type { ActionDecision, ApproveOptions } from '../client/approvals.ts';
import type { HandoffClient } from '../client/client.ts';
import { NoAnswer } from '../client/errors.ts';
import type { Context } from './context.ts';
import { explain } from './errors.ts';
import type { Options } from './rows.ts';
import { CliError } from './terminal.ts';

/** A tool call that a hook is told of. */
interface HookCall {
  readonly program: 'Claude Code' | 'Codex';
  readonly event: 'PreToolUse' | 'PermissionRequest';
  readonly tool: string;
  readonly input: Record<string, unknown>;
  readonly callId: string;
}

/** How often the process looks whether the program that started it is still there. */
const lookMs = 1000;
/** The largest input. */
const maxInput = 4 * 1024 * 1024;

/**
 * `approve-hook`: asks about the tool call in the JSON on standard input, waits, and prints the hook's decision. Whatever else happens
 * ends with exit code 2, at which both programs block the call: there is no approval but a decision.
 */
export async function approveHook(context: Context, options: Options): Promise<void> {
  const stopping = new AbortController();
  const unwatch = watch(stopping);
  try {
    const call = callIn(await textOf(context));
    const only = (options.only ?? []) as readonly string[];
    if (only.length > 0 && !only.some((glob) => fits(glob, call.tool))) return;
    const decision = await decisionOf(await context.client(), call, options, stopping.signal);
    context.out.line(JSON.stringify({ hookSpecificOutput: { hookEventName: call.event, ...answerOf(call, decision) } }));
  } catch (error) {
    if (stopping.signal.aborted) throw new CliError('The call is not approved: the hook was interrupted.');
    const reason = error instanceof NoAnswer ? error.message : (await explain(error, context)).message;
    throw new CliError(`The call is not approved: ${reason}`);
  } finally {
    unwatch();
  }
}

/** Aborts on SIGTERM and SIGINT, and when the program that waits for the decision has ended: then nobody would use it. */
function watch(stopping: AbortController): () => void {
  const stop = () => stopping.abort();
  const before = ancestors();
  const looking = setInterval(() => ancestors() !== before && stop(), lookMs);
  for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(name, stop);
  return () => {
    clearInterval(looking);
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.off(name, stop);
  };
}

/** The process that started this one and, where the system has `/proc`, the one before: programs start hooks by a shell. */
function ancestors(): string {
  const parent = process.ppid;
  try {
    // The name of the program, in parentheses, may have spaces; the status and the parent follow.
    return `${parent} ${/\) \S (\d+)/.exec(readFileSync(`/proc/${parent}/stat`, 'latin1'))?.[1]}`;
  } catch {
    return String(parent);
  }
}

async function textOf({ stdin }: Context): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of stdin()) {
    const bytes = Buffer.from(part);
    size += bytes.length;
    if (size > maxInput) throw new CliError('The input of the hook is larger than 4 MiB.');
    parts.push(bytes);
  }
  return Buffer.concat(parts).toString();
}

/** The call in the input of a hook. @throws CliError for any other input */
function callIn(text: string): HookCall {
  let given: unknown;
  try {
    given = readJson(text);
  } catch {
    throw new CliError('standard input is not the JSON of a hook.');
  }
  if (!isObject(given)) throw new CliError('standard input is not the JSON of a hook.');
  const { hook_event_name: event, session_id: session, tool_name: tool, tool_input: input, tool_use_id: id, turn_id: turn } = given;
  // Only Codex names the turn.
  const program = turn === undefined ? 'Claude Code' : 'Codex';
  if (event !== 'PermissionRequest' && !(event === 'PreToolUse' && program === 'Claude Code'))
    throw new CliError(
      `${String(event)} of ${program} is no hook that this command answers; it answers PermissionRequest, and PreToolUse of Claude Code.`,
    );
  if (typeof tool !== 'string' || tool === '' || !isObject(input))
    throw new CliError('the input of the hook has no tool_name and tool_input.');
  if (typeof id === 'string' && id !== '') return { program, event, tool, input, callId: id };
  if (typeof session !== 'string' || session === '') throw new CliError('the input of the hook has neither tool_use_id nor session_id.');
  const digest = createHash('sha256')
    .update(JSON.stringify([tool, input]))
    .digest('hex');
  return { program, event, tool, input, callId: `${beginningOf(session, 128)}:${digest}` };
}

/** Whether a name fits a pattern in which `*` stands for any text. */
function fits(glob: string, name: string): boolean {
  const literal = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${literal.join('.*')}$`, 's').test(name);
}

/**
 * The decision about a call; undefined where it is left open. A permission is given once: where it was given before, the tool may have
 * run, and a person is asked again.
 */
async function decisionOf(
  client: HandoffClient,
  call: HookCall,
  options: Options,
  signal: AbortSignal,
): Promise<ActionDecision | undefined> {
  const { program, tool, input } = call;
  const isDeferred = options.defer === true && call.event === 'PreToolUse';
  let reason: string | undefined;
  for (let count = 1; ; count += 1) {
    const asking: ApproveOptions = {
      agent: String(options.agent ?? program.toLowerCase().replace(' ', '-')),
      call_id: count === 1 ? call.callId : `${call.callId}#${count}`,
      ...{ framework: program, signal, decisions: ['approve', 'edit', 'reject', 'respond'] },
      ...(reason === undefined ? {} : { reason }),
    };
    if (isDeferred) {
      const { agent, call_id, decisions, framework, signal: _, ...fields } = asking;
      const body = {
        ...fields,
        agent: { id: agent, framework: framework! },
        action: { tool, arguments: input, call_id, decisions: decisions! },
      };
      if ((await client.askApproval({ body, signal })).status === 'awaiting_human') return undefined;
    }
    const waits = isDeferred ? {} : ({ timeoutSeconds: Number(options.timeout), on_timeout: 'expire' } as const);
    const decision = await client.approve(tool, input, { ...asking, ...waits });
    // Codex can't run what a person has changed.
    if (!decision.approved || (decision.decision === 'edit' && program === 'Codex')) return decision;
    const begun = await given(client, decision, program);
    if (begun === undefined) return decision;
    reason = `The permission was given at ${begun}, and the tool may have run.`;
  }
}

/** Gives the permission of a decision; the time when it was given before. */
async function given(
  client: HandoffClient,
  { packet: { id, hitl }, arguments_digest }: ActionDecision,
  program: string,
): Promise<string | undefined> {
  const params = { id };
  try {
    await client.startExecution({ params, body: { arguments_digest } });
    const query = { question_id: hitl!.question_id! };
    await client.endExecution({ params, query, body: { status: 'succeeded', result: `${program} has the permission.` } });
    return undefined;
  } catch (error) {
    const execution = error instanceof ApiError ? (error.body.execution as { started_at?: string } | undefined) : undefined;
    if (execution?.started_at === undefined) throw error;
    return execution.started_at;
  }
}

/** The hook's decision as its program reads it. */
function answerOf({ event, program }: HookCall, decision: ActionDecision | undefined): object {
  if (decision === undefined) return { permissionDecision: 'defer', permissionDecisionReason: 'A person is asked.' };
  const isEdit = decision.decision === 'edit';
  const isAllowed = decision.approved && !(isEdit && program === 'Codex');
  const updated = isEdit ? { updatedInput: decision.arguments } : {};
  if (isAllowed)
    return event === 'PreToolUse' ? { permissionDecision: 'allow', ...updated } : { decision: { behavior: 'allow', ...updated } };
  const message = isEdit
    ? `Not approved as it is. These arguments would be: ${JSON.stringify(decision.arguments)}`
    : (decision.message ?? 'The call was rejected.');
  return event === 'PreToolUse'
    ? { permissionDecision: 'deny', permissionDecisionReason: message }
    : { decision: { behavior: 'deny', message } };
}
