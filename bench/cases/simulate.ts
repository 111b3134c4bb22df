import { startProgram } from '../programs.ts';
import { figureOf } from '../report.ts';
import { compare } from '../rounds.ts';
import type { Run } from '../run.ts';
import type { RunnerTasks } from '../runner.ts';
import { inTimes } from './read.ts';

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
