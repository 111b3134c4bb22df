import { invalid } from '../../kit/errors.ts';
import type { CallApi } from '../face/call.ts';
import type { From, Polled, Subscribed, SubscribeRefusal, SubscribeRequest, Subscription } from '../model/occurrence.ts';
import type { Packet } from '../model/packet.ts';

/** The events of MCP, for the caller of a request. */
export interface EventCalls {
  readonly poll: (subscribed: Subscribed, from: From & { readonly maxEvents?: number | undefined }) => Promise<Polled>;
  readonly subscribe: (
    subscribed: Subscribed,
    request: SubscribeRequest & From,
  ) => Promise<Subscription | { readonly refusal: SubscribeRefusal }>;
  /** Resolves with whether there was such a subscription. */
  readonly unsubscribe: (subscribed: Subscribed, url: string) => Promise<boolean>;
}

/** The agent behind a request of MCP. */
export interface Session {
  readonly call: CallApi;
  /** The agent's id, if the connection names it, or if its key may act as no other. */
  readonly agentId: string | undefined;
  /** The scopes with which tools are listed that a token may get; left out: those of the key. */
  readonly grantable?: readonly string[] | undefined;
  /** Whether the connection names it. */
  readonly isNamed: boolean;
  /** Whether the client takes a task instead of a result that needs time. */
  readonly takesTasks: boolean;
  /** Reads a packet; inside the service it is shared with all who read the same revision, so nobody changes it. */
  readonly packet: (id: string) => Promise<Packet | undefined>;
  /** Events; undefined where they are not offered. */
  readonly events?: EventCalls | undefined;
  /** Tells the client how long a call has waited, of how many seconds; undefined if it does not want to know. */
  readonly progress?: ((seconds: number, total: number) => void) | undefined;
  /** Aborts when nobody waits for the result any more. */
  readonly signal: AbortSignal;
  /** What a caller is told of an error. */
  readonly refusalOf: (error: unknown) => { readonly code: string };
  /** Returns the time. */
  readonly now: () => Date;
  /** Resolves after some milliseconds, or when the signal aborts. */
  readonly pause: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

/**
 * The id of the agent that acts.
 * @throws ServiceError 400 when neither the connection nor the argument names it, or when they name different agents
 */
export function agentOf({ agentId, isNamed }: Session, given: string | undefined): string {
  const agent = given ?? agentId;
  if (agent === undefined)
    throw invalid('agent_id', 'agent_id is required: name the agent here, or once for the connection in the header X-Agent-Id.');
  // What a key may not act as, the operation refuses.
  if (isNamed && agent !== agentId)
    throw invalid('agent_id', `agent_id is ${agent}, but the connection names the agent ${agentId} in X-Agent-Id. Leave agent_id out.`);
  return agent;
}
