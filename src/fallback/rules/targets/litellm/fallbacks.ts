import { invalid, ServiceError } from '../../../../kit/errors.ts';
import type { Condition } from '../../../model/chain.ts';
import { listed, plural } from '../../wording.ts';
import { type Section, textAt } from '../section.ts';

/** The fallbacks of a single condition. */
const specialFallbacks: readonly [string, Condition][] = [
  ['context_window_fallbacks', 'context_length'],
  ['content_policy_fallbacks', 'content_filter'],
];

/** The only conditions that fail over, or null for all, and those that never do. */
export interface Ends {
  only: readonly Condition[] | null;
  never: readonly Condition[];
}

/** LiteLLM's key for the fallbacks of groups that have none of their own; `default_fallbacks` is another spelling of it. */
const anyGroup = '*';

/** The groups in a list of backups; a backup may be an object with other parameters of its call. */
const groupsAt = (section: Section, name: string): string[] =>
  section.list(name, 1000).map((backup, index) => {
    const group = typeof backup === 'object' && backup !== null ? (backup as { model?: unknown }).model : backup;
    return textAt(group, `${section.at(name)}.${index}`);
  });

/** Reads `fallbacks`: a list of maps, each from a group to the groups that are tried after it. */
function readFallbacks(router: Section, name: string): Map<string, string[]> {
  const map = new Map<string, string[]>();
  const value = router.get(name);
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return map;
  for (const entry of router.sections(name, 1000)) for (const group of Object.keys(entry.fields)) map.set(group, groupsAt(entry, group));
  return map;
}

/** The fallbacks for every failure, those of `default_fallbacks` included. */
function generalFallbacks(router: Section): Map<string, string[]> {
  const others = router.get('default_fallbacks') === undefined ? [] : [[anyGroup, groupsAt(router, 'default_fallbacks')] as const];
  return new Map([...others, ...readFallbacks(router, 'fallbacks')]);
}

/** The fallbacks of a group: its own, or those of all groups without their own. */
const fallbacksOf = (group: string, fallbacks: ReadonlyMap<string, string[]>): readonly string[] =>
  fallbacks.get(group) ?? fallbacks.get(anyGroup) ?? [];

/**
 * The group where the chain starts: the wanted one, or the only one that has fallbacks and is nobody's fallback. Without any
 * fallbacks it is the first of the file.
 * @throws ServiceError 400 with the candidates if there are several, or the wanted one is unknown
 */
function firstGroup(groups: readonly string[], fallbacks: ReadonlyMap<string, string[]>, wanted: string | undefined): string {
  if (wanted !== undefined) {
    if (groups.includes(wanted)) return wanted;
    throw invalid('group', `group names no model_name of the file; it has ${shownGroups(groups)}.`);
  }
  const leading = groups.filter((group) => fallbacksOf(group, fallbacks).some((backup) => backup !== group));
  const backups = new Set([...fallbacks.values()].flat());
  const candidates = leading.filter((group) => !backups.has(group));
  if (candidates.length > 1)
    throw new ServiceError(
      'VALIDATION_ERROR',
      `The file has several chains; name the first model of one of them as group: ${shownGroups(candidates)}.`,
      { field: 'group', extra: { candidates: candidates.slice(0, 100) } },
    );
  // In a circle of fallbacks, every group is somebody's fallback.
  return candidates[0] ?? leading[0] ?? groups[0]!;
}

/** The first of the groups for a message. */
const shownGroups = (groups: readonly string[]) =>
  listed(groups.length > 20 ? [...groups.slice(0, 20), plural(groups.length - 20, 'other group')] : groups);

/** The groups in order: each backup with its own backups, before the next one. Each group occurs once, so that cycles end. */
function orderFrom(first: string, fallbacks: ReadonlyMap<string, string[]>): string[] {
  const order = new Set<string>();
  const visit = (group: string): void => {
    if (order.has(group)) return;
    order.add(group);
    for (const backup of fallbacksOf(group, fallbacks)) visit(backup);
  };
  visit(first);
  return [...order];
}

/** What no other model of a group is tried for. */
const neverInGroup: readonly Condition[] = ['context_length'];

/** The order of the groups, the only conditions that fail over, if only some do, and those that never do. */
export function orderOf(router: Section, groups: readonly string[], wanted: string | undefined) {
  const general = generalFallbacks(router);
  const special = specialFallbacks.map(([name, condition]) => ({ name, condition, map: readFallbacks(router, name) }));
  const every = general.size > 0 ? general : new Map(special.flatMap(({ map }) => [...map]));
  const first = firstGroup(groups, every, wanted);
  const leading = special.filter(({ map }) => map.has(first));
  const hasGeneral = fallbacksOf(first, general).length > 0;
  const order = orderFrom(first, hasGeneral ? general : (leading[0]?.map ?? general));
  for (const { name, map } of leading) {
    if (String(orderFrom(first, map)) !== String(order))
      router.note('left_out', name, `has a different order from the other fallbacks of ${first}; a chain has a single order.`);
  }
  const only = hasGeneral || leading.length === 0 ? null : leading.map(({ condition }) => condition);
  return { first, order, only, never: hasGeneral || leading.length > 0 ? [] : neverInGroup };
}
