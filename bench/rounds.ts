import type { Figure } from './report.ts';
import type { LoadResult } from './times.ts';

/** One side of a comparison: the process that does the work, and a round of it. */
export interface Side {
  program: { cpu(): Promise<number> };
  /** Setup before the round, which is not measured. */
  prepare?: () => Promise<unknown>;
  run: (round: number) => Promise<LoadResult>;
  /** Finishes work that the round deferred. It counts toward the round's elapsed and CPU time. */
  finish?: () => Promise<unknown>;
}

/** The result of alternating rounds of two sides. */
export interface Compared {
  /** The medians of the product's rounds. */
  perSecond: number;
  p50: number;
  p99: number;
  ceilingPerSecond: number;
  /** CPU time per request, in microseconds. */
  cpu: number;
  ceilingCpu: number;
  /** The median ratio of speed between neighbouring rounds. */
  ratio: number;
  /** The same ratio for CPU time, which is less affected by other load on the machine. */
  cpuRatio: number;
}

interface Round extends LoadResult {
  cpu: number;
}

/** The median of the values. */
export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

async function roundOf({ program, prepare, run, finish }: Side, round: number): Promise<Round> {
  await prepare?.();
  const before = await program.cpu();
  const result = requireGood(await run(round));
  const answered = performance.now();
  await finish?.();
  const seconds = result.requests / result.perSecond + (performance.now() - answered) / 1000;
  return { ...result, perSecond: result.requests / seconds, cpu: ((await program.cpu()) - before) / result.requests };
}

/** The comparison of pairs of neighbouring rounds. */
function comparedOf(pairs: readonly { ceiling: Round; product: Round }[]): Compared {
  const middle = (value: (pair: { ceiling: Round; product: Round }) => number) => median(pairs.map(value));
  return {
    perSecond: middle((pair) => pair.product.perSecond),
    p50: middle((pair) => pair.product.p50),
    p99: middle((pair) => pair.product.p99),
    ceilingPerSecond: middle((pair) => pair.ceiling.perSecond),
    cpu: middle((pair) => pair.product.cpu),
    ceilingCpu: middle((pair) => pair.ceiling.cpu),
    ratio: middle((pair) => pair.product.perSecond / pair.ceiling.perSecond),
    cpuRatio: middle((pair) => pair.ceiling.cpu / pair.product.cpu),
  };
}

/**
 * Runs sides in alternating rounds, after one warm-up round each that is not measured, and compares those of each pair
 * (ceiling, product; indexes into `sides`) round by round: machines are shared, so a round is compared with its
 * neighbours. The rounds of each side are numbered from 0, the warm-up.
 */
export async function compareAll(rounds: number, sides: readonly Side[], pairs: readonly [number, number][]): Promise<Compared[]> {
  const turns: Round[][] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const turn: Round[] = [];
    for (const side of sides) turn.push(await roundOf(side, round));
    turns.push(turn);
  }
  const counted = turns.slice(1);
  return pairs.map(([ceiling, product]) => comparedOf(counted.map((turn) => ({ ceiling: turn[ceiling]!, product: turn[product]! }))));
}

/** Runs ceiling and product in alternating rounds, and compares the product with the ceiling. */
export async function compare(rounds: number, ceiling: Side, product: Side): Promise<Compared> {
  const [compared] = await compareAll(rounds, [ceiling, product], [[0, 1]]);
  return compared!;
}

/** Throws unless every request got the expected answer. */
export function requireGood(result: LoadResult): LoadResult {
  if (result.failed > 0 || result.requests === 0) throw new Error(`${result.failed} of ${result.requests} requests failed.`);
  return result;
}

/** The median of several rounds, after one that warms up. */
export async function medianOf(rounds: number, measure: () => Promise<number>): Promise<number> {
  await measure();
  const values: number[] = [];
  for (let round = 0; round < rounds; round += 1) values.push(await measure());
  return median(values);
}

type Waits = Pick<LoadResult, 'p99'> & Partial<LoadResult>;

/**
 * The figures of others' requests beside something that `start` starts and returns how to stop, in turns with rounds alone
 * after one that warms up; `measure` returns them by the names of the figures. The rounds with the lowest p99 count, because other load on
 * the machine can only raise it.
 */
export async function besides(
  rounds: number,
  measure: () => Promise<Record<string, Waits>>,
  start: () => () => Promise<unknown>,
): Promise<Figure[]> {
  const names = Object.keys(await measure());
  const alone: Record<string, Waits>[] = [];
  const together: typeof alone = [];
  for (let round = 0; round < rounds; round += 1) {
    alone.push(await measure());
    const stop = start();
    together.push(await measure());
    await stop();
  }
  const quietest = (all: typeof alone, name: string) =>
    all.map((one) => one[name]!).reduce((best, one) => (one.p99 < best.p99 ? one : best));
  return names.map((name) => {
    const quiet = quietest(alone, name);
    const { perSecond, p50, p99 } = quietest(together, name);
    const timed = perSecond === undefined || p50 === undefined ? {} : { perSecond, p50 };
    const against = `alone: p99 ${quiet.p99.toFixed(2)} ms`;
    return { name, ...timed, p99, against, value: p99 / quiet.p99, target: { better: 'less', required: 2, stretch: 1.3 } };
  });
}
