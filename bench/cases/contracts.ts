import { performance } from 'node:perf_hooks';

import { type Checker, compileSchema } from '../../src/handoff/json-schema/compile.ts';
import { hostileSchemas } from '../../test/support/hostile-schemas.ts';
import type { Run } from '../run.ts';
import { quantile } from '../times.ts';

/** A contract as an agent may have it, and a packet of 64 KB that satisfies it. */
const contract = {
  type: 'object',
  required: ['context'],
  properties: {
    context: {
      type: 'object',
      required: ['summary', 'custom', 'artifacts'],
      properties: {
        summary: { type: 'string', minLength: 20, maxLength: 5000 },
        custom: { type: 'object', required: ['order_id'], properties: { order_id: { type: 'string', pattern: '^ORD-[0-9]+$' } } },
        artifacts: {
          type: 'array',
          maxItems: 1000,
          items: {
            type: 'object',
            required: ['key', 'value'],
            properties: {
              key: { type: 'string', minLength: 1 },
              value: { type: 'object', required: ['n'], properties: { n: { type: 'integer', minimum: 0 }, s: { type: 'string' } } },
              content_type: { enum: ['text/plain', 'application/json'] },
            },
          },
        },
      },
    },
    metadata: { properties: { priority: { enum: ['high', 'critical'] } } },
  },
};
const packet = {
  metadata: { priority: 'high' },
  context: {
    summary: 'The lamp arrived broken. '.repeat(20),
    custom: { order_id: 'ORD-4711' },
    artifacts: Array.from({ length: 760 }, (_, n) => ({ key: `k${n}`, value: { n, s: 'abcdefghijklmnop' }, content_type: 'text/plain' })),
  },
};

const checkerOf = (schema: unknown): Checker => {
  const result = compileSchema(schema);
  if ('faults' in result) throw new Error(result.faults[0]!.detail);
  return result.checker;
};

/** The processor time of a piece of work on this thread, in milliseconds. */
function costOf(work: () => unknown): number {
  const before = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

/** Checks of packets against contracts, in this process: one of 64 KB, and those that are made to be slow. */
export async function contracts(run: Run): Promise<void> {
  const bytes = Buffer.byteLength(JSON.stringify(packet));
  if (bytes < 64_000) throw new Error(`The packet has ${bytes} bytes.`);
  const checker = checkerOf(contract);
  if (checker.check(packet).faults.length > 0) throw new Error('The packet does not satisfy the contract.');
  const times: number[] = [];
  const ends = performance.now() + 1000 * run.seconds;
  // The processor time of a thread is only exact to some milliseconds.
  const together = 50;
  while (performance.now() < ends)
    times.push(
      costOf(() => {
        for (let round = 0; round < together; round += 1) checker.check(packet);
      }) / together,
    );
  const p50 = quantile(times, 0.5);
  run.report({
    name: 'a check of 64 KB against a contract, ms',
    p50,
    p99: quantile(times, 0.99),
    value: p50,
    target: { better: 'less', required: 1 },
  });
  // The least of three, since a collection of garbage may fall into any.
  const least = (work: () => unknown) => Math.min(...[1, 2, 3].map(() => costOf(work)));
  const hostile = Object.values(hostileSchemas);
  const slowestCompilation = Math.max(...hostile.map(([schema]) => least(() => checkerOf(schema))));
  const slowestCheck = Math.max(
    ...hostile.map(([schema, value]) => {
      const slow = checkerOf(schema);
      return least(() => slow.check(value));
    }),
  );
  run.report({ name: 'the slowest hostile check, ms', value: slowestCheck, target: { better: 'less', required: 250 } });
  run.report({ name: 'the slowest hostile compilation, ms', value: slowestCompilation, target: { better: 'less', required: 250 } });
}
