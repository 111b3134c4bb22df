import type { PeopleService } from '../service/people.ts';
import { handlersOf } from './handlers.ts';

/** The handlers of the routes of people. */
export const peopleHandlers = (people: PeopleService) =>
  handlersOf({
    listPeople: ({ query }, { caller }) => people.page(caller, query),
    suspendPerson: ({ params }, { caller }) => people.suspend(caller, params.name),
    resumePerson: ({ params }, { caller }) => people.resume(caller, params.name),
    releasePerson: ({ params }, { caller }) => people.release(caller, params.name),
  });
