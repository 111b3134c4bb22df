import { invalid } from '../../kit/errors.ts';
import { CompletedAction, Decision, Dependency, FailedAction, type Packet, type PatchRequest, PendingAction } from '../model/packet.ts';
import { withoutOwn } from './trace.ts';

type Content = Omit<PatchRequest, 'status' | 'hitl' | 'not_before' | 'due_at'>;
type Item = { id: string };

/**
 * Merges the content of an update into the packet. Fields that are left out stay unchanged. Lists are merged by `id`,
 * objects at their top level; an action listed in `completed` or `failed` is removed from the other lists.
 */
export function mergeContent(packet: Packet, { metadata, context, decisions, actions, dependencies }: Content): Packet {
  return {
    ...packet,
    metadata: { ...packet.metadata, ...withoutOwn(metadata ?? {}) },
    context: { ...packet.context, ...context },
    decisions: mergeById(packet.decisions, decisions, Decision.required, 'decisions'),
    actions: mergeActions(packet.actions, actions),
    dependencies: mergeById(packet.dependencies, dependencies, Dependency.required, 'dependencies'),
  };
}

/**
 * Merges items into a list: an existing item field by field; a new item is appended and must be complete. When a packet
 * was created with several items of the same id, the last of them is updated.
 */
function mergeById<T extends Item>(
  list: T[],
  changes: readonly (Partial<T> & Item)[] | undefined,
  required: readonly string[],
  path: string,
): T[] {
  if (changes === undefined) return list;
  const merged = [...list];
  const positions = new Map(list.map(({ id }, position) => [id, position]));
  for (const [index, change] of changes.entries()) {
    const position = positions.get(change.id) ?? merged.length;
    const item = { ...merged[position], ...change } as T;
    for (const field of required) {
      if (!(field in item))
        throw invalid(
          `${path}.${index}.${field}`,
          `${path}.${index}.${field} is required: the packet has no item ${JSON.stringify(change.id)} yet.`,
        );
    }
    positions.set(change.id, position);
    merged[position] = item;
  }
  return merged;
}

function mergeActions(current: Packet['actions'], changes: Content['actions']): Packet['actions'] {
  if (changes === undefined) return current;
  const { pending, completed, failed, ...others } = changes;
  const idsOf = (items: readonly Item[] = []) => new Set(items.map(({ id }) => id));
  const [nowCompleted, nowFailed] = [idsOf(completed), idsOf(failed)];
  // An action that leaves a list keeps its description unless the update has another one.
  const described = new Map(
    [...current.failed, ...current.completed, ...current.pending].map(({ id, description }) => [id, { description }]),
  );
  const withDescription = <T extends Item>(items: readonly T[] | undefined) =>
    items?.map((item) => ({ ...described.get(item.id), ...item }));
  const merged = {
    pending: mergeById(current.pending, pending, PendingAction.required, 'actions.pending'),
    completed: mergeById(current.completed, withDescription(completed), CompletedAction.required, 'actions.completed'),
    failed: mergeById(current.failed, withDescription(failed), FailedAction.required, 'actions.failed'),
  };
  // What failed may be completed later, or fail after it was completed: the latest outcome counts.
  return {
    ...current,
    ...others,
    pending: merged.pending.filter(({ id }) => !nowCompleted.has(id) && !nowFailed.has(id)),
    completed: merged.completed.filter(({ id }) => !nowFailed.has(id) || nowCompleted.has(id)),
    failed: merged.failed.filter(({ id }) => !nowCompleted.has(id)),
  };
}
