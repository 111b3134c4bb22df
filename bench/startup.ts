import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';

// What a start of `service-cli` takes, against `node -e 0`: `node bench/startup.ts`. The two run in turn, and the ratio is the median of
// those of neighbours, so that what else the machine does falls on both. Processor time is told beside the time from start to end,
// since it stays put when other programs take their part of the machine.

const rounds = 15;
const program = fileURLToPath(new URL('../bin/service-cli.js', import.meta.url));

/** What a program took from its start to its end: milliseconds on the clock, and of processor time. */
interface Start {
  readonly wall: number;
  readonly cpu: number;
}

/** Has a program write its processor time, in microseconds, where it is asked for. */
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

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

const page = JSON.stringify({ packets: [], total: 0, limit: 20, offset: 0, next_cursor: null });
const server = createServer((_, answer) => answer.writeHead(200, { 'content-type': 'application/json' }).end(page));
await new Promise<void>((resolve) => {
  server.listen(0, '127.0.0.1', resolve);
});
const { port } = server.address() as AddressInfo;
const env = { ...process.env, SERVICE_URL: `http://127.0.0.1:${port}`, SERVICE_API_KEY: 'none' };

for (const args of [['--help'], ['list'], ['list', '--format', 'json']]) {
  // The first start fills the compile cache, as a user's first does.
  await timeOf([program, ...args], env);
  const bare: Start[] = [];
  const ours: Start[] = [];
  for (let round = 0; round < rounds; round += 1) {
    bare.push(await timeOf(['-e', '0'], env));
    ours.push(await timeOf([program, ...args], env));
  }
  const told = (['wall', 'cpu'] as const).map((what) => {
    const ratio = median(ours.map((one, round) => one[what] / bare[round]![what]));
    const [our, their] = [ours, bare].map((all) => median(all.map((one) => one[what])).toFixed(0));
    return `${ratio.toFixed(2)} times node -e 0 (${our} ms to ${their} ms)`;
  });
  console.log(`service-cli ${args.join(' ')}: ${told[0]}; by processor time ${told[1]}`);
}
server.closeAllConnections();
server.close();
