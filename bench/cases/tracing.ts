import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import type { HookTasks } from '../hooks.ts';
import type { LoadRequest } from '../load.ts';
import { startProgram } from '../programs.ts';
import { requireGood } from '../rounds.ts';
import { connections, headers, jsonHeaders, type Run } from '../run.ts';

/** How many packets are read in turn, how many requests a round has, and how many rounds there are after one that warms up. */
const packets = 200;
const perRound = 4000;
const rounds = 8;

/**
 * The processor time of a get and a create with the export of all spans or a tenth of them, to a receiver that takes them
 * at once, against a service without export. A second one without export shows how exact that is. The services take
 * turns, and the least of each counts, since what else the machine does can only add.
 */
export async function tracing(run: Run): Promise<void> {
  const hooks = startProgram<HookTasks>('./hooks.ts', { place: 'load' });
  const { url: receiver } = await hooks.call('listen', true);
  const begin = async (name: string, settings: Record<string, string> = {}) => {
    const databaseUrl = `sqlite://${join(run.folder, `tracing-${name}.db`)}`;
    const ids = await run.fill(databaseUrl, packets);
    const get = ids.map((id): LoadRequest => ({ method: 'GET', path: `/api/v1/packets/${id}`, headers }));
    const create: LoadRequest[] = [{ method: 'POST', path: '/api/v1/packets', headers: jsonHeaders, body: packetOfBytes(2048) }];
    return { name, service: await run.startService(databaseUrl, 'server', settings), requests: { get, create } };
  };
  const exporting = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver };
  const all = [
    await begin('none'),
    await begin('none, again'),
    await begin('a tenth', { ...exporting, OTEL_TRACES_SAMPLER_ARG: '0.1' }),
    await begin('all', exporting),
  ];
  try {
    for (const kind of ['get', 'create'] as const) {
      const least = all.map(() => Number.POSITIVE_INFINITY);
      for (let round = 0; round <= rounds; round += 1) {
        for (const [index, { service, requests }] of all.entries()) {
          const before = await service.program.cpu();
          requireGood(await run.burst({ url: service.url, connections, requests: requests[kind], count: perRound }));
          const cpu = ((await service.program.cpu()) - before) / perRound;
          if (round > 0) least[index] = Math.min(least[index]!, cpu);
        }
      }
      for (const [index, { name }] of all.entries())
        run.report({ name: `${kind}, spans: ${name}`, cpu: least[index]!, against: 'none', value: least[index]! / least[0]! });
    }
    const [none, , , some] = await Promise.all(all.map(({ service }) => service.program.call('memory', null)));
    run.report({ name: 'RSS with all spans, more MB', value: (some!.rss - none!.rss) / 1e6 });
  } finally {
    await Promise.all(all.map(({ service }) => service.stop()));
    await hooks.stop();
  }
}
