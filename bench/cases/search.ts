import { copyFileSync } from 'node:fs';
import { join } from 'node:path';

import { packetOfBytes, searched } from '../bodies.ts';
import type { LoadRequest } from '../load.ts';
import { figureOf } from '../report.ts';
import { besides, compare, requireGood } from '../rounds.ts';
import { headers, jsonHeaders, type Run, withPostgres } from '../run.ts';
import { Tenant } from '../tenant.ts';
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
  const others: Record<string, LoadRequest[]> = {
    gets: (await new Tenant(service.url).packetPaths()).map((path) => ({ method: 'GET', path, headers })),
    creates: [{ method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body: packetOfBytes(2048) }],
  };
  const seconds = Math.max(4, run.seconds);
  const { url } = service;
  const searching = [searchFor(searched.everywhere), searchFor(searched.common)];
  for (const [name, requests] of Object.entries(others)) {
    const measure = async () => ({
      [`p99 of ${name} beside ${searchers} searching`]: requireGood(
        await run.load({ url, connections: 20, requests, seconds, rate: othersPerSecond }),
      ),
    });
    const start = () => {
      const answered = run.load({ url, connections: searchers, requests: searching, seconds });
      return () => answered;
    };
    for (const figure of await besides(run.rounds, measure, start)) run.report(figure);
  }
  await service.stop();
}
