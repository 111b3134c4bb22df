import type { LoadResult } from './times.ts';

/** One of the two things that are compared: the program that does the work, and a round of it. */
export interface Side {
  program: { cpu(): Promise<number> };
  /** What must be there before the round and does not count. */
  prepare?(): Promise<unknown>;
  run(round: number): Promise<LoadResult>;
  /** Does what the round has left for later. It counts to the round, in time and in processor time, and slows nobody else. */
  finish?(): Promise<unknown>;
}

/** What several rounds of two things in turn came to. */
export interface Compared {
  /** Medians of the product's rounds. */
  perSecond: number;
  p50: number;
  p99: number;
  ceilingPerSecond: number;
  /** Processor time of one request, in microseconds. */
  cpu: number;
  ceilingCpu: number;
  /** The median of the ratios of speed, each of two neighbours in time. */
  ratio: number;
  /** The same of processor time: what the ratio would be if nothing else ran on the machine. */
  cpuRatio: number;
}

interface Round extends LoadResult {
  cpu: number;
}

/** The middle of the values. */
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

/** What pairs of neighbours came to. */
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
 * Runs things in turn, several times, after a round of each that does not count, and compares those of each pair (ceiling,
 * product; their places in `sides`) turn by turn: machines are shared, so a round is compared with its neighbours. The
 * rounds of each are numbered from 0, the warm-up's number.
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

/** Runs ceiling and product in turn, and compares the product with the ceiling. */
export async function compare(rounds: number, ceiling: Side, product: Side): Promise<Compared> {
  const [compared] = await compareAll(rounds, [ceiling, product], [[0, 1]]);
  return compared!;
}

/** A figure counts only when every request was answered as it should be. */
export function requireGood(result: LoadResult): LoadResult {
  if (result.failed > 0 || result.requests === 0) throw new Error(`${result.failed} of ${result.requests} requests failed.`);
  return result;
}
