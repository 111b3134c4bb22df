import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { completion } from './fakes.ts';
import type { Gateway } from './portkey.ts';
import type { Played, Refusal, ScenePlayer } from './scenes.ts';

/** Portkey's gateway with fake providers, which plays scenes. */
interface SceneGateway extends ScenePlayer {
  stop(): Promise<void>;
}

/** Starts the fake providers of a gateway. In a configuration, their addresses are `http://<host>.test/v1`. */
export async function startSceneGateway({ port }: Pick<Gateway, 'port'>): Promise<SceneGateway> {
  const running: { calls: string[]; failures: Readonly<Record<string, Refusal>> }[] = [];
  const server = createServer((request, response) => {
    const [, number, host] = /^\/(\d+)\/([\w.-]+)\//.exec(request.url!)!;
    const { calls, failures } = running[Number(number)]!;
    calls.push(host!);
    request.resume();
    request.once('end', () => {
      const refusal = failures[host!];
      if (refusal === 'timeout') return;
      if (refusal === 'reset') request.socket.resetAndDestroy();
      else if (refusal === undefined) response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(completion('OK')));
      else response.writeHead(refusal.status, { 'content-type': 'application/json', 'retry-after': '1' }).end(refusal.text);
    });
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const playOne = async (config: string, failures: Readonly<Record<string, Refusal>>): Promise<Played> => {
    const calls: string[] = [];
    const number = running.push({ calls, failures }) - 1;
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-portkey-config': config.replaceAll(/http:\/\/([\w.-]+\.test)/g, `${origin}/${number}/$1`),
      },
      body: JSON.stringify({ model: 'gpt-4o', messages: [{ role: 'user', content: 'Say OK.' }], max_tokens: 16 }),
    });
    const text = await response.text();
    return response.status === 200
      ? { calls, answer: text, error: null }
      : { calls, answer: null, error: `${response.status}: ${text}`.slice(0, 300) };
  };
  return {
    play: ({ config, scenes }) => Promise.all(scenes.map((failures) => playOne(config, failures))),
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
