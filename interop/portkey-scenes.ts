import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import { completion } from './fakes.ts';
import type { Gateway } from './portkey.ts';
import type { Played, Refusal, ScenePlayer } from './scenes.ts';

/** The `request_timeout` of targets in scenes: long enough for a busy machine. Where a provider hangs, it becomes `hangingMs`. */
export const patientMs = 60_000;
const hangingMs = 8_000;

type Failures = Readonly<Record<string, Refusal>>;
const hangs = (failures: Failures) => Object.values(failures).includes('timeout');

/** Portkey's gateway with fake providers, which plays scenes. */
interface SceneGateway extends ScenePlayer {
  stop(): Promise<void>;
}

const streamed = { 'content-type': 'text/event-stream' };

interface Part {
  error?: unknown;
  choices?: { delta?: { content?: string | null; tool_calls?: { function?: { arguments?: string } }[] } }[];
}

/** What a caller gets of a stream: its text and the arguments of its tool, or what is wrong with it. */
function readStream(text: string): Pick<Played, 'answer' | 'error'> {
  const events = [...text.matchAll(/^data: ?(.*)$/gm)].map(([, data]) => data!);
  if (events.at(-1) !== '[DONE]') return { answer: null, error: 'The stream has no end.' };
  let answer = '';
  for (const data of events.slice(0, -1)) {
    let part: Part;
    try {
      part = JSON.parse(data) as Part;
    } catch {
      return { answer: null, error: 'A part is no JSON.' };
    }
    if (part.error !== undefined) return { answer: null, error: data };
    for (const { delta } of part.choices ?? [])
      answer += `${delta?.content ?? ''}${(delta?.tool_calls ?? []).map((call) => call.function?.arguments ?? '').join('')}`;
  }
  return { answer, error: null };
}

/** Starts the fake providers of a gateway. In a configuration, their addresses are `http://<host>.test/v1`. */
export async function startSceneGateway({ port }: Pick<Gateway, 'port'>): Promise<SceneGateway> {
  const running: { calls: string[]; failures: Failures; stream: string | undefined }[] = [];
  const server = createServer((request, response) => {
    const [, number, host] = /^\/(\d+)\/([\w.-]+)\//.exec(request.url!)!;
    const { calls, failures, stream } = running[Number(number)]!;
    calls.push(host!);
    request.resume();
    request.once('end', () => {
      const refusal = failures[host!];
      if (refusal === 'timeout') return;
      if (refusal === 'reset') request.socket.resetAndDestroy();
      else if (refusal === undefined && stream !== undefined) response.writeHead(200, streamed).end(stream);
      else if (refusal?.then !== undefined) {
        response.writeHead(200, streamed).write(refusal.text, () => {
          if (refusal.then === 'end') response.end();
          if (refusal.then === 'cut') request.socket.resetAndDestroy();
        });
      } else if (refusal === undefined)
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(completion('OK')));
      else response.writeHead(refusal.status, { 'content-type': 'application/json', 'retry-after': '1' }).end(refusal.text);
    });
  });
  // The gateway ends idle connections; on a busy machine it could otherwise use one that the fakes have just ended.
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const playOne = async (config: string, failures: Failures, stream: string | undefined): Promise<Played> => {
    const calls: string[] = [];
    const number = running.push({ calls, failures, stream }) - 1;
    const timed = hangs(failures) ? config.replaceAll(`"request_timeout":${patientMs}`, `"request_timeout":${hangingMs}`) : config;
    const asked = fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        // The gateway breaks connections of streams that break, and others must not wait on them.
        connection: 'close',
        'x-portkey-config': timed.replaceAll(/http:\/\/([\w.-]+\.test)/g, `${origin}/${number}/$1`),
      },
      body: JSON.stringify({
        ...{ model: 'gpt-4o', messages: [{ role: 'user', content: 'Say OK.' }], max_tokens: 16 },
        ...(stream !== undefined && { stream: true }),
        ...(stream?.includes('tool_calls') && { tools: [{ type: 'function', function: { name: 'look_up' } }] }),
      }),
    });
    if (stream !== undefined) {
      try {
        const response = await asked;
        const text = await response.text();
        return {
          calls,
          ...(response.status === 200 ? readStream(text) : { answer: null, error: `${response.status}: ${text}`.slice(0, 300) }),
        };
      } catch (error) {
        return { calls, answer: null, error: String((error as Error).cause ?? error) };
      }
    }
    const response = await asked;
    const text = await response.text();
    return response.status === 200
      ? { calls, answer: text, error: null }
      : { calls, answer: null, error: `${response.status}: ${text}`.slice(0, 300) };
  };
  return {
    async play({ config, scenes, streams }) {
      const played = new Map<Failures, Played>();
      // Scenes with short time-outs come after the others, which would slow them down.
      for (const some of [scenes.filter((failures) => !hangs(failures)), scenes.filter(hangs)])
        await Promise.all(some.map(async (failures) => played.set(failures, await playOne(config, failures, streams?.chat))));
      return scenes.map((failures) => played.get(failures)!);
    },
    stop() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
