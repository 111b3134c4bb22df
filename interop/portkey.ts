import { type ChildProcess, spawn } from 'node:child_process';

import { freePort } from '../src/kit/free-port.ts';

/** Portkey's gateway on loopback. */
export interface Gateway {
  port: number;
  stop(): void;
}

/** Starts Portkey's gateway and waits until it answers. With `internet`, all calls of providers go there. */
export async function startGateway(internet?: string): Promise<Gateway> {
  const port = await freePort();
  const entry = new URL('node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url).pathname;
  const preloaded = ['loopback.mjs', ...(internet === undefined ? [] : ['redirect.mjs'])];
  const preloads = preloaded.flatMap((name) => ['--import', new URL(name, import.meta.url).href]);
  const child: ChildProcess = spawn(process.execPath, [...preloads, entry, '--headless', `--port=${port}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...(internet === undefined ? {} : { INTERNET: internet }) },
  });
  let printed = '';
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      printed += chunk;
      if (/ready/i.test(printed)) resolve();
    };
    child.stdout!.on('data', read);
    child.stderr!.on('data', read);
    child.once('exit', (code) => reject(new Error(`The gateway ended with ${code}: ${printed}`)));
  });
  return { port, stop: () => void child.kill() };
}
