import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import { type Stream, type StreamFeed, Streams } from '../../../src/kit/http/streams.ts';
import { MemoryBudget, SharedBuffers } from '../../../src/kit/memory-budget.ts';
import { TestClock } from '../../support/service.ts';

test('a feed may end its stream before it is registered: the end is counted, logged and reported once', () => {
  const ends: unknown[] = [];
  const streams = new Streams({
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
  const request = { id: '1', method: 'GET', info: { route: '/events' } } as unknown as FastifyRequest;
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

/** Streams of owners whose clients take nothing until `take`, with a small memory for what waits. */
function slowStreams(most: number) {
  const streams = new Streams({
    isUnavailable: () => false,
    clock: new TestClock().read,
    logger: { info: () => undefined } as unknown as Logger,
    onEnded: () => undefined,
    memory: new SharedBuffers(new MemoryBudget(most)),
  });
  return (owner: string) => {
    const ends: string[] = [];
    const queue: { length: number; done: (() => void) | undefined }[] = [];
    const stream: Stream = {
      protocol: 'sse',
      waitingBytes: () => queue.reduce((total, { length }) => total + length, 0),
      sentBytes: () => 0,
      write: ({ length }, done) => void queue.push({ length, done }),
      end: (why) => void ends.push(why),
    };
    const request = { id: '1', method: 'GET', info: { route: '/events', caller: owner } } as unknown as FastifyRequest;
    const open = streams.open(stream, request, () => ({ heartbeat: () => Buffer.alloc(0), onEnd: () => undefined }));
    const take = () => {
      for (const { done } of queue.splice(0)) done?.();
    };
    return { open, ends, take };
  };
}

const kibibytes = (count: number) => Buffer.alloc(count * 1024);

test('a message that waits for many clients counts once: they all keep their streams [H163]', () => {
  const start = slowStreams(400 * 1024);
  const streams = Array.from({ length: 20 }, () => start('a'));
  const [one, two] = [kibibytes(50), kibibytes(50)];
  for (const message of [one, two]) for (const { open } of streams) open.send(message);
  assert.deepEqual(
    streams.flatMap(({ ends }) => ends),
    [],
  );
});

test('beyond a quarter of the memory, the streams of an owner with the most waiting end as slow; those of others go on [H163]', () => {
  const start = slowStreams(400 * 1024);
  const [most, less, next, other] = [start('a'), start('a'), start('a'), start('b')];
  for (let count = 0; count < 3; count += 1) most.open.send(kibibytes(20));
  less.open.send(kibibytes(30));
  other.open.send(kibibytes(90));
  assert.deepEqual(
    [most, less, next, other].flatMap(({ ends }) => ends),
    [],
  );
  next.open.send(kibibytes(20));
  assert.deepEqual([most.ends, less.ends, next.ends, other.ends], [['slow'], [], [], []]);
  // What clients take, and what their ends let go, makes room again.
  less.take();
  most.take();
  for (let count = 0; count < 4; count += 1) less.open.send(kibibytes(20));
  assert.deepEqual([less.ends, next.ends], [[], []]);
});

test('beyond the whole memory, the streams of the owner with the most end; small messages count once something waits [H163]', () => {
  const start = slowStreams(400 * 1024);
  const owners = ['a', 'b', 'c', 'd', 'e'].map((owner) => start(owner));
  for (const [index, { open }] of owners.entries()) open.send(kibibytes(index === 2 ? 95 : 75));
  assert.deepEqual(
    owners.map(({ ends }) => ends),
    [[], [], [], [], []],
  );
  for (let count = 0; count < 6; count += 1) owners[0]!.open.send(kibibytes(1));
  assert.deepEqual(
    owners.map(({ ends }) => ends),
    [[], [], ['slow'], [], []],
  );
});

test('what a replay sends is bounded by its own memory', () => {
  const start = slowStreams(40 * 1024);
  const { open, ends } = start('a');
  open.send(kibibytes(500), () => undefined);
  assert.deepEqual(ends, []);
});
