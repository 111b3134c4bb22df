import { invalid, ServiceError } from '../../../../kit/errors.ts';
import { plural } from '../../../../kit/wording.ts';
import { listed } from '../../wording.ts';
import { type Section, textAt } from '../section.ts';
import type { Fallbacks } from './router.ts';

/** The groups in a list of backups, which may be empty; a backup may be an object with other parameters of its call. */
const groupsAt = (section: Section, name: string): string[] =>
  (isEmpty(section.get(name)) ? [] : section.list(name, 1000)).map((backup, index) => {
    const group = typeof backup === 'object' && backup !== null ? (backup as { model?: unknown }).model : backup;
    return textAt(group, `${section.at(name)}.${index}`);
  });

const isEmpty = (value: unknown) => Array.isArray(value) && value.length === 0;

/** Reads a list of maps, each from a group to the groups that are tried after it; null without any. */
export function readFallbacks(router: Section, name: string): Fallbacks | null {
  const value = router.get(name);
  if (value === undefined || isEmpty(value)) return null;
  const entries = router
    .sections(name, 1000)
    .flatMap((entry) => Object.keys(entry.fields).map((group) => [group, groupsAt(entry, group)] as const));
  return new Map(entries.toReversed());
}

/** The fallbacks for every failure. `default_fallbacks` are those of groups without their own. */
export function generalFallbacks(router: Section): Fallbacks {
  const others = router.get('default_fallbacks') === undefined ? [] : [['*', groupsAt(router, 'default_fallbacks')] as const];
  return new Map([...others, ...(readFallbacks(router, 'fallbacks') ?? [])]);
}

/**
 * The group where the chain starts: the wanted one, or the only one that has fallbacks and is nobody's fallback. Without any
 * fallbacks it is the first of the file.
 * @throws ServiceError 400 with all groups as candidates if there are several or none, or the wanted one is unknown
 */
export function firstGroup(groups: readonly string[], lists: readonly Fallbacks[], wanted: string | undefined): string {
  if (wanted !== undefined) {
    if (groups.includes(wanted)) return wanted;
    throw invalid('group', `group names no model_name of the file; it has ${shownGroups(groups)}.`);
  }
  const leading = groups.filter((group) => lists.some((list) => (list.get(group) ?? list.get('*'))?.some((backup) => backup !== group)));
  const backups = new Set(lists.flatMap((list) => [...list.values()].flat()));
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
