import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

import { approvals } from './cases/approvals.ts';
import { claim } from './cases/claim.ts';
import { contracts } from './cases/contracts.ts';
import { cost } from './cases/cost.ts';
import { create } from './cases/create.ts';
import { held } from './cases/held.ts';
import { hostile } from './cases/hostile.ts';
import { hostileFaces, turns } from './cases/hostile-faces.ts';
import { memory } from './cases/memory.ts';
import { postgres } from './cases/postgres.ts';
import { get, list } from './cases/read.ts';
import { beside, search, searches } from './cases/search.ts';
import { simulate } from './cases/simulate.ts';
import { streams } from './cases/streams.ts';
import { tracing } from './cases/tracing.ts';
import { webhooks } from './cases/webhooks.ts';
import { work } from './cases/work.ts';
import { describeMachine } from './machine.ts';
import { type Figure, lineOf, tableOf } from './report.ts';
import { type Options, type Run, startRun } from './run.ts';

const cases: Record<string, (run: Run) => Promise<void>> = {
  create,
  get,
  list,
  claim,
  cost,
  approvals,
  work,
  search,
  searches,
  beside,
  hostile,
  contracts,
  postgres,
  memory,
  webhooks,
  streams,
  tracing,
  simulate,
};

/** Cases that run only when they are named: parts of another one, and one that takes twenty minutes. */
const parts: typeof cases = { faces: hostileFaces, turns, held };

const help = `npm run bench -- [CASE ...] [OPTION ...]

Cases: ${Object.keys(cases).join(', ')}; all of them when none is named. Only when they are named: ${Object.keys(parts).join(', ')}.

  --quick         shorter rounds and fewer packets
  --packets N     packets in the large list (1,000,000; with --quick 100,000)
  --data FOLDER   keeps the seeded databases there and uses them again
  --profile DIR   writes CPU profiles of the service there
  --out FILE      writes the report there, as Markdown
  --help          prints this
`;

interface Command {
  names: string[];
  options: Options;
  out: string | undefined;
}

/** The default size of the large list. */
const packetsWhen = (quick: boolean) => (quick ? 100_000 : 1_000_000);

/** The options of the command line. */
function readCommand(): Command {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      quick: { type: 'boolean', default: false },
      packets: { type: 'string' },
      data: { type: 'string' },
      profile: { type: 'string' },
      out: { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) {
    process.stdout.write(help);
    process.exit(0);
  }
  const unknown = positionals.filter((name) => !(name in cases || name in parts));
  if (unknown.length > 0) throw new Error(`There is no case ${unknown.join(', ')}.`);
  const { quick, data, profile, out } = values;
  const packets = Number(values.packets ?? packetsWhen(quick));
  if (!Number.isInteger(packets) || packets < 1000) throw new Error('--packets must be a number of at least 1000.');
  return { names: positionals.length > 0 ? positionals : Object.keys(cases), options: { quick, packets, data, profile }, out };
}

/** The command for the report, without local folders. */
function commandLine({ names, options: { quick, packets } }: Command): string {
  const given = [
    ...(names.length < Object.keys(cases).length ? names : []),
    ...(quick ? ['--quick'] : []),
    ...(packets === packetsWhen(quick) ? [] : ['--packets', `${packets}`]),
  ];
  return ['npm run bench', ...(given.length > 0 ? ['--', ...given] : [])].join(' ');
}

/** The stored report. */
function markdownOf(command: Command, figures: readonly Figure[], lines: readonly string[]): string {
  return [`    ${commandLine(command)}`, ...lines, tableOf(figures), ''].join('\n\n');
}

async function main(command: Command): Promise<void> {
  const { names, options, out } = command;
  const figures: Figure[] = [];
  const lines: string[] = [];
  const say = (line: string) => {
    lines.push(line);
    console.log(line);
  };
  const report = (figure: Figure) => {
    figures.push(figure);
    console.log(lineOf(figure));
  };
  say(`${describeMachine()}.`);
  const run = await startRun(options, { report, say });
  for (const name of names) {
    await (cases[name] ?? parts[name])!(run).catch((error: unknown) => {
      process.exitCode = 1;
      say(`${name} failed: ${error instanceof Error ? error.message : error}`);
    });
    // After each case, so that an interrupted run leaves a report of those before.
    if (out !== undefined) writeFileSync(out, markdownOf(command, figures, lines));
  }
  await run.stop();
  console.log(`\n${tableOf(figures)}`);
}

try {
  await main(readCommand());
  // Processes of a failed case end with this one.
  process.exit();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
}
