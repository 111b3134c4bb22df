import { stringify } from 'yaml';

import type { ChainDefinition, Condition, Provider, Rule } from '../../model/chain.ts';
import type { preferences } from '../../model/export.ts';
import type { Routing } from '../../model/routing.ts';
import type { WarningList } from '../warning-list.ts';
import { listed } from '../wording.ts';

/** The input of an export: the chain, its routing, and the preference for targets that can't both retry and fail over. */
export interface Source {
  readonly chain: ChainDefinition;
  readonly routing: Routing;
  readonly prefer: (typeof preferences)[number];
}

/** A chain in the format of a target. */
export interface Target {
  /** The usual file name, if it is not derived from the chain's name. */
  filename: string;
  content_type: string;
  /** The configuration as an object, or the text if the format is code. */
  config: unknown;
  content: string;
}

/** Exports to a target. Pure; never fails for what the target can't express. */
export type Exporter = (source: Source, warnings: WarningList) => Target;

/** The chain's reaction to a failure of a provider. */
export interface Reaction {
  /** The retries at the same provider. */
  retries: number;
  /** Whether the next provider is tried after that; false for the last provider. */
  failsOver: boolean;
  /** The rule that decides; null for a default. */
  rule: Rule | null;
}

/** The chain's reaction if provider `index` fails with `condition`, and with the HTTP `status` if that matters. */
export function reactionTo({ chain, routing }: Source, index: number, condition: Condition, status?: number): Reaction {
  const decision = routing.providers[index]!.decisions.find((known) => known.condition === condition)!;
  const decided = decision.exceptions.find(({ status_code }) => status_code === status) ?? decision;
  return {
    retries: decided.max_retries,
    failsOver: decided.next_provider !== null,
    rule: decided.rule === null ? null : chain.fallback_rules[decided.rule]!,
  };
}

/** The path of a provider or its field, for warnings. */
export const at = (index: number, field?: string) => `providers.${index}${field === undefined ? '' : `.${field}`}`;

/** A name for files and objects of other programs: at most 40 lower-case letters, digits and dashes. */
export function slug(text: string, otherwise = 'chain'): string {
  const dashed = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '');
  return dashed === '' ? otherwise : dashed;
}

/** Unique names of all providers in a form that other programs accept. */
export function slugs(providers: readonly Provider[]): string[] {
  const taken = new Set<string>();
  return providers.map(({ name }, index) => {
    const plain = slug(name, `provider-${index}`);
    let free = plain;
    for (let count = 2; taken.has(free); count += 1) free = `${plain}-${count}`;
    taken.add(free);
    return free;
  });
}

/** A value as JSON text, indented by two spaces, with a final line feed. */
export const jsonText = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

/** A value as YAML text, without anchors and line folding. Most programs read YAML 1.1, where `2024-10-21` is a date and `on` a boolean. */
export const yamlText = (value: unknown) => stringify(value, { version: '1.1', lineWidth: 0, aliasDuplicateObjects: false });

/** The conditions on which a failure of a provider before the last one ends the chain. */
export function endsOf({ routing }: Source): Condition[] {
  const decisions = routing.providers.slice(0, -1).flatMap((provider) => provider.decisions);
  return [...new Set(decisions.filter(({ next_provider }) => next_provider === null).map(({ condition }) => condition))];
}

/** Warns of conditions on which the chain ends with an error but the target does something else. */
export function warnOfEnds(conditions: readonly Condition[], instead: string, warnings: WarningList): void {
  if (conditions.length > 0) warnings.loss('fail', null, `The chain ends with an error on ${listed(conditions)}; ${instead}.`);
}

/** Warns of the fields that the format can't represent, in one warning. */
export function warnOfUnsupportedFields(
  { chain }: Source,
  warnings: WarningList,
  carries: { prices?: boolean; params?: boolean } = {},
): void {
  const left: string[] = [];
  if (chain.description !== null) left.push('the description');
  if (Object.keys(chain.metadata).length > 0) left.push("the chain's metadata");
  if (chain.providers.some(({ metadata }) => Object.keys(metadata).length > 0)) left.push("the providers' metadata");
  if (!carries.params && chain.providers.some(({ params }) => Object.keys(params).length > 0)) left.push("the providers' params");
  const priced = chain.providers.some(
    ({ input_cost_per_1m, output_cost_per_1m }) => input_cost_per_1m !== null || output_cost_per_1m !== null,
  );
  if (priced && !carries.prices) left.push('the prices');
  if (left.length > 0) warnings.loss('not_carried', null, `The format can't represent ${listed(left)}.`);
}
