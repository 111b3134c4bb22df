import { notFound } from '../../kit/errors.ts';
import { eventStream, eventText } from '../../kit/http/sse.ts';
import type { OpenStream, StreamAnswer, StreamFeed, Streams } from '../../kit/http/streams.ts';
import type { TestProgress, TestResult } from '../model/test.ts';
import type { TestService } from '../service/tests.ts';

/** How many events a test tells of itself at most, its end aside. */
const mostEvents = 200;

/** The events of a test: `progress` while it runs, `end` at its end, and the connection is closed behind it. 404 for an unknown one. */
export async function testEvents(id: string, { tests, streams }: { tests: TestService; streams: Streams }): Promise<StreamAnswer> {
  streams.requireOpen();
  const text = await tests.find(id);
  if (text === undefined) throw notFound('test result');
  return eventStream({ streams, feed: (open) => feedOf(open, id, text, tests), abandon: () => undefined });
}

function feedOf(open: OpenStream, id: string, text: string, tests: TestService): StreamFeed {
  let told = -1;
  const tell = (event: 'progress' | 'end', progress: TestProgress) => open.send(eventText({ event, data: JSON.stringify(progress) }));
  const finish = (progress: TestProgress) => {
    tell('end', progress);
    open.end('done');
  };
  const hear = (progress: TestProgress) => {
    if (progress.status !== 'running') return finish(progress);
    const { done, total } = progress.progress;
    const step = Math.floor((done * mostEvents) / total);
    if (step === told) return;
    told = step;
    tell('progress', progress);
  };
  const following = tests.follow(id, hear);
  if (following === undefined) finish(progressOf(JSON.parse(text) as TestResult));
  else hear(following.now);
  return { heartbeat: () => Buffer.from(': still here\n\n'), onEnd: () => following?.leave() };
}

function progressOf({ id, status, progress, success_count, failure_count, fallback_count, verdict }: TestResult): TestProgress {
  return { id, status, progress, success_count, failure_count, fallback_count, verdict };
}
