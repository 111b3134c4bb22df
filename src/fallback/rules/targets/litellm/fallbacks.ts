import { invalid, ServiceError } from '../../../../kit/errors.ts';
import { plural } from '../../../../kit/wording.ts';
import { listed } from '../../wording.ts';
import { type Section, textAt } from '../section.ts';
import type { Fallbacks } from './router.ts';

/** The fallbacks for every failure, for prompts that are too long, and for refused content; null without any. */
export type FallbackLists = readonly (Fallbacks | null)[];

export const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;

/** Reads the fallbacks of all three kinds. */
export function readAllFallbacks(router: Section): FallbackLists {
  return [
    generalFallbacks(router),
    readFallbacks(router, 'context_window_fallbacks', { refusesSeveral: false }),
    readFallbacks(router, 'content_policy_fallbacks', { refusesSeveral: true }),
  ];
}

/** The groups in a list of backups, which may be empty; a backup may be an object with other parameters of its call. */
const groupsAt = (section: Section, name: string): string[] =>
  (isEmpty(section.get(name)) ? [] : section.list(name, 1000)).map((backup, index) => {
    const path = `${section.at(name)}.${index}`;
    if (typeof backup !== 'object' || backup === null) return textAt(backup, path);
    const { model, ...parameters } = backup as Record<string, unknown>;
    const group = textAt(model, path);
    const names = Object.keys(parameters);
    const sentence = `LiteLLM calls ${group} with ${listed(names)} of ${path}; the chain calls it as its own entry says.`;
    if (names.length > 0) section.findings.add('left_out', path, sentence, { loss: true });
    return group;
  });

/**
 * Reads a list of maps, each from a group to the groups that are tried after it; null without any. The first map of a group
 * counts, and the last of `*`.
 */
function readFallbacks(router: Section, name: string, { refusesSeveral }: { refusesSeveral: boolean }): Fallbacks | null {
  const value = router.get(name);
  if (value === undefined || isEmpty(value)) return null;
  const entries = router.sections(name, 1000).flatMap((entry) => {
    const [group, ...others] = Object.keys(entry.fields);
    if (others.length > 0 && refusesSeveral) throw invalid(entry.path, `${entry.path} must have one group only; LiteLLM refuses several.`);
    for (const other of others) entry.leaveOut(other, 'LiteLLM only reads the first group of each map');
    if (group === undefined) return [];
    const read = [[group, groupsAt(entry, group)] as const];
    if (group === '*' || !group.includes('*')) return read;
    // A group that is a pattern has no fallbacks, since a call has the name of its model.
    entry.leaveOut(group, 'LiteLLM looks for the name of the called model, which a pattern never is');
    return [];
  });
  const general = entries.filter(([group]) => group === '*');
  return new Map([...entries.filter(([group]) => group !== '*').toReversed(), ...general]);
}

/** The fallbacks for every failure. A group without fallbacks of its own has the `default_fallbacks`. */
function generalFallbacks(router: Section): Fallbacks {
  const read = readFallbacks(router, 'fallbacks', { refusesSeveral: true }) ?? [];
  const defaults = router.get('default_fallbacks');
  return new Map([...read, ...(defaults === undefined ? [] : [['*', groupsAt(router, 'default_fallbacks')] as const])]);
}

/** The group that LiteLLM calls instead of a group that the file does not have: the first group of the first list of `*` that is not empty, null without such a list. */
export function defaultGroup(router: Section): string | null {
  const maps = router.get('fallbacks') ?? [];
  const lists = [...(maps as Record<string, unknown>[]).map((map) => map['*']), router.get('default_fallbacks')];
  const first: unknown = lists.find((list) => Array.isArray(list) && list.length > 0) ?? [];
  const [group] = first as unknown[];
  return typeof group === 'string' ? group : null;
}

/**
 * The group where the chain starts: the wanted group, which may be named by an alias, or the only group that has fallbacks and is nobody's fallback. If no
 * group has fallbacks, it is the first group of the file.
 * @throws ServiceError 400 with all groups as candidates if there are several or none, or the wanted one is unknown
 */
export function firstGroup(
  groups: readonly string[],
  { aliases, lists, wanted }: { aliases: readonly string[]; lists: readonly Fallbacks[]; wanted: string | undefined },
): string {
  if (wanted !== undefined) {
    if (groups.includes(wanted) || aliases.includes(wanted)) return wanted;
    throw invalid('group', `group names no model_name of the file; it has ${shownGroups(groups)}.`);
  }
  const leading = groups.filter((group) => lists.some((list) => (list.get(group) ?? list.get('*'))?.some((backup) => backup !== group)));
  // A group may be among its own fallbacks.
  const backups = new Set(lists.flatMap((list) => [...list].flatMap(([group, to]) => to.filter((backup) => backup !== group))));
  const candidates = leading.filter((group) => !backups.has(group));
  if (candidates.length === 1) return candidates[0]!;
  if (leading.length === 0) return groups[0]!;
  throw new ServiceError(
    'VALIDATION_ERROR',
    `${candidates.length === 0 ? 'The groups of the file are fallbacks of one another' : 'The file has several chains'}; name the first model of one of them as group: ${shownGroups(groups)}.`,
    { field: 'group', extra: { candidates: groups.slice(0, 100) } },
  );
}

/** The first of the groups for a message. */
const shownGroups = (groups: readonly string[]) =>
  listed(groups.length > 20 ? [...groups.slice(0, 20), plural(groups.length - 20, 'other group')] : groups);
