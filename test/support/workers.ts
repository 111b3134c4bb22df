import assert from 'node:assert/strict';

import { packetRequest, type TestService } from './service.ts';

/** What workers took: the id of every packet that a request was answered with. */
export interface Taken {
  readonly ids: string[];
  /** Answers other than a packet, by their status. */
  readonly others: Map<number, number>;
}

export interface WorkersOptions {
  /** How many packets there are to take, now or later: the services are stopped behind the last. */
  total?: number;
  wait_seconds?: number;
}

/** Workers, spread over instances, each of which asks again until all is taken or it is answered otherwise than with a packet. */
export async function runWorkers(
  services: readonly TestService[],
  count: number,
  { total = Number.POSITIVE_INFINITY, wait_seconds = 0 }: WorkersOptions = {},
): Promise<Taken> {
  const ids: string[] = [];
  const others = new Map<number, number>();
  let running = count;
  async function work(index: number): Promise<void> {
    const service = services[index % services.length]!;
    while (ids.length < total) {
      const body = { agent_id: `worker-${index}`, target_agent: 'resolver', wait_seconds };
      const answer = await service.call('POST', '/packets/claim-next', { body });
      if (answer.status !== 200) {
        others.set(answer.status, (others.get(answer.status) ?? 0) + 1);
        break;
      }
      ids.push(answer.body.id);
      if (ids.length === total) void stop();
    }
    running -= 1;
  }
  async function stop(): Promise<void> {
    while (waitingAt(services) < running) await new Promise(setImmediate);
    await Promise.all(services.map(({ handoff }) => handoff.stop()));
  }
  await Promise.all(Array.from({ length: count }, (_, index) => work(index)));
  return { ids, others };
}

/** How many requests wait for a packet, at all instances together. */
export const waitingAt = (services: readonly TestService[]): number => services.reduce((sum, { handoff }) => sum + handoff.waiting(), 0);

/** Creates so many packets for `resolver`, in batches. */
export async function createPackets(service: TestService, count: number): Promise<void> {
  for (let left = count; left > 0; left -= 100) {
    const packets = Array.from({ length: Math.min(left, 100) }, () => packetRequest());
    const { status, text } = await service.call('POST', '/packets/batch', { body: { packets } });
    assert.equal(status, 201, text);
  }
}

/** Asserts that each of so many packets was given to one worker, and that no other answer was a refusal. */
export function assertEachOnce({ ids, others }: Taken, count: number): void {
  assert.equal(ids.length, count);
  assert.equal(new Set(ids).size, count);
  assert.deepEqual([...others.keys()], [204]);
}
