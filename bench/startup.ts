import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

import { listen } from '../test/support/listen.ts';
import { median } from './rounds.ts';

// The startup time of `service-cli` against `node -e 0`: `node bench/startup.ts`. The two run alternately, and the result is the
// median ratio of neighbouring runs, so that other load on the machine affects both. CPU time is reported next to elapsed time,
// because other load changes it less.

const rounds = 15;
const program = fileURLToPath(new URL('../bin/service-cli.js', import.meta.url));

/** The elapsed time and the CPU time of a process, in milliseconds. */
interface Start {
  readonly wall: number;
  readonly cpu: number;
}

/** A preload module that makes a process write its CPU time, in microseconds, to file descriptor 3. */
const meter = fileURLToPath(new URL('./meter.cjs', import.meta.url));

async function timeOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<Start> {
  const begun = performance.now();
  const child = spawn(process.execPath, ['--require', meter, ...args], { env, stdio: ['ignore', 'ignore', 'ignore', 'pipe'] });
  let written = '';
  (child.stdio[3] as Readable).setEncoding('utf8').on('data', (text) => {
    written += text;
  });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}.`);
  return { wall: performance.now() - begun, cpu: Number(written) / 1000 };
}

const page = JSON.stringify({ packets: [], total: 0, limit: 20, offset: 0, next_cursor: null });
const server = createServer((_, answer) => answer.writeHead(200, { 'content-type': 'application/json' }).end(page));
const port = await listen(server);
const env = { ...process.env, SERVICE_URL: `http://127.0.0.1:${port}`, SERVICE_API_KEY: 'none' };

for (const args of [['--help'], ['list'], ['list', '--format', 'json']]) {
  // The first start fills the compile cache, as it does for a user.
  await timeOf([program, ...args], env);
  const bare: Start[] = [];
  const ours: Start[] = [];
  for (let round = 0; round < rounds; round += 1) {
    bare.push(await timeOf(['-e', '0'], env));
    ours.push(await timeOf([program, ...args], env));
  }
  const ratios = (['wall', 'cpu'] as const).map((what) => {
    const ratio = median(ours.map((one, round) => one[what] / bare[round]![what]));
    const [our, their] = [ours, bare].map((all) => median(all.map((one) => one[what])).toFixed(0));
    return `${ratio.toFixed(2)} times node -e 0 (${our} ms to ${their} ms)`;
  });
  console.log(`service-cli ${args.join(' ')}: ${ratios[0]}; by CPU time ${ratios[1]}`);
}
server.closeAllConnections();
server.close();
