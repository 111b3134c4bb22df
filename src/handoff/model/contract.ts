import Type, { type Static } from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { IfMatch, object, orNull, record, timestamp } from '../../kit/schemas.ts';
import { ETag, failing, indexedName } from './common.ts';
import { pageOf, pageQuery } from './document.ts';
import { Failure } from './errors.ts';
import { defineRoute } from './route.ts';

/** The most examples of a contract. */
const maxExamples = 5;

const anyObject = (description: string) => record(Type.Unknown(), { description });

const schema = anyObject(
  'A JSON Schema (2020-12) for `{context, decisions, actions, dependencies, metadata}` of the create request as it is sent: at most 32 KiB, 12 schemas deep, 500 keywords. `$ref` points into the document itself; patterns run in linear time (RE2).',
);
const examples = Type.Array(anyObject('What a packet may contain; it satisfies the schema.'), {
  maxItems: maxExamples,
  description: 'Packets that satisfy the schema, at most 32 KiB together.',
});
const description = Type.String({
  minLength: 1,
  maxLength: 2000,
  description: 'What the agent needs, in words for those that hand over to it.',
});

/** What packets for an agent must contain. */
export const Contract = object({
  agent_id: Type.String({ description: 'The id of the agent.' }),
  version: Type.Integer({ minimum: 1, description: 'The number of the version. Each change increments it, also after a removal.' }),
  schema,
  description: orNull(Type.String(), 'What the agent needs, in words for those that hand over to it.'),
  examples,
  created_at: timestamp('When it was first published, or published again after a removal.'),
  updated_at: timestamp('When its version was published.'),
});
export const ContractRequest = object({ schema, description: Type.Optional(description), examples: Type.Optional(examples) });

/** The additional fields of the error for a refused packet. */
export const violation = {
  errors: Type.Optional(
    Type.Array(
      Type.Object({
        field: Type.String({ description: 'The dotted path in the request.' }),
        detail: Type.String(),
        message: Type.Optional(Type.String({ description: 'The same as `detail`, for `CONTRACT_VIOLATION`.' })),
      }),
      { description: 'All faults, if validation found several; with `CONTRACT_VIOLATION` always, at most 100.' },
    ),
  ),
  contract: Type.Optional(
    Type.Object(
      { agent_id: Type.String(), version: Type.Integer(), description: orNull(Type.String()) },
      { description: 'The contract of the target agent, with `CONTRACT_VIOLATION`.' },
    ),
  ),
};
const ContractViolation = Type.Interface([Failure], violation, {
  description: 'The body of an error of a request that creates packets.',
});

export type Contract = Static<typeof Contract>;
export type ContractRequest = Static<typeof ContractRequest>;

const contractExample = {
  agent_id: 'resolver',
  version: 1,
  schema: {
    type: 'object',
    properties: {
      context: {
        properties: {
          custom: { type: 'object', required: ['order_id'], properties: { order_id: { type: 'string', pattern: '^ORD-[0-9]+$' } } },
        },
        required: ['custom'],
      },
    },
  },
  description: 'Refunds need the order: custom.order_id, such as ORD-4711.',
  examples: [{ context: { summary: 'Refund of a broken lamp', custom: { order_id: 'ORD-4711' } } }],
  created_at: '2026-03-01T09:30:00.000Z',
  updated_at: '2026-03-01T09:30:00.000Z',
};
const { schema: schemaExample, description: descriptionExample, examples: examplesExample } = contractExample;

/** A 400 of a request that creates packets. */
export const violated = {
  schema: ContractViolation,
  description: 'The request does not have the form this operation takes, or violates the contract of the target agent.',
  example: {
    detail: 'The contract of resolver (version 1) refuses the packet: context.custom.order_id is required.',
    code: 'CONTRACT_VIOLATION',
    field: 'context.custom.order_id',
    status_code: 400,
    request_id: '2s-1',
    errors: [
      {
        field: 'context.custom.order_id',
        message: 'context.custom.order_id is required.',
        detail: 'context.custom.order_id is required.',
      },
    ],
    contract: { agent_id: 'resolver', version: 1, description: descriptionExample },
  },
};

const AgentParams = Type.Object({ agent_id: indexedName("The agent's id.") });
const contract = (description: string) => ({ schema: Contract, description, example: contractExample, headers: ETag });
const path = '/agents/{agent_id}/contract';

/** The routes of contracts. */
const contractRoutes = routeTable('agents', {
  publishContract: defineRoute({
    method: 'PUT',
    path,
    access: 'manage',
    alternative: 'work',
    summary: "Publish an agent's contract",
    description:
      "From now on every new packet for the agent must satisfy the schema, however it is created; others get 400 `CONTRACT_VIOLATION`. Existing packets are not checked. Publishing the same document again changes nothing. A key without the scope `manage` needs the agent's id in its `agents`.",
    params: AgentParams,
    body: ContractRequest,
    bodyExample: { schema: schemaExample, description: descriptionExample, examples: examplesExample },
    nullIsAbsent: true,
    headers: { ...IfMatch, 'If-None-Match': '`*`: only if the agent has no contract yet. Optional.' },
    responses: {
      200: contract('The contract, in its next version unless nothing changed.'),
      201: contract('The contract, which the agent did not have before.'),
      ...failing(400, 401, 403, 409, 412, 413, 415, 429),
    },
  }),
  getContract: defineRoute({
    method: 'GET',
    path,
    access: 'read',
    alternative: 'work',
    summary: "Get an agent's contract",
    description: 'What packets for the agent must contain.',
    params: AgentParams,
    headers: { 'If-None-Match': 'The `ETag` that the caller last saw; 304 when the contract has not changed since. Optional.' },
    responses: {
      200: contract('The contract.'),
      304: { description: 'The contract has not changed since.', headers: ETag },
      ...failing(401, 403, 404, 429),
    },
  }),
  deleteContract: defineRoute({
    method: 'DELETE',
    path,
    access: 'manage',
    alternative: 'work',
    summary: "Remove an agent's contract",
    description: "New packets for the agent are no longer checked. A key without the scope `manage` needs the agent's id in its `agents`.",
    params: AgentParams,
    headers: IfMatch,
    responses: { 204: { description: 'Done.' }, ...failing(401, 403, 404, 412, 429) },
  }),
  listContracts: defineRoute({
    method: 'GET',
    path: '/contracts',
    access: 'read',
    alternative: 'work',
    summary: 'List contracts',
    description:
      'The contracts of all agents, by the id of the agent. Pass `next_cursor` as `cursor` for the next page; it is null on the last page.',
    query: pageQuery,
    responses: {
      200: pageOf('contracts', Contract, contractExample),
      ...failing(401, 403, 429),
    },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const contractApi = { routes: contractRoutes, schemas: { Contract, ContractRequest, ContractViolation } };
