import { join } from 'node:path';

import { freePort } from '../../src/kit/free-port.ts';
import { chainOf } from '../chains.ts';
import type { FallbackTasks } from '../fallback.ts';
import type { LoadRequest } from '../load.ts';
import { startProgram } from '../programs.ts';
import { digits, figureOf } from '../report.ts';
import { compare, median } from '../rounds.ts';
import type { Run } from '../run.ts';
import type { RunnerTasks } from '../runner.ts';
import { inTimes } from './read.ts';

const read = (path: string): LoadRequest => ({ method: 'GET', path });

/** GET /chains/{id} of a hundred chains on disk, against a route that returns the same bytes. */
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
      body: JSON.stringify(chainOf(index)),
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
  run.report(figureOf('get a chain', 'same bytes', compared, { better: 'more', required: 0.55, stretch: 0.65 }));
}

/** Tests of a thousand simulated prompts, against a bare loop of the engine's decisions on the same plan. */
export async function simulate(run: Run): Promise<void> {
  const count = run.options.quick ? 20 : 100;
  const program = startProgram<RunnerTasks>('./runner.ts', { place: 'server' });
  const { bare, simulated } = await program.call('attempts', null);
  if (bare !== simulated) throw new Error(`The bare loop takes ${bare} attempts and the simulation ${simulated}.`);
  const compared = await compare(
    run.rounds,
    { program, run: () => program.call('bareTests', count) },
    { program, run: () => program.call('simulatedTests', count) },
  );
  await program.stop();
  run.report(inTimes(figureOf('simulate 1,000 prompts, time', 'bare engine', compared, { better: 'less', required: 2 })));
}

/** What a drill adds to a call without a fault, compared with undici alone: the difference of the p50s. */
export async function drill(run: Run): Promise<void> {
  const count = run.options.quick ? 500 : 5_000;
  const provider = startProgram<RunnerTasks>('./runner.ts', { place: 'load' });
  const base = await provider.call('startProvider', null);
  const program = startProgram<RunnerTasks>('./runner.ts', { place: 'server' });
  const bare: number[] = [];
  const bareRound = async () => {
    const times = await program.call('bareCalls', { base, count });
    bare.push(times.p50);
    return times;
  };
  const compared = await compare(
    run.rounds,
    { program, run: bareRound },
    { program, run: () => program.call('drilledCalls', { base, count }) },
  );
  await Promise.all([program.stop(), provider.stop()]);
  // The first round is a warm-up.
  const p50 = median(bare.slice(1));
  const figure = figureOf('drill, added ms of p50', `undici, p50 ${digits(p50)} ms`, compared, { better: 'less', required: 1 });
  run.report({ ...figure, value: compared.p50 - p50 });
}
