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
  readonly session: A2aSession;
}

/** The body of an answer and its HTTP status, or the bodies of a stream, beginning with the first. */
export type A2aAnswer =
  | { readonly status: number; readonly body: unknown }
  | { readonly first: unknown; readonly rest: AsyncIterator<unknown, void> };

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
      const context = new ServerCallContext({ requestedVersion: protocolVersion, state: new Map([[sessionKey, session]]) });
      const answered = await transport.handle(body as Record<string, unknown>, context);
      if (!(Symbol.asyncIterator in answered)) return written(answered);
      const responses = mapped(answered as AsyncIterable<object>, refused);
      const { value: first = {} } = await responses.next();
      // Refused before the stream has begun: an answer like any other.
      if ('error' in first) return written(first);
      return { first: written(first).body, rest: bodiesOf(responses, written) };
    },
  };
}

/** The responses of a stream; a failure is the last of them. */
async function* mapped(responses: AsyncIterable<object>, refused: (error: unknown) => object): AsyncGenerator<object, void> {
  try {
    yield* responses;
  } catch (error) {
    yield refused(error);
  }
}

async function* bodiesOf(
  responses: AsyncIterable<object>,
  written: (response: object) => { body: unknown },
): AsyncGenerator<unknown, void> {
  for await (const response of responses) yield written(response).body;
}
