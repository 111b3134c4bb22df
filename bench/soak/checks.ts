import { setTimeout as sleep } from 'node:timers/promises';

import type { createCaller, Ledger } from './load.ts';
import type { Instance } from './places.ts';

type Caller = ReturnType<typeof createCaller>;

/** How long deliveries and streams may take to catch up after the load, in milliseconds. */
const catchUpMs = 120_000;

/** What is still missing of what was promised: deliveries and stream events. */
function missing(ledger: Ledger): string[] {
  const wanted = [
    ...[...ledger.created.values()].map((id) => `packet.created ${id}`),
    ...[...ledger.completed].map((id) => `packet.completed ${id}`),
  ];
  const sets = [['webhook', ledger.delivered], ...ledger.listeners.map(({ seen }, index) => [`listener ${index + 1}`, seen])] as const;
  return sets.flatMap(([name, seen]) => {
    const left = wanted.filter((event) => !(seen as Set<string>).has(event));
    return left.length === 0 ? [] : [`${name} has not got ${left.length} of ${wanted.length} events, such as ${left[0]}`];
  });
}

/** Waits until every delivery and event has arrived, and then compares the stored data with what callers were told. */
export async function check(call: Caller, callFallback: Caller, ledger: Ledger): Promise<void> {
  const end = Date.now() + catchUpMs;
  while (missing(ledger).length > 0 && Date.now() < end) await sleep(500);
  for (const sentence of missing(ledger)) ledger.violation(sentence);
  await checkPackets(call, ledger);
  for (const [chain, tests] of ledger.tests) {
    const { status, body } = await callFallback('GET', `/test-results/${chain}?limit=100`);
    if (status !== 200) ledger.violation(`the chain ${chain} is lost (${status})`);
    else {
      const stored = new Set(body.map(({ id }: { id: string }) => id));
      for (const id of tests) if (!stored.has(id)) ledger.violation(`the test ${id} is lost`);
    }
  }
}

/** Reads all packets and compares them with the answers: none lost, none twice. */
async function checkPackets(call: Caller, ledger: Ledger): Promise<void> {
  const stored = new Map<string, string>();
  let cursor = '';
  let total = 0;
  do {
    const { body } = await call('GET', `/api/v1/packets?limit=200${cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`}`);
    for (const { id, status } of body.packets) {
      if (stored.has(id)) ledger.violation(`${id} is listed twice`);
      stored.set(id, status);
    }
    total = body.total ?? total;
    cursor = body.next_cursor ?? '';
  } while (cursor !== '');
  const created = new Set(ledger.created.values());
  if (created.size !== ledger.created.size) ledger.violation('two keys created the same packet');
  if (stored.size !== created.size) ledger.violation(`${stored.size} packets are stored, and ${created.size} creates were answered`);
  if (total !== stored.size) ledger.violation(`the list counts ${total} packets and has ${stored.size}`);
  for (const id of created) if (!stored.has(id)) ledger.violation(`the packet ${id} is lost`);
  for (const id of ledger.completed)
    if (stored.get(id) !== 'completed') ledger.violation(`the completed packet ${id} is ${stored.get(id)}`);
}

/**
 * The fewest samples after the warm-up, one a second, from which memory is judged; a run of thirty minutes has them. In ten
 * minutes the resident memory of both services still rose by a quarter, while the heap after collections stayed the same.
 */
const leastSamples = 480;

/** Samples of the memory of a process, in MiB, at a time in seconds. */
export class MemorySamples {
  readonly name: string;
  readonly #instance: Instance;
  #samples: { at: number; rss: number }[] = [];
  #ends: number;

  constructor(instance: Instance) {
    this.name = instance.name;
    this.#instance = instance;
    this.#ends = instance.ends;
  }

  take(): void {
    const rss = this.#instance.rss();
    // A new process begins anew.
    if (this.#instance.ends !== this.#ends) this.#samples = [];
    this.#ends = this.#instance.ends;
    if (rss !== undefined) this.#samples.push({ at: performance.now() / 1000, rss });
  }

  /** The medians of twelve equal parts of the time since its last start. */
  curve(): string {
    const part = Math.max(1, Math.floor(this.#samples.length / 12));
    const parts = Array.from({ length: Math.ceil(this.#samples.length / part) }, (_, index) =>
      this.#samples.slice(index * part, (index + 1) * part),
    );
    return `${this.name}, every ${Math.round(part / 6) / 10} minutes, in MiB: ${parts.map((list) => median(list).toFixed(0)).join(' ')}`;
  }

  /**
   * Judges the samples after a warm-up, the first third: the median of the last quarter may exceed that of the first by a
   * tenth and 16 MiB, which garbage that waits for its collection explains.
   */
  judge(): { text: string; isFlat: boolean } {
    const samples = this.#samples.slice(Math.floor(this.#samples.length / 3));
    if (samples.length < leastSamples) return { text: `${this.name}: too few samples to judge its memory`, isFlat: true };
    const quarter = Math.floor(samples.length / 4);
    const [first, last] = [median(samples.slice(0, quarter)), median(samples.slice(-quarter))];
    const minutes = (samples.at(-1)!.at - samples[0]!.at) / 60;
    const text = `${this.name}: ${first.toFixed(0)} MiB, then ${last.toFixed(0)} MiB over ${minutes.toFixed(1)} minutes (slope ${slope(samples).toFixed(2)} MiB a minute)`;
    const isFlat = last <= first * 1.1 + 16;
    return { text: `${text}: ${isFlat ? 'flat' : 'it grew'}`, isFlat };
  }
}

const median = (samples: readonly { rss: number }[]): number =>
  samples.map(({ rss }) => rss).toSorted((a, b) => a - b)[Math.floor(samples.length / 2)]!;

/** The slope of a least-squares line, in MiB a minute. */
function slope(samples: readonly { at: number; rss: number }[]): number {
  const mean = (list: readonly number[]) => list.reduce((sum, one) => sum + one, 0) / list.length;
  const [at, rss] = [mean(samples.map((one) => one.at)), mean(samples.map((one) => one.rss))];
  const top = samples.reduce((sum, one) => sum + (one.at - at) * (one.rss - rss), 0);
  return (top / samples.reduce((sum, one) => sum + (one.at - at) ** 2, 0)) * 60;
}
