import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { packetOfBytes } from '../bodies.ts';
import type { LoadRequest } from '../load.ts';
import { figureOf } from '../report.ts';
import { compare } from '../rounds.ts';
import { jsonHeaders, type Run } from '../run.ts';

/** POST /packets on SQLite on disk against an echo of the same bodies. */
async function createBodies(run: Run, name: string, bodies: readonly string[]): Promise<void> {
  const service = await run.startService(`sqlite://${join(run.folder, `${name.replaceAll(/\W+/g, '-')}.db`)}`);
  const to = (path: string): LoadRequest[] => bodies.map((body) => ({ method: 'POST', path, headers: jsonHeaders, body }));
  const compared = await compare(
    run.rounds,
    { program: run.ceiling, run: () => run.again(run.ceilingUrl, to('/echo')) },
    { program: service.program, run: () => run.again(service.url, to('/api/v1/packets')) },
  );
  await service.stop();
  run.report(figureOf(name, 'echo', compared, { better: 'more', asked: 0.4, stretch: 0.5 }));
}

/** Creating packets of 2 KB. */
export async function create(run: Run): Promise<void> {
  await createBodies(run, 'create, 2 KB', [packetOfBytes(2048)]);
}

/** Creating real handoffs from a file, or generated packets of 12 KB. */
export async function createLarge(run: Run): Promise<void> {
  const { file } = run.options;
  const bodies =
    file === undefined
      ? [packetOfBytes(12_288)]
      : readFileSync(file, 'utf8')
          .split('\n')
          .filter((line) => line !== '');
  await createBodies(run, file === undefined ? 'create, 12 KB' : 'create, real handoffs', bodies);
}
