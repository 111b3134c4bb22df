import { entityTagOf, isKnown } from '../../kit/etag.ts';
import { HttpResponse } from '../../kit/http/response.ts';
import type { Contract } from '../model/contract.ts';
import type { ContractService } from '../service/contracts.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of contracts. */
export const contractHandlers = (contracts: ContractService) =>
  handlersOf({
    publishContract: async ({ params, body }, { caller, headers }) => {
      const preconditions = { ifMatch: headers['if-match'], ifNoneMatch: headers['if-none-match'] };
      const { contract, isNew } = await contracts.publish(caller, params.agent_id, body, preconditions);
      return answerOf(contract, isNew ? 201 : 200);
    },
    getContract: async ({ params }, { caller, headers }) => {
      const contract = await contracts.get(caller, params.agent_id);
      const etag = entityTagOf(contract.version);
      return isKnown(headers['if-none-match'], etag)
        ? new HttpResponse<never>({ status: 304, headers: { etag } })
        : answerOf(contract, 200);
    },
    deleteContract: ({ params }, { caller, headers }) => contracts.remove(caller, params.agent_id, { ifMatch: headers['if-match'] }),
    listContracts: ({ query }, { caller, signal }) => contracts.list(caller, query, signal),
  });

const answerOf = (contract: Contract, status: number) =>
  new HttpResponse({ status, body: contract, headers: { etag: entityTagOf(contract.version) } });
