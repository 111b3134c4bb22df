import { litellmKinds } from '../../kind-lists.ts';
import { Section } from '../section.ts';
import { inferredKind } from './names.ts';
import type { Fallbacks } from './router.ts';

/** The aliases of groups. */
export function aliasesOf(settings: Section): ReadonlyMap<string, string> {
  const section = settings.optional('model_group_alias');
  return new Map(
    Object.entries(section?.fields ?? {}).flatMap(([alias, value]) => {
      const group = typeof value === 'object' && value !== null ? (value as { model?: unknown }).model : value;
      if (typeof group === 'string' && group !== '') return [[alias, group] as const];
      section!.leaveOut(alias, 'it does not name one group');
      return [];
    }),
  );
}

/** Fallbacks with lists for groups that LiteLLM finds by their name without the provider: `gpt-4o` also for `openai/gpt-4o`. */
export function withOtherNames(fallbacks: Fallbacks, groups: readonly string[]): Fallbacks {
  const found = groups.flatMap((group) => {
    const list = fallbacks.has(group) ? undefined : fallbacks.get(strippedName(group) ?? '');
    return list === undefined ? [] : [[group, list] as const];
  });
  return new Map([...fallbacks, ...found]);
}

/** The name of a group without its provider; undefined if it has none. */
function strippedName(group: string): string | undefined {
  const kind = group.slice(0, Math.max(group.indexOf('/'), 0));
  return litellmKinds.has(kind) ? group.replaceAll(`${kind}/`, '') : undefined;
}

/** A key of fallbacks that is the group's name with a provider: LiteLLM uses it if its own list of models has the group under that provider. */
export const prefixedKey = (fallbacks: Fallbacks, group: string): string | undefined =>
  group.includes('/') || fallbacks.has(group) ? undefined : [...fallbacks.keys()].find((key) => key.endsWith(`/${group}`));

/** The name with the provider that is inferred from it. */
function prefixedName(group: string): string | undefined {
  const kind = group.includes('/') ? undefined : inferredKind(group);
  return kind === undefined ? undefined : `${kind}/${group}`;
}

/** An entry of `model_list`. */
interface Entry {
  readonly entry: Section;
  readonly index: number;
  /** The name of a model with the provider that LiteLLM infers, if only that fits the pattern. */
  readonly inferred?: string;
}

/** The entries of the file, and an entry for each wanted model that LiteLLM takes from an entry whose name is a pattern. */
export function withPatterns(entries: readonly Entry[], wanted: readonly string[]): Entry[] {
  const nameOf = ({ entry }: Entry) => String(entry.fields.model_name);
  const names = new Set(entries.map(nameOf));
  // The longest pattern that fits counts.
  const patterns = [...names].filter((name) => name.includes('*')).toSorted((one, other) => other.length - one.length);
  const made = [...new Set(wanted)].flatMap((name) => {
    if (names.has(name) || name.includes('*')) return [];
    for (const asked of [name, prefixedName(name)]) {
      const pattern = asked === undefined ? undefined : patterns.find((one) => partsOf(one, asked) !== null);
      if (pattern === undefined) continue;
      const parts = partsOf(pattern, asked!)!;
      return entries
        .filter((one) => nameOf(one) === pattern)
        .map((one) => ({
          ...one,
          entry: filledIn(one.entry, { name, asked: asked!, parts }),
          ...(asked === name ? {} : { inferred: asked! }),
        }));
    }
    return [];
  });
  return [...entries, ...made];
}

/** What a name has instead of the asterisks of a pattern; null if it does not fit the pattern. */
function partsOf(pattern: string, name: string): string[] | null {
  const [begin, ...texts] = pattern.split('*') as [string, ...string[]];
  if (!name.startsWith(begin)) return null;
  let rest = name.slice(begin.length);
  const parts: string[] = [];
  for (const text of texts) {
    const at = rest.lastIndexOf(text);
    if (at === -1) return null;
    parts.push(rest.slice(0, at));
    rest = rest.slice(at + text.length);
  }
  return parts;
}

/** The entry of a pattern for one model. */
function filledIn(
  { fields, path, findings }: Section,
  { name, asked, parts }: { name: string; asked: string; parts: readonly string[] },
): Section {
  const parameters = fields.litellm_params;
  if (typeof parameters !== 'object' || parameters === null) return new Section({ ...fields, model_name: name }, path, findings);
  const { model } = parameters as { model?: unknown };
  const asterisks = String(model).split('*').length - 1;
  const filled = parts.reduce((text, part) => text.replace('*', () => part), String(model));
  const called = asterisks === 0 || asterisks >= parts.length ? filled : asked;
  return new Section({ ...fields, model_name: name, litellm_params: { ...parameters, model: called } }, path, findings);
}
