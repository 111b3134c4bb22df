import { join } from 'node:path';

import { freePort } from '../../test/support/postgres.ts';
import type { FallbackTasks } from '../fallback.ts';
import type { LoadRequest } from '../load.ts';
import { startProgram } from '../programs.ts';
import { figureOf } from '../report.ts';
import { compare } from '../rounds.ts';
import type { Run } from '../run.ts';

/** A chain of ten providers and twenty rules. */
const chain = (index: number) => ({
  name: `chain ${index}`,
  providers: Array.from({ length: 10 }, (_, place) => ({ name: `provider ${place}`, model_id: `openai/model-${place}` })),
  fallback_rules: Array.from({ length: 20 }, (_, place) => ({
    condition: place % 2 === 0 ? 'rate_limit' : 'timeout',
    action: place % 2 === 0 ? 'retry' : 'failover',
    providers: [`provider ${Math.floor(place / 2)}`],
  })),
});

const read = (path: string): LoadRequest => ({ method: 'GET', path });

/** GET /chains/{id} of a hundred chains on disk, against a route that answers the same bytes. */
export async function getChain(run: Run): Promise<void> {
  const port = await freePort();
  const program = startProgram<FallbackTasks>('./fallback.ts', { place: 'server' });
  await program.call('start', { port: String(port), storage: `sqlite://${join(run.folder, 'chains.db')}` });
  const url = `http://127.0.0.1:${port}`;
  const paths: string[] = [];
  let text = '';
  for (let index = 0; index < 100; index += 1) {
    const answer = await fetch(`${url}/chains`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(chain(index)),
    });
    if (answer.status !== 201) throw new Error(`POST /chains: ${answer.status} ${await answer.text()}`);
    paths.push(answer.headers.get('location')!);
    text = await answer.text();
  }
  await run.ceiling.call('answerWith', text);
  const compared = await compare(
    run.rounds,
    { program: run.ceiling, run: () => run.again(run.ceilingUrl, [read('/bytes')]) },
    { program, run: () => run.again(url, paths.map(read)) },
  );
  await program.stop();
  run.report(figureOf('get a chain', 'same bytes', compared, { better: 'more', asked: 0.55, stretch: 0.65 }));
}
