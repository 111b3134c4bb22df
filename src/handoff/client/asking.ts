import { ApiError } from '../../kit/client-errors.ts';
import { systemClock } from '../../kit/clock.ts';
import { maxWaitSeconds } from '../model/constants.ts';
import type { Answer, AskRequest, Question } from '../model/hitl.ts';
import type { Packet } from '../model/packet.ts';
import type { QuestionView } from '../model/question.ts';
import {
  type ActionDecision,
  type ApprovalDependencies,
  type ApprovalOptions,
  Approvals,
  type RequiresApprovalOptions,
} from './approvals.ts';
import { isPassing, isRefusal, NoAnswer, QuestionChanged } from './errors.ts';

/** The fields of a question beside its text. */
export interface AskOptions extends Partial<Omit<Question, 'question' | 'required' | 'timeout_seconds'>> {
  /** The name of the question, with which it is the same one when it is asked again; by default a number within a run of the handler. */
  readonly key?: string;
  /** How long to wait for an answer; without end by default. */
  readonly timeoutSeconds?: number;
}

/** What an approval takes in a worker, whose agent asks. */
export type WorkerApproval<Options> = Omit<Options, 'agent' | 'call_id'> &
  Partial<Pick<Options & { agent: string; call_id: unknown }, 'agent' | 'call_id'>>;

/** How often a question is asked while the service is unavailable, and withdrawn while its packet changes. */
const attempts = 8;

/** Asks people on behalf of the handler that works on a packet. */
export class Asker {
  /** The packet, as the worker last saw it. */
  packet: Packet;
  readonly #parts: ApprovalDependencies;
  readonly #agentId: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #lost: AbortSignal;
  #asked = 0;
  #calls = 0;
  /** The question before, since a packet has one open question: those that are asked at once wait their turn. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(parts: ApprovalDependencies, agentId: string, packet: Packet, headers: Readonly<Record<string, string>>, lost: AbortSignal) {
    this.packet = packet;
    this.#parts = parts;
    this.#agentId = agentId;
    this.#headers = headers;
    this.#lost = lost;
  }

  /** Asks a person, and waits for the answer. */
  ask(question: string, { key, timeoutSeconds, ...fields }: AskOptions = {}): Promise<Answer> {
    this.#asked += key === undefined ? 1 : 0;
    const body: AskRequest = {
      ...{ reason: 'The agent may not decide this', ...fields, question, key: key ?? `ask-${this.#asked}` },
      ...(timeoutSeconds === undefined ? {} : { timeout_seconds: Math.max(1, Math.round(timeoutSeconds)) }),
    };
    const answer = this.#turn.then(() => this.#answerTo(body, timeoutSeconds));
    this.#turn = answer.catch(() => undefined);
    return answer;
  }

  /** The decision about a call of a tool. */
  approve(
    tool: string,
    given: object,
    options: WorkerApproval<ApprovalOptions & { readonly call_id: string }> = {},
  ): Promise<ActionDecision> {
    return new Approvals(this.#parts).approve(tool, given, {
      ...{ agent: this.#agentId, parent_packet_id: this.packet.id, ...options, call_id: options.call_id ?? this.#nextCallId() },
    });
  }

  /** The function that asks, waits, and runs once. */
  requiresApproval<Args extends object, Rest extends readonly unknown[], Result>(
    run: (given: Args, ...rest: Rest) => Result | Promise<Result>,
    options: WorkerApproval<RequiresApprovalOptions<Args, Rest>> = {},
  ): (given: Args, ...rest: Rest) => Promise<Result> {
    return new Approvals(this.#parts).requiresApproval(run, {
      ...{ agent: this.#agentId, parent_packet_id: this.packet.id, call_id: () => this.#nextCallId(), ...options },
    });
  }

  /** The packet's id with a count within this run of the handler. */
  #nextCallId(): string {
    this.#calls += 1;
    return `${this.packet.id}:${this.#calls}`;
  }

  async #answerTo(body: AskRequest, timeoutSeconds: number | undefined): Promise<Answer> {
    let asked = await this.#question(body);
    const until = timeoutSeconds === undefined ? undefined : systemClock().getTime() + timeoutSeconds * 1000;
    while (asked.answer === null) {
      this.#lost.throwIfAborted();
      const isOpen = asked.state === 'open';
      const isLate = until !== undefined && systemClock().getTime() >= until;
      // A packet that keeps a question beyond its time can't be ended either.
      if ((!isOpen || isLate) && ((await this.#withdraw(asked)) || !isOpen)) throw new NoAnswer(`Nobody answered: ${body.question}`);
      asked = await this.#followed(asked, until);
    }
    return asked.answer;
  }

  /** Asks the question, which its key makes the same one; tries again while the service is unavailable. */
  async #question(body: AskRequest): Promise<QuestionView> {
    const { client, sleep } = this.#parts;
    const params = { id: this.packet.id };
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.packet = await client.askQuestion({ params, body, headers: this.#headers });
        return (await client.listQuestions({ params, query: { key: body.key!, limit: 200 } })).questions.at(-1)!;
      } catch (error) {
        if (isRefusal(error, 'KEY_CHANGED')) throw new QuestionChanged(error);
        if (!isPassing(error) || attempt >= attempts || this.#lost.aborted) throw error;
      }
      await sleep(Math.min(10_000, 250 * 2 ** attempt), this.#lost);
    }
  }

  /** What became of the question after a while; one that this agent has changed is followed. */
  async #followed(asked: QuestionView, until: number | undefined): Promise<QuestionView> {
    const { client, sleep } = this.#parts;
    const { id, revision } = this.packet;
    const left = until === undefined ? maxWaitSeconds : Math.round((until - systemClock().getTime()) / 1000);
    try {
      const query = { wait_seconds: Math.max(1, Math.min(maxWaitSeconds, left)), until_revision: revision + 1 };
      this.packet = await client.getPacket({ params: { id }, query, signal: this.#lost });
      let now = await client.getQuestion({ params: { id, question_id: asked.question_id } });
      while (now.replaced_by !== null) {
        const after = await client.getQuestion({ params: { id, question_id: now.replaced_by } });
        if (after.asked_by.agent_id !== now.asked_by.agent_id) break;
        now = after;
      }
      return now;
    } catch (error) {
      if (!isPassing(error)) throw error;
      await sleep(1000, this.#lost);
      return asked;
    }
  }

  /** Takes a question back, so that the handler can end the packet; false if it is over, or changes each time that it is looked at. */
  async #withdraw({ question_id }: QuestionView): Promise<boolean> {
    const { client } = this.#parts;
    const params = { id: this.packet.id };
    for (let attempt = 1; attempt <= attempts; attempt += 1) {
      const { status, hitl, revision } = await client.getPacket({ params });
      if (status !== 'awaiting_human' || hitl?.question_id !== question_id) return false;
      try {
        this.packet = await client.withdrawQuestion({ params, headers: { 'x-agent-id': this.#agentId, 'if-match': `"${revision}"` } });
        return true;
      } catch (error) {
        if (!(error instanceof ApiError && error.status_code === 412)) throw error;
      }
    }
    return false;
  }
}
