import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';

import { createStreams, type Stream, type StreamFeed } from '../../../src/kit/http/streams.ts';
import { TestClock } from '../../support/service.ts';

test('a feed may end its stream before it is registered: the end is counted, logged and reported once', () => {
  const ends: unknown[] = [];
  const streams = createStreams({
    isUnavailable: () => false,
    clock: new TestClock().read,
    logger: { info: ({ end }: { end: string }) => ends.push(['log', end]) } as unknown as Logger,
    onEnded: (...ended) => ends.push(['metrics', ...ended]),
  });
  const stream: Stream = {
    protocol: 'sse',
    waitingBytes: () => 0,
    sentBytes: () => 0,
    write: () => undefined,
    end: (why) => ends.push(['client', why]),
  };
  const request = { id: '1', method: 'GET', notes: { route: '/events' } } as unknown as FastifyRequest;
  const feed: StreamFeed = { heartbeat: () => Buffer.alloc(0), onEnd: (why) => ends.push(['feed', why]) };
  const open = streams.open(stream, request, (opened) => {
    opened.end('done');
    return feed;
  });
  assert.equal(open.isOpen, false);
  assert.equal(streams.count('sse'), 0);
  assert.deepEqual(ends, [
    ['client', 'done'],
    ['log', 'done'],
    ['metrics', 'GET', '/events', 200],
    ['feed', 'done'],
  ]);
});
