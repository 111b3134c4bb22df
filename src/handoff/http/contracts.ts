import { entityTagOf, isKnown } from '../../kit/etag.ts';
import { HttpResponse } from '../../kit/http/response.ts';
import type { ContractService } from '../service/contracts.ts';
import { documentAnswer, preconditionsIn } from './documents.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of contracts. */
export const contractHandlers = (contracts: ContractService) =>
  handlersOf({
    publishContract: async ({ params, body }, { caller, headers }) => {
      const { contract, isNew } = await contracts.publish(caller, params.agent_id, body, preconditionsIn(headers));
      return documentAnswer(contract, isNew);
    },
    getContract: async ({ params }, { caller, headers }) => {
      const contract = await contracts.get(caller, params.agent_id);
      const etag = entityTagOf(contract.version);
      return isKnown(headers['if-none-match'], etag)
        ? new HttpResponse<never>({ status: 304, headers: { etag } })
        : documentAnswer(contract);
    },
    deleteContract: ({ params }, { caller, headers }) => contracts.remove(caller, params.agent_id, preconditionsIn(headers)),
    listContracts: ({ query }, { caller, signal }) => contracts.list(caller, query, signal),
  });
