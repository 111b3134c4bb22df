import { copyFileSync } from 'node:fs';
import { join } from 'node:path';

import { packetOfBytes, searched } from '../bodies.ts';
import type { LoadRequest } from '../load.ts';
import { figureOf } from '../report.ts';
import { compare, requireGood } from '../rounds.ts';
import { headers, jsonHeaders, type MeasuredService, type Run, withPostgres } from '../run.ts';
import type { LoadResult } from '../times.ts';
import { inTimes } from './read.ts';

const pageSize = 20;
const queries = {
  'a word in every packet': searched.everywhere,
  'a word in 42 %': searched.common,
  'a rare word': searched.rare,
  'a phrase': `"${searched.phrase.join(' ')}"`,
};

const searchFor = (q: string): LoadRequest => ({
  method: 'GET',
  path: `/api/v1/packets/search?limit=${pageSize}&q=${encodeURIComponent(q)}`,
  headers,
});

/** The query in the form of the index: words are prefixed with the tenant's number, and the only tenant has number 1. */
function matchOf(q: string): string {
  return `"${q
    .replaceAll('"', '')
    .split(' ')
    .map((word) => `1_${word}`)
    .join(' ')}"`;
}

/** Searches against the bare FTS5 query in a bare route, one request at a time. */
export async function search(run: Run): Promise<void> {
  const packets = run.options.quick ? 20_000 : 100_000;
  const path = await run.seeded(packets);
  const service = await run.startService(`sqlite://${path}`);
  await run.ceiling.call('openIndex', path);
  for (const [name, q] of Object.entries(queries)) {
    const bare: LoadRequest = { method: 'GET', path: `/match?limit=${pageSize}&q=${encodeURIComponent(matchOf(q))}` };
    const compared = await compare(
      run.rounds,
      { program: run.ceiling, run: () => run.again(run.ceilingUrl, [bare], 1) },
      { program: service.program, run: () => run.again(service.url, [searchFor(q)], 1) },
    );
    run.report(inTimes(figureOf(`search, ${name}, time`, 'bare FTS5', compared, { better: 'less', required: 1.3, stretch: 1.1 })));
  }
  await service.stop();
}

const many = 'order refund customer invoice shipment carrier warehouse address payment card charge duplicate receipt return policy approve';

/** Searches that would take long without limits: their parameters by name. */
const dearest: Record<string, Record<string, string>> = {
  'a word in every packet': { q: searched.everywhere },
  'a word in 42 %': { q: searched.common },
  'a word in 5 %': { q: searched.some },
  'a rare word': { q: searched.rare },
  'two words': { q: searched.phrase.join(' ') },
  'a phrase': { q: `"${searched.phrase.join(' ')}"` },
  'a phrase in a few': { q: '"order refund customer"' },
  'a phrase in none': { q: '"for handoff"' },
  'sixteen words': { q: many },
  'a phrase of sixteen words': { q: `"${many}"` },
  'a rare word and fifteen': { q: `${searched.rare} ${many}` },
  'a common prefix': { q: 're*' },
  'a prefix in 5 %': { q: `${searched.some.slice(0, 6)}*` },
  'a rare word and a prefix': { q: `${searched.rare} re*` },
  'a phrase with a prefix': { q: '"order re*"' },
  'a word and a tag': { q: searched.common, tags: 'batch-7' },
  'a word and a filter that nothing meets': { q: searched.everywhere, target_agent: 'nobody' },
  'a phrase and a filter': { q: `"${searched.phrase.join(' ')}"`, tags: 'batch-7' },
};

/** The times of searches over very many packets, one request at a time, on both databases. */
export async function searches(run: Run): Promise<void> {
  await searchesOn(run, `sqlite://${await run.seeded(run.options.packets)}`, 'SQLite');
  await withPostgres(run, run.options.packets, (url) => searchesOn(run, url, 'PostgreSQL'));
}

async function searchesOn(run: Run, databaseUrl: string, database: string): Promise<void> {
  const service = await run.startService(databaseUrl);
  for (const [name, parameters] of Object.entries(dearest)) {
    const query = new URLSearchParams({ limit: String(pageSize), ...parameters });
    const { perSecond, p50, p99 } = requireGood(
      await run.again(service.url, [{ method: 'GET', path: `/api/v1/packets/search?${query}`, headers }], 1),
    );
    const target = { better: 'less', required: 150, stretch: 60 } as const;
    run.report({
      name: `${database}: search over ${run.options.packets.toLocaleString('en-US')}, ${name}, ms`,
      perSecond,
      p50,
      p99,
      value: p50,
      target,
    });
  }
  await service.stop();
}

/** Requests per second of the other clients during searches, far below the capacity of the service. */
const othersPerSecond = 500;
const searchers = 10;

/** The effect of searches on other clients: the p99 of gets and creates at a steady rate, alone and next to ten searching clients. */
export async function beside(run: Run): Promise<void> {
  const original = await run.seeded(run.options.quick ? 20_000 : 100_000);
  const path = join(run.folder, 'beside.db');
  copyFileSync(original, path);
  // On a single core the result would depend on the scheduler, so the search threads may use a second core.
  const service = await run.startService(`sqlite://${path}`, 'anywhere');
  const others = await othersOf(service);
  const seconds = Math.max(4, run.seconds);
  const steady = (requests: readonly LoadRequest[]) =>
    run.load({ url: service.url, connections: 20, requests, seconds, rate: othersPerSecond });
  const searching = () =>
    run.load({ url: service.url, connections: searchers, requests: [searchFor(searched.everywhere), searchFor(searched.common)], seconds });

  for (const [name, requests] of Object.entries(others)) {
    await steady(requests);
    const alone: LoadResult[] = [];
    const together: LoadResult[] = [];
    for (let round = 0; round < run.rounds; round += 1) {
      alone.push(requireGood(await steady(requests)));
      const [result] = await Promise.all([steady(requests), searching()]);
      together.push(requireGood(result));
    }
    const quiet = quietest(alone);
    const { perSecond, p50, p99 } = quietest(together);
    run.report({
      name: `p99 of ${name} beside ${searchers} searching`,
      perSecond,
      p50,
      p99,
      against: `alone: p99 ${quiet.p99.toFixed(2)} ms`,
      value: p99 / quiet.p99,
      target: { better: 'less', required: 2, stretch: 1.3 },
    });
  }
  await service.stop();
}

/** The round with the lowest p99, because other load on the machine can only raise it. */
function quietest(rounds: readonly LoadResult[]): LoadResult {
  return rounds.reduce((best, one) => (one.p99 < best.p99 ? one : best));
}

async function othersOf(service: MeasuredService): Promise<Record<string, LoadRequest[]>> {
  const answer = await fetch(`${service.url}/api/v1/packets?limit=200`, { headers });
  const { packets } = (await answer.json()) as { packets: { id: string }[] };
  return {
    gets: packets.map(({ id }) => ({ method: 'GET', path: `/api/v1/packets/${id}`, headers })),
    creates: [{ method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body: packetOfBytes(2048) }],
  };
}
