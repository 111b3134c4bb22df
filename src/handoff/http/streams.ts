import type { Clock } from '../../kit/clock.ts';
import type { OpenStream, Streams } from '../../kit/http/streams.ts';
import type { NewId } from '../../kit/id.ts';
import { plural } from '../../kit/wording.ts';
import type { LiveEvent } from '../live/event.ts';
import type { Hub, Listener } from '../live/hub.ts';
import type { Caller } from '../service/authentication.ts';
import type { OpenConnections } from '../service/connections.ts';

interface ListeningDependencies {
  hub: Hub;
  streams: Streams;
  connections: OpenConnections;
  clock: Clock;
  newId: NewId;
}

export type Listening = ReturnType<typeof createListening>;

/** Makes what `/events` and `/ws` share: counted connections and their start positions. */
export function createListening({ hub, streams, connections, clock, newId }: ListeningDependencies) {
  return {
    hub,
    streams,
    connections,
    clock,
    /** Counts a connection, which `leave` releases, and finds its start position. No event is sent before `hub.join`. */
    async begin(caller: Caller, lastEventId: string | undefined) {
      streams.requireOpen();
      const leave = connections.connect(caller);
      try {
        return { start: await hub.startOf(caller, lastEventId), leave, connectionId: newId(clock()) };
      } catch (error) {
        leave();
        throw error;
      }
    },
  };
}

/** A listener that sends the events it wants to an open stream. */
export function listenerOf(
  open: OpenStream,
  position: number,
  { wants, write }: { wants: (event: LiveEvent) => boolean; write: (event: LiveEvent) => Buffer },
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
  return channels === 0 ? "Connected to all of the tenant's events." : `Connected to ${plural(channels, 'channel')}.`;
}
