import type { IncomingHttpHeaders } from 'node:http';

import type { Clock } from '../../kit/clock.ts';
import { LimitReached } from '../../kit/errors.ts';
import type { OpenStream, Streams } from '../../kit/http/streams.ts';
import type { NewId } from '../../kit/id.ts';
import { OwnerQuota } from '../../kit/owner-quota.ts';
import type { LiveEvent } from '../live/event.ts';
import type { Hub, Listener } from '../live/hub.ts';
import type { Tier } from '../model/common.ts';
import type { TierLimits } from '../rules/tiers.ts';
import type { Caller } from '../service/authentication.ts';
import type { KeyService } from '../service/keys.ts';

interface ListeningParts {
  hub: Hub;
  streams: Streams;
  keys: KeyService;
  clock: Clock;
  newId: NewId;
  /** By tier: how many connections a tenant may have open. */
  limits: Readonly<Record<Tier, TierLimits>>;
}

/** Something that must end when its key becomes invalid: a stream or a waiting request. */
type Watched = Pick<OpenStream, 'end'>;

export type Listening = ReturnType<typeof createListening>;

/** The `Retry-After` of a tenant at its quota, in seconds: an estimate, since nothing tells when a connection will close. */
const retryAfterSeconds = 5;

/** Makes what `/events`, `/ws` and waiting requests share: connection quotas, start positions and the checks of keys. */
export function createListening({ hub, streams, keys, clock, newId, limits }: ListeningParts) {
  const quota = new OwnerQuota();
  const byKey = new Map<string, Set<Watched>>();

  /** Counts a connection of the caller's tenant; returns the function that releases it. @throws LimitReached */
  function connect({ tenant_id, tenant_tier }: Caller): () => void {
    const max = limits[tenant_tier].connections;
    const release = quota.acquire(tenant_id, max);
    if (release !== undefined) return release;
    const detail = `The tenant has all of its ${max} connections open. Close one, or try again in ${retryAfterSeconds} seconds.`;
    throw new LimitReached(detail, { name: 'connections', max }, retryAfterSeconds);
  }

  return {
    hub,
    streams,
    clock,
    connect,
    /** Counts a connection, which `leave` releases, and finds its start position. No event is sent before `hub.join`. */
    async begin(caller: Caller, lastEventId: string | undefined) {
      streams.requireOpen();
      const leave = connect(caller);
      try {
        return { start: await hub.startOf(caller, lastEventId), leave, connectionId: newId(clock()) };
      } catch (error) {
        leave();
        throw error;
      }
    },
    /** Includes an open stream or waiting request in `recheck`; returns the function that removes it. */
    watch(key: string | undefined, open: Watched): () => void {
      if (key === undefined) return () => undefined;
      const watched = byKey.get(key) ?? new Set();
      byKey.set(key, watched.add(open));
      return () => {
        watched.delete(open);
        if (watched.size === 0 && byKey.get(key) === watched) byKey.delete(key);
      };
    },
    /** Ends the streams and waiting requests whose keys are no longer valid: revoked, expired, or of a deleted tenant. */
    async recheck(): Promise<void> {
      // biome-ignore lint/plugin: a pass reads a key and no packet.
      for (const [key, watched] of [...byKey]) {
        if ((await keys.authenticate(key)) !== undefined) continue;
        for (const open of [...watched]) open.end('revoked');
      }
    },
  };
}

/** The API key of a request: the header, else the bearer token, else the query parameter. */
export function keyOf(headers: IncomingHttpHeaders, parameter?: string): string | undefined {
  const header = headers['x-api-key'];
  if (typeof header === 'string') return header;
  const [, token] = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  return token ?? parameter;
}

/** The id of the last event that a client saw: the header, which browsers send when they reconnect, else the parameter. */
export function lastEventIdOf(headers: IncomingHttpHeaders, parameter: string | undefined): string | undefined {
  const header = headers['last-event-id'];
  const given = typeof header === 'string' && header !== '' ? header : parameter;
  return given === '' ? undefined : given;
}

/** A listener that sends the events it wants to an open stream. */
export function listenerOf(
  open: OpenStream,
  position: number,
  { wants, write }: { wants(event: LiveEvent): boolean; write(event: LiveEvent): Buffer },
): Listener {
  return {
    position,
    isOpen: () => open.isOpen,
    receive(event, done) {
      if (!wants(event)) return 0;
      const message = write(event);
      open.send(message, done);
      return message.length;
    },
    endSlow: () => open.end('slow'),
    fail: (error) => open.fail(error),
  };
}

/** Whether an event belongs to one of the channels. */
export function isOn(channels: ReadonlySet<string>, event: LiveEvent): boolean {
  return event.channels.some((channel) => channels.has(channel));
}

/** The sentence in the `connected` message. */
export function greeting(channels: number): string {
  return channels === 0
    ? "Connected to all of the tenant's events."
    : `Connected to ${channels} ${channels === 1 ? 'channel' : 'channels'}.`;
}
