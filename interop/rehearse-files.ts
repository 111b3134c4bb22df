// Rehearses the files of `files.ts` several times: `node rehearse-files.ts [--runs 5] [--jobs 1] [TEXT...]`, where a text selects the files
// whose names contain it. With LITELLM=newest, those of LiteLLM with its newest version. By hand and in `.ci/full`.
import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { litellmFolder } from './extent.ts';
import { problemOf, programs, type RehearsedFile, rehearsedFiles, rehearseFile } from './files.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: 'string', default: '5' }, jobs: { type: 'string', default: '1' }, output: { type: 'string' } },
});
const selected = rehearsedFiles.filter(({ file }) => positionals.length === 0 || positionals.some((text) => file.includes(text)));
const unknown = positionals.filter((text) => !rehearsedFiles.some(({ file }) => file.includes(text)));
if (unknown.length > 0) throw new Error(`No file has ${unknown.join(' or ')} in its name.`);
const folder = await mkdtemp(join(tmpdir(), 'rehearse-files-'));
const script = new URL('litellm_forks.py', import.meta.url).pathname;
const python = `${litellmFolder}/bin/python`;
const socket = join(folder, 'litellm');

/** Imports LiteLLM once for all runs. */
async function startForks() {
  const child = spawn(python, [script, 'serve', socket], { stdio: ['pipe', 'pipe', 'inherit'] });
  await new Promise((resolve, reject) => {
    child.stdout.once('data', resolve);
    child.once('exit', (code) => reject(new Error(`LiteLLM ended with ${code}.`)));
  });
  return child;
}

const forks = selected.some(({ program }) => program === 'litellm') ? await startForks() : undefined;
const commands = { ...programs, litellm: `'${python}' '${script}' run '${socket}' --config {config} --port {port}` };
const runs = Array.from({ length: Number(values.runs) }, (_, index) => selected.map((file) => [file, index + 1] as const)).flat();
const wrong: string[] = [];
const codesOf = new Map<string, number[]>();

async function next(): Promise<void> {
  for (let run = runs.shift(); run !== undefined; run = runs.shift()) await rehearsed(...run);
}

async function rehearsed(file: RehearsedFile, round: number): Promise<void> {
  const begin = performance.now();
  const ended = await rehearseFile(file, commands[file.program]);
  const seconds = ((performance.now() - begin) / 1000).toFixed(0);
  const problem = problemOf(file, ended);
  const total = ended.output.trimEnd().split('\n').at(-1) ?? '';
  console.log(`${problem === null ? 'right' : 'WRONG'}  ${file.file}, run ${round}: ${ended.code} after ${seconds} s. ${total}`);
  codesOf.set(file.file, [...(codesOf.get(file.file) ?? []), ended.code]);
  if (values.output !== undefined) await writeFile(join(values.output, `${file.file.replaceAll('/', '-')}-${round}.txt`), ended.output);
  if (problem === null) return;
  wrong.push(`${file.file}, run ${round}: ${problem}`);
  console.log(ended.output);
}

try {
  await Promise.all(Array.from({ length: Number(values.jobs) }, next));
} finally {
  forks?.kill();
  await rm(folder, { recursive: true });
}
for (const [file, codes] of codesOf) console.log(`${file}: ${codes.join(' ')}`);
console.log(wrong.length === 0 ? `All ${codesOf.size} files have their right result.` : wrong.join('\n'));
process.exitCode = wrong.length === 0 ? 0 : 1;
