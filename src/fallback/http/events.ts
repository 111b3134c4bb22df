import { LimitReached, notFound } from '../../kit/errors.ts';
import type { Holdings } from '../../kit/holdings.ts';
import { eventStream, eventText } from '../../kit/http/sse.ts';
import type { OpenStream, StreamAnswer, StreamFeed, Streams } from '../../kit/http/streams.ts';
import type { TestProgress } from '../model/test.ts';
import type { Caller } from '../service/access.ts';
import type { TestService } from '../service/tests.ts';

/** How many events a test tells of itself at most, its end aside. */
const mostEvents = 200;

/** How many tests one caller may follow at once, and the seconds after which one at this limit may try again. */
const maxConnections = 100;
const retryAfterSeconds = 5;

interface EventParts {
  tests: TestService;
  streams: Streams;
  /** The streams that each caller has open. */
  connections: Holdings;
}

/**
 * The events of a test: `progress` while it runs, `end` at its end, and the connection is closed behind it. 404 for an
 * unknown one, 429 for a caller that follows too many already.
 */
export async function testEvents(id: string, { id: owner }: Caller, { tests, streams, connections }: EventParts): Promise<StreamAnswer> {
  streams.requireOpen();
  const release = connections.take(owner, maxConnections);
  if (release === undefined) throw tooMany();
  try {
    const text = await tests.find(id);
    if (text === undefined) throw notFound('test result');
    return eventStream({ streams, feed: (open) => feedOf(open, { id, text, tests, release }), abandon: release });
  } catch (error) {
    release();
    throw error;
  }
}

interface FeedParts {
  id: string;
  text: string;
  tests: TestService;
  release(): void;
}

function feedOf(open: OpenStream, { id, text, tests, release }: FeedParts): StreamFeed {
  let told = -1;
  const tell = (event: 'progress' | 'end', progress: TestProgress) => open.send(eventText({ event, data: JSON.stringify(progress) }));
  const hear = (progress: TestProgress) => {
    if (progress.status !== 'running') {
      tell('end', progress);
      return open.end('done');
    }
    const { done, total } = progress.progress;
    const step = Math.floor((done * mostEvents) / total);
    if (step === told) return;
    told = step;
    tell('progress', progress);
  };
  const following = tests.follow(id, text, hear);
  // The registry knows the stream once this function has returned.
  queueMicrotask(() => hear(following.now));
  return {
    heartbeat: () => Buffer.from(': still here\n\n'),
    onEnd() {
      following.leave();
      release();
    },
  };
}

const tooMany = () =>
  new LimitReached(
    `This caller already follows ${maxConnections} tests. Close one, or try again in ${retryAfterSeconds} seconds.`,
    { name: 'connections', max: maxConnections },
    retryAfterSeconds,
  );
