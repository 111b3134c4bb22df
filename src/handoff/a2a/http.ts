import { AgentCard } from '@a2a-js/sdk';
import { RequestMalformedError, VersionNotSupportedError } from '@a2a-js/sdk/errors';
import { JsonRpcTransportHandler, ServerCallContext } from '@a2a-js/sdk/server';
import type { ServiceError } from '../../kit/errors.ts';
import { beginningOf } from '../../kit/wording.ts';
import { a2aRestRoutes } from '../model/a2a.ts';
import { type Address, cardOf, protocolVersion } from './card.ts';
import { createA2aHandler, sessionKey } from './handler.ts';
import { type Binding, type Written, writers } from './rest.ts';
import type { A2aSession } from './session.ts';

/** A request to the endpoint, after admission. */
interface A2aHttpRequest {
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

/** An answer, or the responses of a stream. */
type A2aAnswer = Written | { readonly responses: AsyncGenerator<StreamedResponse, void> };

export interface A2aEndpoint {
  /** The public agent card. */
  card(address: Address): unknown;
  answer(request: A2aHttpRequest, binding: Binding): Promise<A2aAnswer>;
}

/** Makes the endpoint for A2A. It keeps nothing between requests. */
export function createA2aEndpoint(parts: { refusalOf(error: unknown): ServiceError }): A2aEndpoint {
  const transport = new JsonRpcTransportHandler(createA2aHandler(parts));
  return {
    card: (address) => AgentCard.toJSON(cardOf(address)),
    async answer({ version, body, session }, binding) {
      const written = writers[binding];
      const id = idIn(body);
      const refused = (error: unknown) => ({ jsonrpc: '2.0', id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) });
      // A patch level does not change the protocol (A2A 1.0, section 3.6).
      if (version?.replace(/^(\d+\.\d+)\.\d+$/, '$1') !== protocolVersion)
        return written(
          refused(new VersionNotSupportedError(`A2A-Version must be ${protocolVersion}, the version that this service speaks.`)),
        );
      const fault = faultOf(body);
      if (fault !== undefined) return written({ jsonrpc: '2.0', id, error: fault });
      /** What the stream has sent, until the connection takes it. */
      const texts: Buffer[] = [];
      const sending: A2aSession = { ...session, send: (text) => texts.push(text) };
      const context = new ServerCallContext({ requestedVersion: protocolVersion, state: new Map([[sessionKey, sending]]) });
      const answered = await transport.handle(body as Record<string, unknown>, context);
      if (!(Symbol.asyncIterator in answered)) return written(withInvalidParams(answered));
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

/** The methods of the protocol. */
const methods: ReadonlySet<unknown> = new Set(a2aRestRoutes.map(({ method }) => method));

interface Message {
  readonly jsonrpc?: unknown;
  readonly id?: unknown;
  readonly method?: unknown;
  readonly params?: unknown;
}

const isJsonRpcId = (id: unknown): boolean => id === undefined || id === null || typeof id === 'string' || typeof id === 'number';

const idIn = ({ id = null }: Message): unknown => (isJsonRpcId(id) ? id : null);

/** What is wrong with a message, as JSON-RPC 2.0 (section 5.1) has it; undefined: nothing. */
function faultOf({ jsonrpc, id, method, params = {} }: Message): { code: number; message: string } | undefined {
  if (jsonrpc !== '2.0') return { code: -32600, message: 'jsonrpc must be "2.0".' };
  if (!isJsonRpcId(id)) return { code: -32600, message: 'id must be a text, a number or null.' };
  if (typeof method !== 'string') return { code: -32600, message: 'method must be the name of a method.' };
  if (!methods.has(method)) return { code: -32601, message: `There is no method ${JSON.stringify(beginningOf(method, 100))}.` };
  if (typeof params !== 'object' || params === null || Array.isArray(params)) return { code: -32602, message: 'params must be an object.' };
  return undefined;
}

const wrongForm = 'The request must have the form that A2A 1.0 defines for the method.';

/** An answer in which parameters that the SDK can't read are invalid parameters. Failures of the service have details. */
function withInvalidParams(answer: object): object {
  const { error } = answer as { error?: { code?: number; data?: unknown } };
  if (error?.code !== -32603 || error.data !== undefined) return answer;
  return { ...answer, error: JsonRpcTransportHandler.mapToJSONRPCError(new RequestMalformedError(wrongForm)) };
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
