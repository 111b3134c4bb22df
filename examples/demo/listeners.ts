import { randomBytes } from 'node:crypto';

import type { HandoffClient } from '../../src/handoff/client/client.ts';
import { ApiError } from '../../src/kit/client-errors.ts';
import { plural } from '../../src/kit/wording.ts';
import { type Delivered, type Receiver, startReceiver } from './receiver.ts';

/** The event types of history entries on streams and webhooks; `updated` is only sent on streams. */
const eventTypes: Readonly<Record<string, string>> = {
  created: 'packet.created',
  claimed: 'packet.claimed',
  in_progress: 'packet.in_progress',
  awaiting_human: 'packet.awaiting_human',
  hitl_responded: 'hitl.response_ready',
  completed: 'packet.completed',
  failed: 'packet.failed',
  expired: 'packet.expired',
  updated: 'packet.updated',
};
const onStreamsOnly = 'packet.updated';

/** The longest wait for the last events, in milliseconds. */
const lastEventsMs = 15_000;

/** An event of a packet. */
interface SeenEvent {
  readonly packetId: string;
  readonly type: string;
}

/** A comparison of history, stream and webhook for the same packets. */
export interface Comparison {
  /** A table with the number of events of each type, as lines. */
  readonly lines: readonly string[];
  /** Whether they have the same events for each packet; the webhook lacks those only sent on streams. */
  readonly agrees: boolean;
}

/** A stream and a webhook that receive the events. */
export interface Listeners {
  /** Waits until as many events were received as the history has, and compares them. */
  compare(packetIds: ReadonlySet<string>, since: string): Promise<Comparison>;
  /** Ends the stream and removes the webhook. */
  close(): Promise<void>;
}

export interface ListenersParts {
  client: HandoffClient;
  /** Creates the client of the stream; it calls `onOpen` when the stream is open. */
  streamClient: (onOpen: () => void) => HandoffClient;
  /** Called for each verified delivery, when it first arrives. */
  onDelivered: (delivered: Delivered) => void;
  /** Called if there is no webhook, because the service does not deliver to this machine. */
  onRefused: () => void;
}

/** Listens on a stream and, if the service delivers to this machine, on a webhook with its own receiver. */
export async function startListeners({ client, streamClient, onDelivered, onRefused }: ListenersParts): Promise<Listeners> {
  let wake: () => void = () => undefined;
  const stream = await startStream(streamClient, () => wake());
  const deliveries = new Map<string, Delivered>();
  const webhook = await startWebhook(client, onRefused, (delivered) => {
    if (!deliveries.has(delivered.id)) onDelivered(delivered);
    deliveries.set(delivered.id, delivered);
    wake();
  }).catch(async (error: unknown) => {
    await stream.close();
    throw error;
  });

  /** Resolves when the condition is true, after the longest wait, or when the stream has failed. */
  async function until(condition: () => boolean): Promise<void> {
    const end = performance.now() + lastEventsMs;
    while (!condition() && performance.now() < end && stream.fault() === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, end - performance.now());
        wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  return {
    async compare(packetIds, since) {
      const history = await readHistory(client, packetIds, since);
      const forWebhooks = history.filter(({ type }) => type !== onStreamsOnly);
      const ours = (seen: Iterable<SeenEvent>) => [...seen].filter(({ packetId }) => packetIds.has(packetId));
      const isComplete = () =>
        ours(stream.seen).length >= history.length && (webhook === undefined || ours(deliveries.values()).length >= forWebhooks.length);
      await until(isComplete);
      if (stream.fault() !== undefined) throw stream.fault();
      const onStream = ours(stream.seen);
      const delivered = webhook === undefined ? undefined : ours(deliveries.values());
      const forged = webhook?.forged() ?? 0;
      const lines = tableOf(history, onStream, delivered);
      if (forged > 0) lines.push(`${plural(forged, 'post')} with a wrong signature`);
      const agrees = isSame(history, onStream) && (delivered === undefined || isSame(forWebhooks, delivered)) && forged === 0;
      return { lines, agrees };
    },
    async close() {
      await Promise.all([stream.close(), webhook?.close()]);
    },
  };
}

/** Listens on a stream; resolves when it is open. */
async function startStream(streamClient: ListenersParts['streamClient'], onEvent: () => void) {
  const seen: SeenEvent[] = [];
  const ending = new AbortController();
  let fault: unknown;
  const open = Promise.withResolvers<void>();
  const reading = (async () => {
    for await (const event of streamClient(open.resolve).events({ signal: ending.signal })) {
      if (event.type === 'reset') continue;
      seen.push({ packetId: (event as { packet_id: string }).packet_id, type: event.type });
      onEvent();
    }
  })().catch((error: unknown) => {
    if (ending.signal.aborted) return;
    fault = error;
    open.reject(error);
    onEvent();
  });
  await open.promise;
  return {
    seen,
    fault: () => fault,
    async close() {
      ending.abort();
      await reading;
    },
  };
}

interface DemoWebhook extends Pick<Receiver, 'forged'> {
  close(): Promise<void>;
}

/** Registers a webhook for a receiver; undefined if the service does not deliver to this machine. */
async function startWebhook(
  client: HandoffClient,
  onRefused: () => void,
  onDelivered: (delivered: Delivered) => void,
): Promise<DemoWebhook | undefined> {
  const secret = randomBytes(24).toString('hex');
  const receiver = await startReceiver(secret, onDelivered);
  try {
    const { id } = await client.createWebhook({ body: { url: receiver.url, secret } });
    return {
      forged: receiver.forged,
      async close() {
        await client.deleteWebhook({ params: { id } }).finally(receiver.close);
      },
    };
  } catch (error) {
    receiver.close();
    if (!(error instanceof ApiError) || error.status_code !== 400) throw error;
    onRefused();
    return undefined;
  }
}

/** The packets' events that streams send, from the audit log. */
async function readHistory(client: HandoffClient, packetIds: ReadonlySet<string>, since: string): Promise<SeenEvent[]> {
  const byEntry = new Map<string, SeenEvent>();
  for await (const { id, packet_id, action } of client.listAudit.items({ query: { created_after: since, limit: 200 } })) {
    const type = eventTypes[action];
    if (packet_id !== null && packetIds.has(packet_id) && type !== undefined) byEntry.set(id, { packetId: packet_id, type });
  }
  return [...byEntry.values()];
}

function isSame(one: readonly SeenEvent[], other: readonly SeenEvent[]): boolean {
  const text = (seen: readonly SeenEvent[]) => JSON.stringify(seen.map(({ packetId, type }) => `${packetId} ${type}`).toSorted());
  return text(one) === text(other);
}

function tableOf(history: readonly SeenEvent[], onStream: readonly SeenEvent[], delivered: readonly SeenEvent[] | undefined): string[] {
  const row = (name: string, ...cells: (string | number)[]) => name.padEnd(24) + cells.map((cell) => String(cell).padStart(10)).join('');
  const count = (seen: readonly SeenEvent[] | undefined, ...types: string[]) =>
    seen?.filter(({ type }) => types.includes(type)).length ?? '-';
  const counts = (...types: string[]) => [history, onStream, delivered].map((seen) => count(seen, ...types));
  const types = [...new Set(Object.values(eventTypes))].filter((type) => type !== onStreamsOnly);
  return [
    row('event', 'history', 'stream', 'webhook'),
    ...types.filter((type) => counts(type).some((cell) => cell !== 0 && cell !== '-')).map((type) => row(type, ...counts(type))),
    row('all of them', ...counts(...types)),
    `${row(onStreamsOnly, ...counts(onStreamsOnly).slice(0, 2))}  on streams only`,
  ];
}
