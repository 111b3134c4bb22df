import { AgentCard } from '@a2a-js/sdk';
import { VersionNotSupportedError } from '@a2a-js/sdk/errors';
import { JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';

import { type Address, cardOf, protocolVersion } from './card.ts';
import { createA2aHandler, type Refusal, sessionKey } from './handler.ts';
import { type Binding, writers } from './rest.ts';
import type { A2aSession } from './session.ts';

/** A request to the endpoint, after admission. */
export interface A2aHttpRequest {
  /** The version that the client names in `A2A-Version`. */
  readonly version: string | undefined;
  /** A request of JSON-RPC. */
  readonly body: object;
  readonly session: Omit<A2aSession, 'send'>;
}

/** A response of a stream: `body` is a buffer that many streams share, in what is of this one. */
export interface StreamedResponse {
  readonly head: string;
  readonly body: Buffer;
  readonly tail: string;
}

/** The body of an answer and its HTTP status, or the responses of a stream. */
export type A2aAnswer =
  | { readonly status: number; readonly body: unknown }
  | { readonly responses: AsyncGenerator<StreamedResponse, void> };

export interface A2aEndpoint {
  /** The public agent card. */
  card(address: Address): unknown;
  answer(request: A2aHttpRequest, binding: Binding): Promise<A2aAnswer>;
}

/** Makes the endpoint for A2A. It keeps nothing between requests. */
export function createA2aEndpoint(parts: { refusalOf(error: unknown): Refusal }): A2aEndpoint {
  const transport = new JsonRpcTransportHandler(createA2aHandler(parts));
  return {
    card: (address) => AgentCard.toJSON(cardOf(address)),
    async answer({ version, body, session }, binding) {
      const written = writers[binding];
      const id = (body as { id?: unknown }).id ?? null;
      const refused = (error: unknown) => ({ jsonrpc: '2.0', id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) });
      if (version !== protocolVersion)
        return written(
          refused(new VersionNotSupportedError(`A2A-Version must be ${protocolVersion}, the version that this service speaks.`)),
        );
      /** What the stream has sent, until the connection takes it. */
      const texts: Buffer[] = [];
      const sending: A2aSession = { ...session, send: (text) => texts.push(text) };
      const context = new ServerCallContext({ requestedVersion: protocolVersion, state: new Map([[sessionKey, sending]]) });
      const answered = await transport.handle(body as Record<string, unknown>, context);
      if (!(Symbol.asyncIterator in answered)) return written(answered);
      const steps = mapped(answered as AsyncIterable<object>, refused);
      const { value: first = {} } = await steps.next();
      // Refused before the stream has begun: an answer like any other.
      if ('error' in first) return written(first);
      const frame =
        binding === 'JSONRPC' ? { head: `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`, tail: '}' } : { head: '', tail: '' };
      return { responses: responsesOf(steps, texts, frame, (refusal) => written(refusal).body) };
    },
  };
}

/** The steps of a stream; a failure is the last of them. */
async function* mapped(responses: AsyncIterable<object>, refused: (error: unknown) => object): AsyncGenerator<object, void> {
  try {
    yield* responses;
  } catch (error) {
    yield refused(error);
  }
}

/** What a stream has sent, then what it sends after each of its further steps. */
async function* responsesOf(
  steps: AsyncGenerator<object, void>,
  texts: Buffer[],
  frame: Pick<StreamedResponse, 'head' | 'tail'>,
  written: (refusal: object) => unknown,
): AsyncGenerator<StreamedResponse, void> {
  try {
    // biome-ignore lint/plugin: who sends the responses takes a turn for each.
    for (;;) {
      while (texts.length > 0) yield { ...frame, body: texts.shift()! };
      const step = await steps.next();
      if (step.done) return;
      if ('error' in step.value) return yield { head: '', body: Buffer.from(JSON.stringify(written(step.value))), tail: '' };
    }
  } finally {
    await steps.return();
  }
}
