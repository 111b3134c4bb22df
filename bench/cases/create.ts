import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import type { BareCreateTasks } from '../bare-create.ts';
import { packetOfBytes, searched } from '../bodies.ts';
import type { LoadRequest } from '../load.ts';
import { startProgram } from '../programs.ts';
import { figureOf } from '../report.ts';
import { compareAll, type Side } from '../rounds.ts';
import { headers, jsonHeaders, type Run } from '../run.ts';
import { Tenant } from '../tenant.ts';

const posts = (path: string, bodies: readonly string[]): LoadRequest[] =>
  bodies.map((body) => ({ method: 'POST', path, headers: jsonHeaders, body }));

/**
 * POST /packets on SQLite on disk against an echo of the same bodies and against the bare create, and the bare create
 * against the echo. Each round of the service includes the deferred indexing of its packets.
 */
export async function create(run: Run): Promise<void> {
  const name = 'create, 2 KB';
  const bodies = [packetOfBytes(2048)];
  const folder = mkdtempSync(join(run.folder, 'create-'));
  const service = await run.startService(`sqlite://${join(folder, 'service.db')}`);
  const bare = startProgram<BareCreateTasks>('./bare-create.ts', { place: 'server' });
  const bareUrl = await bare.call('start', { path: join(folder, 'bare.db'), key: headers['x-api-key'] });
  const sides: Side[] = [
    { program: bare, run: () => run.again(bareUrl, posts('/packets', bodies)) },
    { program: run.ceiling, run: () => run.again(run.ceilingUrl, posts('/echo', bodies)) },
    {
      program: service.program,
      run: () => run.again(service.url, posts('/api/v1/packets', bodies)),
      // Every search begins with indexing the packets that wait for it.
      finish: () => new Tenant(service.url).get(`/api/v1/packets/search?q=${searched.rare}`),
    },
  ];
  const [ofEcho, ofBare, bareOfEcho] = await compareAll(run.rounds, sides, [
    [1, 2],
    [0, 2],
    [1, 0],
  ]);
  await Promise.all([service.stop(), bare.stop()]);
  // No other case needs these gigabytes.
  rmSync(folder, { recursive: true });
  run.report(figureOf(name, 'echo', ofEcho!, { better: 'more', required: 0.4, stretch: 0.5 }));
  run.report(figureOf(`${name}, of the bare create`, 'bare create', ofBare!));
  run.report(figureOf(`the bare create, ${name.replace('create, ', '')}`, 'echo', bareOfEcho!));
}
