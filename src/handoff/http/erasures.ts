import type { ErasureService } from '../service/erasures.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of erasures. */
export const erasureHandlers = (erasures: ErasureService) =>
  handlersOf({
    createErasure: ({ body }, { caller }) => erasures.create(caller, body),
    listErasures: ({ query }, { caller }) => erasures.list(caller, query),
    getErasure: ({ params }, { caller }) => erasures.get(caller, params.id),
  });
