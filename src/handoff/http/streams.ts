import type { IncomingHttpHeaders } from 'node:http';

import type { Clock } from '../../kit/clock.ts';
import { LimitReached } from '../../kit/errors.ts';
import { Holdings } from '../../kit/holdings.ts';
import type { OpenStream, Streams } from '../../kit/http/streams.ts';
import type { NewId } from '../../kit/id.ts';
import type { LiveEvent } from '../live/event.ts';
import type { Hub, Listener, Start } from '../live/hub.ts';
import type { Tier } from '../model/common.ts';
import type { AccessService } from '../service/access.ts';
import type { Caller } from '../service/authentication.ts';

export interface ListeningParts {
  hub: Hub;
  streams: Streams;
  access: AccessService;
  clock: Clock;
  newId: NewId;
  /** How many connections a tenant of each tier may have open. */
  maxConnections: Readonly<Record<Tier, number>>;
}

/** What ends with its key. */
export type Watched = Pick<OpenStream, 'end'>;

/** What `/events` and `/ws` share: who may listen, and how long. */
export interface Listening {
  readonly hub: Hub;
  readonly streams: Streams;
  readonly clock: Clock;
  /** Counts a connection of the caller's tenant; gives what gives it back. @throws LimitReached */
  connect(caller: Caller): () => void;
  /** A connection's place at the tenant's events, which it has until it is left. Nothing is told before `join`. */
  begin(caller: Caller, lastEventId: string | undefined): Promise<{ start: Start; leave(): void; connectionId: string }>;
  /** Watches over the key of an open stream or of a request that waits; gives what ends that. */
  watch(key: string | undefined, open: Watched): () => void;
  /** Ends the streams and waits whose keys are not valid any more: revoked, rotated out, or of a deleted tenant. */
  recheck(): Promise<void>;
}

/** The seconds after which a client at its cap may try again: nobody knows when a connection ends. */
const retryAfterSeconds = 5;

/** Lets callers listen. */
export function createListening({ hub, streams, access, clock, newId, maxConnections }: ListeningParts): Listening {
  const holdings = new Holdings();
  const byKey = new Map<string, Set<Watched>>();

  function connect({ tenant_id, tenant_tier }: Caller): () => void {
    const max = maxConnections[tenant_tier];
    const release = holdings.take(tenant_id, max);
    if (release !== undefined) return release;
    const detail = `The tenant has its ${max} connections open. Close one, or try again in ${retryAfterSeconds} seconds.`;
    throw new LimitReached(detail, { name: 'connections', max }, retryAfterSeconds);
  }

  return {
    hub,
    streams,
    clock,
    connect,
    async begin(caller, lastEventId) {
      streams.requireOpen();
      const leave = connect(caller);
      try {
        return { start: await hub.startOf(caller, lastEventId), leave, connectionId: newId(clock()) };
      } catch (error) {
        leave();
        throw error;
      }
    },
    watch(key, open) {
      if (key === undefined) return () => undefined;
      const watched = byKey.get(key) ?? new Set();
      byKey.set(key, watched.add(open));
      return () => {
        watched.delete(open);
        if (watched.size === 0 && byKey.get(key) === watched) byKey.delete(key);
      };
    },
    async recheck() {
      for (const [key, watched] of [...byKey]) {
        if ((await access.authenticate(key)) !== undefined) continue;
        for (const open of [...watched]) open.end('revoked');
      }
    },
  };
}

/** The key that a stream is opened with: the header, else the parameter. */
export function keyOf(headers: IncomingHttpHeaders, parameter: string | undefined): string | undefined {
  const header = headers['x-api-key'];
  return typeof header === 'string' ? header : parameter;
}

/** The event that a stream resumes behind: what a browser sends by itself when it connects again, else the parameter. */
export function lastEventIdOf(headers: IncomingHttpHeaders, parameter: string | undefined): string | undefined {
  const header = headers['last-event-id'];
  const given = typeof header === 'string' && header !== '' ? header : parameter;
  return given === '' ? undefined : given;
}

/** A listener that sends what it wants to an open stream. */
export function listenerOf(
  open: OpenStream,
  position: number,
  { wants, write }: { wants(event: LiveEvent): boolean; write(event: LiveEvent): Buffer },
): Listener {
  return {
    position,
    isOpen: () => open.isOpen,
    hear(event, done) {
      if (!wants(event)) return 0;
      const message = write(event);
      open.send(message, done);
      return message.length;
    },
  };
}

/** Whether an event belongs to one of the channels. */
export function isOn(channels: ReadonlySet<string>, event: LiveEvent): boolean {
  return event.channels.some((channel) => channels.has(channel));
}

/** What `connected` says in words. */
export function greeting(channels: number): string {
  return channels === 0
    ? "Connected to all of the tenant's events."
    : `Connected to ${channels} ${channels === 1 ? 'channel' : 'channels'}.`;
}
