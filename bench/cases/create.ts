import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import type { BareCreateTasks } from '../bare-create.ts';
import { packetOfBytes, searched } from '../bodies.ts';
import type { LoadRequest } from '../load.ts';
import { startProgram } from '../programs.ts';
import { figureOf } from '../report.ts';
import { compare, compareEach, type Side } from '../rounds.ts';
import { headers, jsonHeaders, type MeasuredService, type Run } from '../run.ts';

/** What is created, by what name, and the folder for the files. */
interface Creating {
  name: string;
  bodies: readonly string[];
  folder: string;
}

const posts = (path: string, bodies: readonly string[]): LoadRequest[] =>
  bodies.map((body) => ({ method: 'POST', path, headers: jsonHeaders, body }));

/** Rounds of the echo. */
const echoing = (run: Run, bodies: readonly string[]): Side => ({
  program: run.ceiling,
  run: () => run.again(run.ceilingUrl, posts('/echo', bodies)),
});

/** POST /packets on SQLite on disk against an echo of the same bodies. */
async function againstEcho(run: Run, { name, bodies, folder }: Creating): Promise<void> {
  const service = await run.startService(`sqlite://${join(folder, 'against-echo.db')}`);
  const compared = await compare(run.rounds, echoing(run, bodies), {
    program: service.program,
    run: () => run.again(service.url, posts('/api/v1/packets', bodies)),
  });
  await service.stop();
  run.report(figureOf(name, 'echo', compared, { better: 'more', asked: 0.4, stretch: 0.5 }));
}

/**
 * The bare create against the echo, and the service against the bare create. The service begins with an empty file, as
 * the bare create does. After each of its rounds it indexes what it has left for later: else a fifth of the core would
 * be missing in the rounds of the others.
 */
async function againstBare(run: Run, { name, bodies, folder }: Creating): Promise<void> {
  const service = await run.startService(`sqlite://${join(folder, 'against-bare.db')}`);
  const bare = startProgram<BareCreateTasks>('./bare-create.ts', { place: 'server' });
  const bareUrl = await bare.call('start', { path: join(folder, 'bare.db'), key: headers['x-api-key'] });
  const [bareCompared, compared] = await compareEach(run.rounds, [
    echoing(run, bodies),
    { program: bare, run: () => run.again(bareUrl, posts('/packets', bodies)) },
    {
      program: service.program,
      run: () => run.again(service.url, posts('/api/v1/packets', bodies)),
      finish: () => indexed(service),
    },
  ]);
  await Promise.all([service.stop(), bare.stop()]);
  run.report(figureOf(`bare ${name}`, 'echo', bareCompared!));
  run.report(figureOf(`${name}, of a bare create`, 'bare create', compared!));
}

/** Has the service index what waits: a search begins with that, also for a word that is nowhere. */
async function indexed(service: MeasuredService): Promise<void> {
  const answer = await fetch(`${service.url}/api/v1/packets/search?q=${searched.rare}`, { headers });
  if (answer.status !== 200) throw new Error(`Searching: ${answer.status} ${await answer.text()}`);
  await answer.arrayBuffer();
}

/** The service against the echo and against the bare create. */
async function createBodies(run: Run, name: string, bodies: readonly string[]): Promise<void> {
  const folder = mkdtempSync(join(run.folder, 'create-'));
  await againstEcho(run, { name, bodies, folder });
  await againstBare(run, { name, bodies, folder });
  // Gigabytes that no other case needs.
  rmSync(folder, { recursive: true });
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
