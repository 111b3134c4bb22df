import type { StreamResponse } from '../../kit/http/response.ts';
import { eventStream, eventText } from '../../kit/http/sse.ts';
import { eventId, parseChannels } from '../rules/channels.ts';
import type { Caller } from '../service/authentication.ts';
import { handlersOf } from './handlers.ts';
import { lastEventIdOf } from './headers.ts';
import { greeting, isOn, type Listening, listenerOf } from './streams.ts';

/** The reconnection delay sent to clients, in milliseconds. */
const retryMs = 3000;

/** The handler of `GET /events`: the tenant's events as server-sent events. */
export const sseHandlers = (listening: Listening) =>
  handlersOf({
    events: async ({ query: { subscribe = [], last_event_id } }, { caller, headers }) => {
      const channels = new Set(parseChannels(subscribe, 'subscribe'));
      return answer(listening, caller, channels, await listening.begin(caller, lastEventIdOf(headers, last_event_id)));
    },
  });

function answer(
  { hub, streams, connections }: Listening,
  caller: Caller,
  channels: ReadonlySet<string>,
  { start, leave, connectionId }: Awaited<ReturnType<Listening['begin']>>,
): StreamResponse {
  const idAt = (position: number) => eventId(caller.tenant_id, position);
  return eventStream({
    streams,
    abandon: leave,
    feed(open) {
      const listener = listenerOf(open, start.position, {
        wants: (event) => channels.size === 0 || isOn(channels, event),
        write: (event) => event.sse,
      });
      // Every message has the id of the last event before it, so that a client can resume even if it received no event.
      const id = idAt(start.position);
      const connected = { connection_id: connectionId, message: greeting(channels.size) };
      open.send(eventText({ event: 'connected', id, retry: retryMs, data: JSON.stringify(connected) }));
      if (start.reset !== undefined) open.send(eventText({ event: 'reset', id, data: JSON.stringify({ reason: start.reset }) }));
      const unwatch = connections.watch(caller, open);
      // Without the missed events the stream can't go on; the client reconnects and resumes.
      hub.join(caller, listener).catch((error: unknown) => open.fail(error));
      return {
        heartbeat: (now) =>
          eventText({ event: 'ping', id: idAt(listener.position), data: JSON.stringify({ timestamp: now.toISOString() }) }),
        onEnd() {
          leave();
          unwatch();
          hub.leave(caller, listener);
        },
      };
    },
  });
}
