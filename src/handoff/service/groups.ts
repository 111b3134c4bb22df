import { invalid } from '../../kit/errors.ts';
import { readJson } from '../../kit/json.ts';
import type { Group, GroupRequest } from '../model/group.ts';
import { groupPrefix, nameKey } from '../model/people.ts';
import type { StoredDocument } from '../store/documents.ts';
import type { Caller } from './authentication.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { createDocumentService, type DocumentNoun, type Preconditions } from './documents.ts';

const groupNoun: DocumentNoun = { kind: 'group', what: 'group', many: 'groups', field: 'name', most: 200 };

const shownGroup = ({ name, version, document, created_at, updated_at }: StoredDocument): Group => ({
  ...{ name, version, members: (readJson(document) as GroupRequest).members },
  ...{ created_at, updated_at },
});

type GroupDependencies = Omit<ServiceDependencies, 'newId'> & {
  /** What the names of the groups of an identity provider begin with. */
  readonly providerPrefix: string;
};

/** The operations on groups of people. */
export function createGroupService({ store, clock, providerPrefix }: GroupDependencies) {
  const documents = createDocumentService({ store, clock });
  return {
    /** Sets the members of a group. `isNew`: there was none of the name. @throws ServiceError 400 */
    async put(caller: Caller, name: string, { members }: GroupRequest, preconditions: Preconditions = {}) {
      if (name.startsWith(providerPrefix))
        throw invalid('name', `name can't begin with ${providerPrefix}: those are the groups of an identity provider.`);
      const inner = members.findIndex((member) => member.startsWith(groupPrefix) || member.trim() === '');
      if (inner !== -1)
        throw invalid(`members.${inner}`, `members.${inner} must be the name of a person; groups have no groups as members.`);
      const unique = [...new Map(members.map((member) => [nameKey(member), member])).values()];
      const { stored, isNew } = await documents.put(caller, groupNoun, name, { members: unique }, preconditions);
      return { group: shownGroup(stored), isNew };
    },

    /** A group. @throws ServiceError 404 */
    get: async (caller: Caller, name: string): Promise<Group> => shownGroup(await documents.get(caller, groupNoun, name)),

    /** Removes a group. @throws ServiceError 404 */
    remove: (caller: Caller, name: string, preconditions: Preconditions = {}): Promise<void> =>
      documents.remove(caller, groupNoun, name, preconditions),

    /** A page of the tenant's groups, by name. The read is cancelled by `signal`. */
    async list(caller: Caller, query: { limit?: number; cursor?: string }, signal: AbortSignal) {
      const { items, next_cursor } = await documents.page(caller, groupNoun, query, signal);
      return { groups: items.map(shownGroup), next_cursor };
    },
  };
}

export type GroupService = ReturnType<typeof createGroupService>;
