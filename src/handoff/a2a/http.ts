import { AgentCard } from '@a2a-js/sdk';
import { VersionNotSupportedError } from '@a2a-js/sdk/errors';
import { JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';

import { type Address, cardOf, protocolVersion } from './card.ts';
import { type A2aSession, createA2aHandler, type Refusal, sessionKey } from './handler.ts';

/** A request to the endpoint, after admission. */
export interface A2aHttpRequest {
  /** The version that the client names in `A2A-Version`. */
  readonly version: string | undefined;
  readonly body: object;
  readonly session: A2aSession;
}

/** A response of JSON-RPC, or the responses of a stream, beginning with the first. */
export type A2aAnswer = object | { readonly first: object; readonly rest: AsyncIterator<object, void> };

export interface A2aEndpoint {
  /** The public agent card. */
  card(address: Address): unknown;
  answer(request: A2aHttpRequest): Promise<A2aAnswer>;
}

/** Makes the endpoint for A2A over JSON-RPC. It keeps nothing between requests. */
export function createA2aEndpoint(parts: { refusalOf(error: unknown): Refusal }): A2aEndpoint {
  const transport = new JsonRpcTransportHandler(createA2aHandler(parts));
  return {
    card: (address) => AgentCard.toJSON(cardOf(address)),
    async answer({ version, body, session }) {
      const id = (body as { id?: unknown }).id ?? null;
      const refused = (error: unknown) => ({ jsonrpc: '2.0', id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) });
      if (version !== protocolVersion)
        return refused(new VersionNotSupportedError(`A2A-Version must be ${protocolVersion}, the version that this service speaks.`));
      const context = new ServerCallContext({ requestedVersion: protocolVersion, state: new Map([[sessionKey, session]]) });
      const answered = await transport.handle(body as Record<string, unknown>, context);
      if (!(Symbol.asyncIterator in answered)) return answered;
      const rest = mapped(answered as AsyncIterable<object>, refused);
      const { value: first } = await rest.next();
      // Refused before the stream has begun: an answer like any other.
      return first === undefined || 'error' in first ? (first ?? {}) : { first, rest };
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
