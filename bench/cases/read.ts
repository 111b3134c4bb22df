import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import type { LoadRequest } from '../load.ts';
import { figureOf } from '../report.ts';
import { type Compared, compare } from '../rounds.ts';
import { headers, type MeasuredService, type Run } from '../run.ts';
import { Tenant } from '../tenant.ts';

const read = (path: string): LoadRequest => ({ method: 'GET', path, headers });

/** Compares reads with a route that returns the same bytes. */
async function againstSameBytes(run: Run, service: MeasuredService, paths: readonly string[]): Promise<Compared> {
  await run.ceiling.call('answerWith', await textOf(service, paths[0]!));
  return compare(
    run.rounds,
    { program: run.ceiling, run: () => run.again(run.ceilingUrl, [read('/bytes')]) },
    { program: service.program, run: () => run.again(service.url, paths.map(read)) },
  );
}

/** The text that the service answers at a path. */
const textOf = ({ url }: MeasuredService, path: string): Promise<string> => new Tenant(url).get(path);

/** GET /packets/{id} of two hundred packets. */
export async function get(run: Run): Promise<void> {
  const service = await run.startService(`sqlite://${join(run.folder, 'get.db')}`);
  const paths: string[] = [];
  for (let index = 0; index < 200; index += 1) {
    const { id } = await new Tenant(service.url).post('/api/v1/packets', JSON.parse(packetOfBytes(2048, index)));
    paths.push(`/api/v1/packets/${id}`);
  }
  const compared = await againstSameBytes(run, service, paths);
  await service.stop();
  run.report(figureOf('get, 2 KB', 'same bytes', compared, { better: 'more', required: 0.55, stretch: 0.65 }));
}

/** The paths of consecutive pages. */
async function pagesFrom(service: MeasuredService, path: string, count: number): Promise<string[]> {
  const paths: string[] = [];
  for (let cursor: string | null = null; paths.length < count; ) {
    const next: string = cursor === null ? path : `${path}&cursor=${cursor}`;
    paths.push(next);
    cursor = (JSON.parse(await textOf(service, next)) as { next_cursor: string | null }).next_cursor;
    if (cursor === null) break;
  }
  return paths;
}

/** How many pages the connections read in a loop, each from a different start. */
const ownPages = 200;

/** The first page, a deep page, pages of a large list, and the effect of depth and list size on a page. */
export async function list(run: Run): Promise<void> {
  const { packets } = run.options;
  const large = await run.startService(`sqlite://${await run.seeded(packets)}`);
  const small = await run.startService(`sqlite://${await run.seeded(10_000)}`);
  const first = '/api/v1/packets?limit=50';
  const { next_cursor } = JSON.parse(await textOf(large, `${first}&offset=${Math.floor(packets * 0.9)}`)) as { next_cursor: string };
  const deep = `${first}&cursor=${next_cursor}`;
  const many = packets.toLocaleString('en-US');

  const target = { better: 'more', required: 0.5, stretch: 0.65 } as const;
  run.report(figureOf(`list, first 50 of ${many}`, 'same bytes', await againstSameBytes(run, large, [first]), target));
  run.report(figureOf(`list, 50 behind a cursor, ${many}`, 'same bytes', await againstSameBytes(run, large, [deep]), target));

  const own = await pagesFrom(large, first, ownPages);
  run.report(figureOf(`list, each its own 50 of ${many}`, 'same bytes', await againstSameBytes(run, large, own)));

  // One request at a time, because identical concurrent requests share one read.
  const timesOf = (one: MeasuredService, path: string) => ({ program: one.program, run: () => run.again(one.url, [read(path)], 1) });
  const reports: [string, string, Compared, number, number][] = [
    ['list, deep page, time', 'first page', await compare(run.rounds, timesOf(large, first), timesOf(large, deep)), 1.15, 1.05],
    [`list with total, ${many}, time`, 'of 10,000', await compare(run.rounds, timesOf(small, first), timesOf(large, first)), 1.3, 1.1],
    [
      `list a status with total, ${many}, time`,
      'of 10,000',
      await compare(run.rounds, timesOf(small, `${first}&status=created`), timesOf(large, `${first}&status=created`)),
      1.3,
      1.1,
    ],
  ];
  for (const [name, ceiling, compared, required, stretch] of reports)
    run.report(inTimes(figureOf(name, ceiling, compared, { better: 'less', required, stretch })));
  await Promise.all([large.stop(), small.stop()]);
}

/** The same comparison as a ratio of times. */
export function inTimes<F extends { value?: number; cpuValue?: number }>(figure: F): F {
  return { ...figure, value: 1 / figure.value!, cpuValue: 1 / figure.cpuValue! };
}
