import Type from 'typebox';
import { routeTable } from '../../kit/route.ts';
import { defaulted, IdParams, IfMatch, object } from '../../kit/schemas.ts';
import { Chain, ChainPatch, ChainRequest, chainExample, chainRequestExample, chainSchemas } from './chain.ts';
import { ETag, failing, Location, whole } from './common.ts';
import { defineRoute } from './route.ts';
import { ChainCheck } from './routing.ts';

const one = (description: string) => ({ schema: Chain, description, example: chainExample, headers: ETag });

/** `limit` and `offset` of a list that is complete without them. */
const paging = object({
  limit: Type.Optional(whole(1, 1000, 'The maximum number of chains to return. Default: all.')),
  offset: defaulted(whole(0, 1_000_000_000, 'How many chains to skip.', { default: 0 })),
});

/** The routes of chains. */
const chainRoutes = routeTable('chains', {
  createChain: defineRoute({
    method: 'POST',
    path: '/chains',
    access: 'write',
    summary: 'Create a chain',
    description: 'An invalid chain gets all faults at once, each with its field. `warnings` lists what is valid but may surprise.',
    body: ChainRequest,
    bodyExample: chainRequestExample,
    responses: {
      201: { ...one('The chain.'), headers: { ...ETag, ...Location } },
      ...failing(401, 403, 413, 415, 429),
    },
  }),
  checkChain: defineRoute({
    method: 'POST',
    path: '/chains/check',
    access: 'read',
    summary: 'Check a chain without storing it',
    description: 'Returns all faults at once, as a create does, or the warnings and the worst case. Nothing is stored.',
    body: ChainRequest,
    bodyExample: chainRequestExample,
    responses: {
      200: {
        schema: ChainCheck,
        description: 'The chain is valid.',
        example: { warnings: [], worst_case: { attempts: 5, latency_ms: 153_500, first_token_ms: 153_500 } },
      },
      ...failing(401, 413, 415, 429),
    },
  }),
  listChains: defineRoute({
    method: 'GET',
    path: '/chains',
    access: 'read',
    summary: 'List all chains',
    description:
      'Oldest first; all chains, unless `limit` is given. With `If-None-Match` unchanged chains are answered with 304 and no body.',
    query: paging,
    headers: { 'If-None-Match': 'The `ETag` that the caller last saw; 304 if no chain has changed since. Optional.' },
    responses: {
      200: {
        schema: Type.Array(Chain),
        description: 'The chains, oldest first.',
        example: [chainExample],
        headers: {
          'X-Total-Count': 'The total number of items.',
          ...ETag,
        },
      },
      304: { description: 'No chain has changed since.', headers: { 'X-Total-Count': 'The total number of items.', ...ETag } },
      ...failing(401, 429),
    },
  }),
  getChain: defineRoute({
    method: 'GET',
    path: '/chains/{id}',
    access: 'read',
    summary: 'Get a chain',
    description: 'With `If-None-Match` an unchanged chain is answered with 304 and no body.',
    params: IdParams,
    headers: { 'If-None-Match': 'The `ETag` that the caller last saw; 304 if the chain has not changed since. Optional.' },
    responses: {
      200: one('The chain.'),
      304: { description: 'The chain has not changed since.', headers: ETag },
      ...failing(401, 404, 429),
    },
  }),
  patchChain: defineRoute({
    method: 'PATCH',
    path: '/chains/{id}',
    access: 'write',
    summary: 'Update a chain',
    description:
      'A JSON merge patch (RFC 7396): arrays are replaced as a whole, null resets a field to its default. The resulting chain is validated like a new one before it is saved.',
    params: IdParams,
    body: ChainPatch,
    bodyExample: { fallback_rules: [{ condition: 'any', action: 'failover' }] },
    headers: IfMatch,
    responses: { 200: one('The updated chain.'), ...failing(401, 403, 404, 412, 413, 415, 429) },
  }),
  deleteChain: defineRoute({
    method: 'DELETE',
    path: '/chains/{id}',
    access: 'write',
    summary: 'Delete a chain',
    description: 'The results of its tests are kept.',
    params: IdParams,
    headers: IfMatch,
    responses: { 204: { description: 'The chain is deleted.' }, ...failing(401, 403, 404, 412, 429) },
  }),
});

/** What the API declares of this noun: see `ApiPart`. */
export const chainApi = {
  tag: { name: 'chains', description: 'Chains of providers and their rules.' },
  routes: chainRoutes,
  schemas: chainSchemas,
};
