import { ApiError } from '../../kit/client-errors.ts';
import { maxWaitSeconds } from '../model/constants.ts';
import type { Packet, PatchRequest } from '../model/packet.ts';
import { Asker } from './asking.ts';
import type { HandoffClient } from './client.ts';
import { isPassing, wordsOf } from './errors.ts';
import { inSpan } from './spans.ts';

/** What a handler works on. */
export interface WorkContext {
  /** The packet, as the worker last saw it. */
  readonly packet: Packet;
  /** Aborts when another agent may have the packet: stop working on it. */
  readonly lost: AbortSignal;
  /**
   * Asks a person, and waits for the answer without losing the lease. The `key` names the question: asked again with it and the same
   * fields, also by another worker that starts over, it is the same question with the same answer. Without one, questions are numbered
   * within a run of the handler (`ask-1`, ...). Questions asked at once wait their turn. Rejects with NoAnswer if nobody answers within
   * `timeoutSeconds`, and with QuestionChanged if the key belongs to a question with other fields.
   */
  readonly ask: Asker['ask'];
  /** As `approve` of the client. The worker's agent asks; the id of the call is made from the packet and a count within the run. */
  readonly approve: Asker['approve'];
  /** As `requiresApproval` of the client, with the agent and the ids of `approve`. */
  readonly requiresApproval: Asker['requiresApproval'];
}

/** The PATCH that ends the packet; its status is `completed` unless it says otherwise. */
// biome-ignore lint/suspicious/noConfusingVoidType: a handler that returns nothing completes the packet.
export type WorkResult = PatchRequest | undefined | void;

export interface WorkOptions {
  /** How long a claim lasts unless it is renewed; 60 by default. */
  readonly leaseSeconds?: number;
  /** How many packets are worked on at once; 1 by default. */
  readonly concurrency?: number;
  /** Stops the worker. In Node, SIGTERM and SIGINT do as well. */
  readonly signal?: AbortSignal;
  /** How long packets in progress have to end when the worker stops; 10 by default. */
  readonly graceSeconds?: number;
  /** Called with what goes wrong, and the packet if it is about one; by default it is written to the console. */
  readonly onError?: (error: unknown, packet: Packet | undefined) => void;
}

export type WorkHandler = (context: WorkContext) => WorkResult | Promise<WorkResult>;

/** What the worker needs of its client. */
interface WorkerDependencies {
  readonly client: HandoffClient;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

type Outcome = { readonly result: unknown } | { readonly error: unknown };

/** How often the end of a packet is tried while the service is unavailable. */
const attempts = 8;

/**
 * Claims the packets for an agent and hands each to the handler, until it is stopped. Rejects when the service refuses to give any,
 * once the other packets in progress have ended.
 */
export async function runWorker(
  { client, sleep }: WorkerDependencies,
  agentId: string,
  handler: WorkHandler,
  options: WorkOptions,
): Promise<void> {
  const { concurrency = 1, signal, onError = (error, packet) => console.error(packet?.id ?? 'No packet', error) } = options;
  const ending = new AbortController();
  const stop = () => ending.abort();
  signal?.addEventListener('abort', stop);
  if (signal?.aborted) stop();
  const unwatch = onSignals(stop);
  const worker = new Worker({ client, sleep }, agentId, handler, { ...options, onError }, ending.signal);
  try {
    const ended = await Promise.allSettled(Array.from({ length: concurrency }, () => worker.run().finally(stop)));
    const refused = ended.find(({ status }) => status === 'rejected');
    if (refused?.status === 'rejected') throw refused.reason;
  } finally {
    unwatch();
    signal?.removeEventListener('abort', stop);
  }
}

class Worker {
  readonly #client: HandoffClient;
  readonly #sleep: WorkerDependencies['sleep'];
  readonly #agentId: string;
  readonly #handler: WorkHandler;
  readonly #leaseSeconds: number;
  readonly #graceSeconds: number;
  readonly #onError: NonNullable<WorkOptions['onError']>;
  readonly #ending: AbortSignal;

  constructor(
    { client, sleep }: WorkerDependencies,
    agentId: string,
    handler: WorkHandler,
    { leaseSeconds = 60, graceSeconds = 10, onError }: WorkOptions & Required<Pick<WorkOptions, 'onError'>>,
    ending: AbortSignal,
  ) {
    this.#client = client;
    this.#sleep = sleep;
    this.#agentId = agentId;
    this.#handler = handler;
    this.#leaseSeconds = leaseSeconds;
    this.#graceSeconds = graceSeconds;
    this.#onError = onError;
    this.#ending = ending;
  }

  /** Claims and handles packets, one after the other. */
  async run(): Promise<void> {
    for (let failures = 0; !this.#ending.aborted; ) {
      try {
        const body = { agent_id: this.#agentId, lease_seconds: this.#leaseSeconds, wait_seconds: maxWaitSeconds };
        // An aborted request closes its connection, and the service gives it no packet.
        const packet = await this.#client.claimNext({ body, signal: this.#ending });
        failures = 0;
        if (packet !== undefined) await this.#handle(packet);
      } catch (error) {
        if (this.#ending.aborted) return;
        if (!isPassing(error)) throw error;
        failures += 1;
        this.#onError(error, undefined);
        await this.#sleep(Math.min(30_000, 250 * 2 ** Math.min(failures, 7)), this.#ending).catch(() => undefined);
      }
    }
  }

  /** Ends the packet with the outcome of the handler, whatever that is. Never rejects. */
  async #handle(packet: Packet): Promise<void> {
    const lost = new AbortController();
    const done = new AbortController();
    const renewing = this.#renew(packet, lost, done.signal);
    try {
      const parts = { client: this.#client, sleep: this.#sleep };
      const asker = new Asker(parts, this.#agentId, packet, this.#headersOf(packet), lost.signal);
      const working = inSpan(this.#agentId, packet, () => outcomeOf(this.#handler, new HandlerContext(asker, lost.signal)), faultOf);
      const outcome = await Promise.race([working, this.#grace(done.signal)]);
      if (outcome === undefined) {
        done.abort();
        lost.abort(new Error('The worker stops.'));
        await this.#client.releasePacket({ params: { id: packet.id }, headers: this.#headersOf(packet) });
      } else if (!lost.signal.aborted) await this.#end(packet, outcome);
    } catch (error) {
      this.#onError(error, packet);
    } finally {
      done.abort();
      await renewing;
    }
  }

  /** Resolves when the worker has stopped for as long as packets in progress have. */
  async #grace(done: AbortSignal): Promise<undefined> {
    if (!this.#ending.aborted)
      await new Promise<void>((resolve) => {
        this.#ending.addEventListener('abort', () => resolve(), { once: true, signal: done });
      });
    await this.#sleep(this.#graceSeconds * 1000, done).catch(() => undefined);
  }

  /** Renews the lease until the packet has ended or the lease is lost: refused, or over while no renewal was answered. */
  async #renew(packet: Packet, lost: AbortController, done: AbortSignal): Promise<void> {
    const leaseMs = this.#leaseSeconds * 1000;
    const signal = AbortSignal.any([done, lost.signal]);
    const request = { params: { id: packet.id }, headers: this.#headersOf(packet), timeoutSeconds: this.#leaseSeconds / 3, signal };
    /** Ends the work when a lease that begins now is over, unless it is cancelled before. */
    const begin = (): AbortController => {
      const renewed = new AbortController();
      const over = () => {
        lost.abort(new Error('The lease is over: no renewal was answered in time.'));
        this.#onError(lost.signal.reason, packet);
      };
      this.#sleep(leaseMs, AbortSignal.any([done, renewed.signal])).then(over, () => undefined);
      return renewed;
    };
    let current = begin();
    let pause = leaseMs / 3;
    while (!lost.signal.aborted) {
      let next: AbortController | undefined;
      try {
        await this.#sleep(pause, signal);
        // The service counts from when it answers, so a lease that is counted from the request never ends too late here.
        next = begin();
        await this.#client.renewLease(request);
        current.abort();
        current = next;
        pause = leaseMs / 3;
      } catch (error) {
        next?.abort();
        if (signal.aborted) return;
        pause = leaseMs / 6;
        if (!isPassing(error)) lost.abort(error);
        this.#onError(error, packet);
      }
    }
  }

  /** Completes the packet, or fails it with what the handler raised, or with why its result was refused. */
  async #end(packet: Packet, outcome: Outcome): Promise<void> {
    let fault: unknown;
    try {
      if ('error' in outcome) throw outcome.error;
      await this.#patch(packet, endingOf(outcome.result));
      return;
    } catch (error) {
      if (error instanceof ApiError && (error.code === 'LEASE_LOST' || error.status_code === 404)) throw error;
      fault = error;
    }
    this.#onError(fault, packet);
    const { status } = await this.#client.getPacket({ params: { id: packet.id } });
    // The handler may have ended the packet itself.
    if (status !== 'claimed' && status !== 'in_progress' && status !== 'awaiting_human') return;
    const failure = { id: 'failure', description: 'The work on this packet', error: wordsOf(fault, 'The handler failed.') };
    await this.#patch(packet, { status: 'failed', actions: { failed: [failure] } }).catch((error: unknown) => {
      // The packet has no room for the sentence, or a contract none for the action.
      if (!(error instanceof ApiError) || (error.status_code !== 400 && error.status_code !== 413)) throw error;
      return this.#patch(packet, { status: 'failed' });
    });
  }

  /** Changes the packet as the holder of its lease; tries again while the service is unavailable. */
  async #patch(packet: Packet, body: PatchRequest): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#client.patchPacket({ params: { id: packet.id }, headers: this.#headersOf(packet), body });
        return;
      } catch (error) {
        if (!isPassing(error) || attempt >= attempts) throw error;
        this.#onError(error, packet);
      }
      await this.#sleep(Math.min(10_000, 250 * 2 ** attempt));
      const current = await this.#client.getPacket({ params: { id: packet.id } }).catch(() => undefined);
      // The change may have been made although its answer did not arrive.
      if (current !== undefined && current.status === body.status && current.revision > packet.revision) return;
    }
  }

  #headersOf({ lease }: Packet): Record<string, string> {
    return { 'x-agent-id': this.#agentId, ...(lease?.token === undefined ? {} : { 'x-lease-token': lease.token }) };
  }
}

/** What a handler gets; its methods can be taken out of it. */
class HandlerContext implements WorkContext {
  readonly #asker: Asker;
  readonly lost: AbortSignal;
  readonly ask: WorkContext['ask'] = (...given) => this.#asker.ask(...given);
  readonly approve: WorkContext['approve'] = (...given) => this.#asker.approve(...given);
  readonly requiresApproval: WorkContext['requiresApproval'] = (...given) => this.#asker.requiresApproval(...given);

  constructor(asker: Asker, lost: AbortSignal) {
    this.#asker = asker;
    this.lost = lost;
  }

  get packet(): Packet {
    return this.#asker.packet;
  }
}

const faultOf = (outcome: Outcome): unknown => ('error' in outcome ? (outcome.error ?? 'nothing') : undefined);

async function outcomeOf(handler: WorkHandler, context: WorkContext): Promise<Outcome> {
  try {
    return { result: await handler(context) };
  } catch (error) {
    return { error };
  }
}

/** The PATCH that ends the packet with what the handler returned. @throws TypeError for what is none */
function endingOf(result: unknown): PatchRequest {
  if (result === undefined || result === null) return { status: 'completed' };
  if (typeof result !== 'object' || Array.isArray(result))
    throw new TypeError(`The handler returned ${Array.isArray(result) ? 'an array' : typeof result}, not the fields of a PATCH.`);
  const body: PatchRequest = { status: 'completed', ...result };
  if (body.status === 'in_progress') throw new TypeError('The handler returned the status in_progress, which ends nothing.');
  JSON.stringify(body, (name, value: unknown) => {
    const isJson = typeof value === 'number' ? Number.isFinite(value) : typeof value !== 'string' || value.isWellFormed();
    if (!isJson)
      throw new TypeError(`The handler returned what is no JSON: ${name} is ${typeof value === 'number' ? value : 'cut in a character'}.`);
    return value;
  });
  return body;
}

/** Calls back on SIGTERM and SIGINT, where there are signals; returns what ends that. */
function onSignals(stop: () => void): () => void {
  const { process } = globalThis as { process?: { on?(name: string, call: () => void): void; off?(name: string, call: () => void): void } };
  for (const name of ['SIGTERM', 'SIGINT']) process?.on?.(name, stop);
  return () => {
    for (const name of ['SIGTERM', 'SIGINT']) process?.off?.(name, stop);
  };
}
