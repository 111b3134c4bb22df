import { entityTagOf, isKnown } from '../../kit/etag.ts';
import { HttpResponse } from '../../kit/http/response.ts';
import type { DelegationService } from '../service/delegations.ts';
import type { GroupService } from '../service/groups.ts';
import type { PolicyService } from '../service/policies.ts';
import { documentAnswer, preconditionsIn } from './documents.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of policies and standing approvals. */
export const policyHandlers = (policies: PolicyService) =>
  handlersOf({
    putPolicy: async ({ params, body }, { caller, headers }) => {
      const { policy, isNew } = await policies.publish(caller, params.name, body, preconditionsIn(headers));
      return documentAnswer(policy, isNew);
    },
    getPolicy: async ({ params }, { caller, headers }) => {
      const policy = await policies.get(caller, params.name);
      const etag = entityTagOf(policy.version);
      return isKnown(headers['if-none-match'], etag) ? new HttpResponse<never>({ status: 304, headers: { etag } }) : documentAnswer(policy);
    },
    deletePolicy: ({ params }, { caller, headers }) => policies.remove(caller, params.name, preconditionsIn(headers)),
    listPolicies: ({ query }, { caller, signal }) => policies.list(caller, query, signal),
    tryPolicies: ({ body }, { caller }) => policies.try(caller, body),
    replayPolicy: ({ params, body }, { caller }) => policies.replay(caller, params.name, body ?? {}),
    listStandingApprovals: ({ query }, { caller, signal }) => policies.standing.list(caller, query, signal),
    deleteStandingApproval: ({ params }, { caller }) => policies.standing.remove(caller, params.id),
  });

/** The handlers of the routes of groups. */
export const groupHandlers = (groups: GroupService) =>
  handlersOf({
    putGroup: async ({ params, body }, { caller, headers }) => {
      const { group, isNew } = await groups.put(caller, params.name, body, preconditionsIn(headers));
      return documentAnswer(group, isNew);
    },
    getGroup: async ({ params }, { caller }) => documentAnswer(await groups.get(caller, params.name)),
    deleteGroup: ({ params }, { caller, headers }) => groups.remove(caller, params.name, preconditionsIn(headers)),
    listGroups: ({ query }, { caller, signal }) => groups.list(caller, query, signal),
  });

/** The handlers of the routes of delegations. */
export const delegationHandlers = (delegations: DelegationService) =>
  handlersOf({
    putDelegation: async ({ params, body }, { caller, headers }) => {
      const { delegation, isNew } = await delegations.put(caller, params.person, body, preconditionsIn(headers));
      return documentAnswer(delegation, isNew);
    },
    getDelegation: async ({ params }, { caller }) => documentAnswer(await delegations.get(caller, params.person)),
    deleteDelegation: ({ params }, { caller, headers }) => delegations.remove(caller, params.person, preconditionsIn(headers)),
    listDelegations: ({ query }, { caller, signal }) => delegations.list(caller, query, signal),
  });
