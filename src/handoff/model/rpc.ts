import Type, { type TSchema } from 'typebox';

import type { ResponseShape } from '../../kit/route.ts';

import { failing } from './common.ts';
import { Failure } from './errors.ts';

/** An error of JSON-RPC 2.0 (section 5.1). */
const JsonRpcFailure = Type.Object(
  {
    jsonrpc: Type.Literal('2.0'),
    id: Type.Optional(
      Type.Union([Type.String(), Type.Number(), Type.Null()], { description: 'The id of the request; null if it is unknown.' }),
    ),
    error: Type.Object({
      code: Type.Integer({ description: 'The code of JSON-RPC, MCP or A2A.' }),
      message: Type.String({ description: 'What is wrong, in a sentence.' }),
      data: Type.Optional(Type.Unknown({ description: 'Details, as the protocol defines them; `code` is the code of the API.' })),
    }),
  },
  { description: 'A fault of the protocol, as an error of JSON-RPC 2.0.' },
);

/** An error of the HTTP+JSON binding of A2A 1.0 (section 11.6), in the form of AIP-193. */
const A2aFailure = Type.Object(
  {
    error: Type.Object({
      code: Type.Integer({ description: 'The HTTP status.' }),
      status: Type.String({ description: 'The name of the status, as in `google.rpc.Code`.' }),
      message: Type.String({ description: 'What is wrong, in a sentence.' }),
      details: Type.Array(Type.Unknown(), { description: 'A `google.rpc.ErrorInfo` whose `reason` is the error of A2A, if it is one.' }),
    }),
  },
  { description: 'An error of A2A over HTTP+JSON, in the form of AIP-193.' },
);

const jsonRpcExample = { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'The request is not valid.' } };
const a2aExample = { error: { code: 400, status: 'INVALID_ARGUMENT', message: 'message is required.', details: [] } };

type Statuses = Parameters<typeof failing>[number];
type Shapes = Readonly<Record<number, ResponseShape>>;

const otherDescriptions: Readonly<Record<number, string>> = {
  403: 'The API key may not do this, or `Host` or `Origin` names another machine.',
  404: 'The protocol has no such method, or the tenant no such task.',
};

function shaped(statuses: readonly Statuses[], schema: TSchema, example: unknown): Shapes {
  const described: Shapes = failing(...statuses);
  return Object.fromEntries(
    statuses.map((status) => [status, { schema, description: otherDescriptions[status] ?? described[status]!.description, example }]),
  );
}

/** The failures of a JSON-RPC endpoint: those of admission have the form of the API, those of the protocol that of JSON-RPC. */
export const jsonRpcFailing = (...statuses: Statuses[]) => ({
  ...failing(401, 429),
  ...shaped([400, ...statuses], JsonRpcFailure, jsonRpcExample),
  403: { schema: Failure, description: otherDescriptions[403]! },
});

/** The failures of a method over HTTP+JSON: those of admission have the form of the API, those of A2A that of AIP-193. */
export const a2aFailing = () => ({
  ...failing(401),
  ...shaped([400, 404, 409, 413, 415], A2aFailure, a2aExample),
  ...shaped([403, 429, 500, 503], Type.Union([A2aFailure, Failure]), a2aExample),
});

/** The schemas of failures that the API description names. */
export const rpcSchemas = { JsonRpcFailure, A2aFailure };
