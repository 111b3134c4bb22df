import assert from 'node:assert/strict';

import { packetRequest, type TestService } from './service.ts';
import { until } from './until.ts';

/** The result of the workers: the id of every packet that a request was answered with. */
interface WorkersResult {
  readonly ids: string[];
  /** The number of other answers, by status. */
  readonly others: Map<number, number>;
}

interface WorkersOptions {
  /** The number of packets to take: the services are stopped after the last. */
  total?: number;
  wait_seconds?: number;
}

/** Runs workers, spread over instances. Each claims packets until all are taken, or it gets another answer. */
export async function runWorkers(
  services: readonly TestService[],
  count: number,
  { total = Number.POSITIVE_INFINITY, wait_seconds = 0 }: WorkersOptions = {},
): Promise<WorkersResult> {
  const ids: string[] = [];
  const others = new Map<number, number>();
  let running = count;
  let stopping: Promise<void> | undefined;
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
      if (ids.length === total) stopping = stop();
    }
    running -= 1;
  }
  async function stop(): Promise<void> {
    await until(() => waitingAt(services) >= running);
    await Promise.all(services.map(({ handoff }) => handoff.stop()));
  }
  await Promise.all(Array.from({ length: count }, (_, index) => work(index)));
  await stopping;
  return { ids, others };
}

/** The number of requests that wait for a packet on all instances. */
export const waitingAt = (services: readonly TestService[]): number => services.reduce((sum, { handoff }) => sum + handoff.waiting(), 0);

/** Creates `count` packets for `resolver`, in batches. */
export async function createPackets(service: TestService, count: number, fields: Record<string, unknown> = {}): Promise<void> {
  for (let left = count; left > 0; left -= 100) {
    const packets = Array.from({ length: Math.min(left, 100) }, () => packetRequest(fields));
    const { status, text } = await service.call('POST', '/packets/batch', { body: { packets } });
    assert.equal(status, 201, text);
  }
}

/** Asserts that each of `count` packets went to exactly one worker, and that all other answers were 204. */
export function assertEachOnce({ ids, others }: WorkersResult, count: number): void {
  assert.equal(ids.length, count);
  assert.equal(new Set(ids).size, count);
  assert.deepEqual([...others.keys()], [204]);
}
