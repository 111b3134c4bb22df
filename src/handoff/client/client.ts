import { type CallOptions, type Client, createClient } from '../../kit/client.ts';
import { Connection, type ConnectionOptions, eventJson } from '../../kit/connection.ts';
import { keyHeader } from '../../kit/header.ts';
import type { routes } from '../model/api.ts';
import type { ApprovalRequest } from '../model/approval.ts';
import type { CreateRequest, PacketSummary } from '../model/packet.ts';
import type { Trial } from '../model/packet-routes.ts';
import { type ActionDecision, Approvals, type ApproveOptions, type RequiresApprovalOptions } from './approvals.ts';
import { operations } from './operations.ts';
import { runWorker, type WorkHandler, type WorkOptions } from './worker.ts';

export interface HandoffClientOptions extends ConnectionOptions {
  /** Where the service is, with or without `/api/v1`: `http://localhost:8080`. */
  readonly baseUrl: string;
  /** The API key; only public operations work without one. */
  readonly apiKey?: string | undefined;
}

/** An event of the stream, with the packet's summary after the change. */
export interface StreamEvent {
  /** The id to resume after: `events({ lastEventId })`. */
  readonly event_id: string | undefined;
  /** For example `packet.created`. */
  readonly type: string;
  readonly packet_id: string;
  /** Null for a packet that was removed permanently. */
  readonly data: PacketSummary | null;
  readonly timestamp: string;
}

/** Missed events can't be replayed: the stream continues with new events. */
export interface StreamReset {
  readonly event_id: string | undefined;
  readonly type: 'reset';
  readonly reason: string;
}

export interface EventsOptions {
  /** Channels: `status:<status>`, `packet:<id>`, `agent:<id>`; by default all events of the tenant. */
  readonly subscribe?: readonly string[];
  /** The `event_id` of the last event seen: the events after it are sent first. */
  readonly lastEventId?: string | undefined;
  /** Ends the stream. */
  readonly signal?: AbortSignal | undefined;
}

/** Requests that only try. */
interface Trying {
  askApproval: (request: { readonly body: ApprovalRequest; readonly query: { readonly dry_run: true } } & CallOptions) => Promise<Trial>;
  createPacket: (request: { readonly body: CreateRequest; readonly query: { readonly dry_run: true } } & CallOptions) => Promise<Trial>;
}

/** One method per route, and the stream of events. */
export type HandoffClient = Trying &
  Client<typeof routes> & {
    /**
     * Events as they happen. A broken stream reconnects and resumes after the last event, so that each event arrives exactly
     * once; a `reset` reports events that can't be replayed. While the service is unavailable it tries on, also before the first
     * connection. Rejects with ApiError when the service refuses the stream, and with the signal's reason when that aborts it.
     */
    events(options?: EventsOptions): AsyncGenerator<StreamEvent | StreamReset, void, undefined>;
    /**
     * Claims the packets for an agent and hands each to the handler, until it is stopped. The lease is renewed meanwhile. The packet is
     * completed with the PATCH that the handler returns; if the handler throws, or its result is refused, the packet fails with that
     * sentence. When the worker stops, packets in progress have `graceSeconds` to end, and are given back afterwards.
     */
    work(agentId: string, handler: WorkHandler, options?: WorkOptions): Promise<void>;
    /**
     * Asks a person or a policy about a tool call, and waits for the decision. The same agent and `call_id` again, also by another process,
     * gets the decision of its first question; a question that is over without one, and an approval that has expired, is asked anew.
     * Rejects with NoAnswer if nobody decides within `timeoutSeconds`, or the packet ends before, and with CallChanged if the call was
     * asked about with another tool or other arguments.
     */
    approve(tool: string, given: object, options: ApproveOptions): Promise<ActionDecision>;
    /**
     * A function that asks, waits, and runs once with the approved arguments. Called again with the same id, also by another process, it
     * resolves to the result of its first run; if a process died in between, a person is asked again, and told when it began. Where a
     * person answers instead of the tool, it resolves to the answer. The id is that of the framework, from an argument with `toolCallId`,
     * `toolUseID` or `toolCall.callId`, unless `call_id` is given. Rejects with ActionRejected, ActionFailed if the first run threw, or
     * NoAnswer.
     */
    requiresApproval<Args extends object, Rest extends readonly unknown[], Result>(
      run: (given: Args, ...rest: Rest) => Result | Promise<Result>,
      options: RequiresApprovalOptions<Args, Rest>,
    ): (given: Args, ...rest: Rest) => Promise<Result>;
  };

/** Makes a client of the handoff service: `await createHandoffClient({ baseUrl, apiKey }).listPackets()`. */
export function createHandoffClient({ baseUrl, apiKey, headers, ...options }: HandoffClientOptions): HandoffClient {
  const connection = new Connection({ ...options, baseUrl: rootOf(baseUrl), headers: { ...keyHeader(apiKey), ...headers } });
  const client: HandoffClient = {
    ...(createClient<typeof routes>(operations, connection) as Client<typeof routes> & Trying),
    async *events({ subscribe, ...rest }: EventsOptions = {}) {
      for await (const { id, type, data } of connection.stream({ path: '/events', query: { subscribe }, ...rest })) {
        if (type !== 'connected' && type !== 'ping') yield { ...(eventJson(data) as StreamEvent), type, event_id: id };
      }
    },
    work: (agentId, handler, how = {}) => runWorker(parts(), agentId, handler, how),
    approve: (...given) => new Approvals(parts()).approve(...given),
    requiresApproval: (...given) => new Approvals(parts()).requiresApproval(...given),
  };
  const parts = () => ({ client, sleep: (ms: number, signal?: AbortSignal) => connection.sleep(ms, signal) });
  return client;
}

/** The address without the API prefix, which is part of every operation's path. */
function rootOf(baseUrl: string): string {
  return baseUrl.replace(/\/+$/, '').replace(/\/api\/v1$/, '');
}
