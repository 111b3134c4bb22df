import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import type { TestContext } from 'node:test';

import { Arrivals } from './arrivals.ts';

/** The addresses of a name, or what happens instead: no such name, a failed server, or no answer at all. */
export type DnsAnswer = readonly string[] | 'no such name' | 'failed' | 'silence';

/** A name server on this machine (RFC 1035). */
interface TestNameServer {
  /** As `createResolver` takes it. */
  readonly server: string;
  /** The questions in the order in which they arrived, such as `A receiver.test`. */
  readonly questions: string[];
  /** Resolves once `count` questions have arrived. */
  asked(count: number): Promise<void>;
}

const types: Readonly<Record<number, 'A' | 'AAAA'>> = { 1: 'A', 28: 'AAAA' };

/**
 * Starts a name server that ends with the test. `answer` is called for each question, and may answer later; its records have
 * a TTL of 0.
 */
export async function startNameServer(
  t: Pick<TestContext, 'after'>,
  answer: (name: string, type: 'A' | 'AAAA') => DnsAnswer | Promise<DnsAnswer>,
): Promise<TestNameServer> {
  const arrivals = new Arrivals<string>();
  const socket = createSocket('udp4');
  let isClosed = false;
  socket.on('message', async (query, { address, port }) => {
    const { name, end, type } = questionOf(query);
    arrivals.add(`${type} ${name}`);
    const found = await answer(name, type);
    if (found === 'silence' || isClosed) return;
    const records = typeof found === 'string' ? [] : found.map((one) => record(one, type));
    const head = Buffer.alloc(12);
    query.copy(head, 0, 0, 2);
    // A response, with recursion available.
    head.writeUInt16BE(0x8180 | (found === 'no such name' ? 3 : found === 'failed' ? 2 : 0), 2);
    head.writeUInt16BE(1, 4);
    head.writeUInt16BE(records.length, 6);
    socket.send(Buffer.concat([head, query.subarray(12, end), ...records]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.after(() => {
    isClosed = true;
    socket.close();
  });
  return {
    server: `127.0.0.1:${socket.address().port}`,
    questions: arrivals.all,
    asked: (count) => arrivals.reached(count),
  };
}

function questionOf(query: Buffer): { name: string; end: number; type: 'A' | 'AAAA' } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at]!; length > 0; length = query[at]!) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  const type = types[query.readUInt16BE(at + 1)];
  if (type === undefined) throw new Error('The resolver asked for another type than A and AAAA.');
  return { name: labels.join('.').toLowerCase(), end: at + 5, type };
}

function record(address: string, type: 'A' | 'AAAA'): Buffer {
  const data = type === 'A' ? Buffer.from(address.split('.').map(Number)) : ipv6Bytes(address);
  // The name of the question, the type, the class IN and a TTL of 0.
  const head = Buffer.from([0xc0, 12, 0, type === 'A' ? 1 : 28, 0, 1, 0, 0, 0, 0, 0, data.length]);
  return Buffer.concat([head, data]);
}

function ipv6Bytes(address: string): Buffer {
  const [before = [], after = []] = address.split('::').map((half) => half.split(':').filter((group) => group !== ''));
  const groups = [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after];
  return Buffer.from(groups.map((group) => group.padStart(4, '0')).join(''), 'hex');
}
