import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

// How long `service-cli` takes from its start to its end, against `node -e 0`: `node bench/startup.ts`. The two run in turn, and the
// ratio is the median of those of neighbours, so that what else the machine does falls on both.

const rounds = 15;
const program = fileURLToPath(new URL('../bin/service-cli.js', import.meta.url));

/** Milliseconds from the start of a program to its end. */
function timeOf(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const begun = performance.now();
  const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) =>
      code === 0 ? resolve(performance.now() - begun) : reject(new Error(`${args.join(' ')} ended with ${code}.`)),
    );
  });
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
  const bare: number[] = [];
  const ours: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    bare.push(await timeOf(['-e', '0'], env));
    ours.push(await timeOf([program, ...args], env));
  }
  const ratio = median(ours.map((ms, round) => ms / bare[round]!));
  console.log(
    `service-cli ${args.join(' ')}: ${ratio.toFixed(2)} times node -e 0 (${median(ours).toFixed(0)} ms to ${median(bare).toFixed(0)} ms)`,
  );
}
server.closeAllConnections();
server.close();
