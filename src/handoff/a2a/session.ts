import type { CallApi } from '../face/call.ts';
import type { PushConfig } from '../model/a2a.ts';
import type { Packet } from '../model/packet.ts';
import type { Address } from './card.ts';

/** A packet, and the root of its chain: the context of its task. */
export interface View {
  readonly packet: Packet;
  readonly root: string;
  /** The characters of its text. */
  readonly length: number;
}

/** Who is behind a request of A2A. */
export interface A2aSession {
  readonly call: CallApi;
  /** The agent that the request names, or the only one that its key may act as. */
  readonly agentId: string | undefined;
  /** Who answers: the person for whom the key may answer, else the key by its name. */
  readonly responder: string;
  readonly address: Address;
  /** The push notification configurations of a packet that the caller can read. */
  readonly pushes: Pushes;
  /** A packet as it is now, shared with all who read the same revision; undefined for an unknown one. */
  readonly view: (id: string) => Promise<View | undefined>;
  /** Counts bytes of what the answer is made of, until it is printed. @throws ServiceError 503 when the tenant's requests hold too many */
  readonly hold: (bytes: number) => void;
  /** The root of each packet's chain, by the id of the packet; unknown packets are left out. */
  rootsOf(ids: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Resolves when a packet is as wanted or gone, or when nothing happened for a minute. */
  changed(id: string, isWanted: (stamp: { readonly revision: number; readonly status: string }) => boolean): Promise<void>;
  /** Sends a response of a streaming method, as JSON. Many streams share the buffer. */
  readonly send: (response: Buffer) => void;
  /** Aborts when nobody reads the answer any more. */
  readonly signal: AbortSignal;
}

/** `PushService`, for the caller of the request. */
interface Pushes {
  check(config: PushConfig): Promise<void>;
  put(packetId: string, config: PushConfig): Promise<PushConfig>;
  list(packetId: string): Promise<PushConfig[]>;
  remove(packetId: string, id: string): Promise<void>;
}
