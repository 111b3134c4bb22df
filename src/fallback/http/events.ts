import { LimitReached, notFound } from '../../kit/errors.ts';
import type { StreamResponse } from '../../kit/http/response.ts';
import { eventStream, eventText } from '../../kit/http/sse.ts';
import type { OpenStream, StreamFeed, Streams } from '../../kit/http/streams.ts';
import type { OwnerQuota } from '../../kit/owner-quota.ts';
import type { TestProgress } from '../model/test.ts';
import type { Caller } from '../service/access.ts';
import type { TestService } from '../service/tests.ts';

/** The most progress events of a test. */
const mostEvents = 200;

/** The most concurrent streams of a caller, and the seconds until a caller at this limit may retry. */
const maxConnections = 100;
const retryAfterSeconds = 5;

interface EventDependencies {
  tests: TestService;
  streams: Streams;
  /** The open streams of each caller. */
  connections: OwnerQuota;
}

/**
 * Streams the events of a test: `progress` while it runs, then `end`, after which the connection closes.
 * @throws ServiceError 404 for an unknown test, 429 for a caller with too many streams
 */
export async function testEvents(
  id: string,
  { id: owner }: Caller,
  { tests, streams, connections }: EventDependencies,
): Promise<StreamResponse> {
  streams.requireOpen();
  const release = connections.acquire(owner, maxConnections);
  if (release === undefined) {
    const detail = `This caller already follows ${maxConnections} tests. Close one, or try again in ${retryAfterSeconds} seconds.`;
    throw new LimitReached(detail, { name: 'connections', max: maxConnections }, retryAfterSeconds);
  }
  try {
    const text = await tests.find(id, { prompts: false });
    if (text === undefined) throw notFound('test result');
    const follow: Follow = (listener) => tests.follow(id, text, listener);
    return eventStream({ streams, feed: (open) => feedOf(open, follow, release), abandon: release });
  } catch (error) {
    release();
    throw error;
  }
}

type Follow = (listener: (progress: TestProgress) => void) => ReturnType<TestService['follow']>;

function feedOf(open: OpenStream, follow: Follow, release: () => void): StreamFeed {
  let lastStep = -1;
  const send = (event: 'progress' | 'end', progress: TestProgress) => open.send(eventText({ event, data: JSON.stringify(progress) }));
  const onProgress = (progress: TestProgress) => {
    if (progress.status !== 'running') {
      send('end', progress);
      return open.end('done');
    }
    const { done, total } = progress.progress;
    const step = Math.floor((done * mostEvents) / total);
    if (step === lastStep) return;
    lastStep = step;
    send('progress', progress);
  };
  const following = follow(onProgress);
  // The stream is registered only after this function has returned.
  queueMicrotask(() => onProgress(following.now));
  return {
    heartbeat: () => Buffer.from(': still here\n\n'),
    onEnd() {
      following.leave();
      release();
    },
  };
}
