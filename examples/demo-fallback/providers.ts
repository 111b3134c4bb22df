import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A model provider on loopback that answers every prompt with the same sentence and counts the prompts. */
export interface FakeProvider extends AsyncDisposable {
  /** Its `api_base`. */
  readonly base: string;
  /** The number of prompts it has received. */
  readonly asked: () => number;
}

const sentence = 'Ready.';

/** Responses of Anthropic's and OpenAI's APIs. */
const anthropic = {
  content: [{ type: 'text', text: sentence }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 12, output_tokens: 2 },
};
const openai = {
  choices: [{ message: { role: 'assistant', content: sentence }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 12, completion_tokens: 2 },
};

/** Starts a provider on a free loopback port, with OpenAI's API and Anthropic's `/v1/messages`. */
export async function startProvider(): Promise<FakeProvider> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked += 1;
    request.resume();
    request.on('end', () => {
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify(request.url === '/v1/messages' ? anthropic : openai));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked: () => asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
