import { stringify } from 'yaml';

import type { ChainDefinition, Condition, Provider, Rule } from '../../model/chain.ts';
import type { preferences } from '../../model/export.ts';
import type { Routing } from '../../model/routing.ts';
import { listed } from '../wording.ts';

/** What a warning of an export is about, where it is told and in which words. */
export interface ExportWarning {
  code: string;
  field: string | null;
  detail: string;
}

/** What an export is made of: the chain, what it does with every failure, and what comes first where a target can't do both. */
export interface Source {
  readonly chain: ChainDefinition;
  readonly routing: Routing;
  readonly prefer: (typeof preferences)[number];
}

/** A chain in the form of one target. */
export interface Target {
  /** What the file is usually called, where that isn't the chain's name. */
  filename: string;
  content_type: string;
  /** The configuration as an object; the text itself for formats that are code. */
  config: unknown;
  content: string;
}

/** What a target cannot express. A loss changes what is called, when, or what an import reads back; a remark changes nothing. */
export class Notes {
  readonly warnings: ExportWarning[] = [];
  /** Whether the target behaves like the chain as far as was found. */
  exact = true;

  loss(code: string, field: string | null, detail: string): void {
    this.exact = false;
    this.remark(code, field, detail);
  }

  remark(code: string, field: string | null, detail: string): void {
    if (!this.warnings.some((known) => known.code === code && known.field === field && known.detail === detail)) {
      this.warnings.push({ code, field, detail });
    }
  }
}

/** A target's export: pure, and it never fails for what the target can't express. */
export type Exporter = (source: Source, notes: Notes) => Target;

/** What the chain does with a failure of a provider. */
export interface Verdict {
  /** How often the same provider is tried again. */
  retries: number;
  /** Whether the next provider is tried after that. The last provider has none. */
  goesOn: boolean;
  /** The rule that says so; null for a default. */
  rule: Rule | null;
}

/** What the chain does when its provider number `index` fails with `condition`, and with the HTTP `status` where that matters. */
export function verdictOf({ chain, routing }: Source, index: number, condition: Condition, status?: number): Verdict {
  const decision = routing.providers[index]!.decisions.find((known) => known.condition === condition)!;
  const decided = decision.exceptions.find(({ status_code }) => status_code === status) ?? decision;
  return {
    retries: decided.max_retries,
    goesOn: decided.next_provider !== null,
    rule: decided.rule === null ? null : chain.fallback_rules[decided.rule]!,
  };
}

/** The places of the providers that have one after them. */
export function placesBeforeLast({ chain }: Source): number[] {
  return chain.providers.slice(0, -1).map((_, index) => index);
}

/** A provider's path in the chain, for warnings. */
export const at = (index: number, field?: string) => `providers.${index}${field === undefined ? '' : `.${field}`}`;

/** A name for files and objects of other programs: lower case letters, digits and dashes, at most 40. */
export function slug(text: string, otherwise = 'chain'): string {
  const dashed = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '');
  return dashed === '' ? otherwise : dashed;
}

/** The names of all providers in a form that other programs take, each of them once. */
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

/** A value as JSON text of two spaces, with a line feed at its end. */
export const jsonText = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

/** A value as YAML text, without anchors and without lines broken. */
export const yamlText = (value: unknown) => stringify(value, { lineWidth: 0, aliasDuplicateObjects: false });

/** Tells that the chain ends with an error on these conditions, where the target does something else. */
export function noteEnds(conditions: readonly Condition[], instead: string, notes: Notes): void {
  if (conditions.length > 0) notes.loss('fail', null, `The chain ends with an error on ${listed(conditions)}; ${instead}.`);
}

/** What has no place in formats of others: told once for all of it. */
export function noteWhatStaysBehind({ chain }: Source, notes: Notes, carries: { prices?: boolean } = {}): void {
  const left: string[] = [];
  if (chain.description !== null) left.push('the description');
  if (Object.keys(chain.metadata).length > 0) left.push("the chain's metadata");
  if (chain.providers.some(({ metadata }) => Object.keys(metadata).length > 0)) left.push("the providers' metadata");
  const priced = chain.providers.some(
    ({ input_cost_per_1m, output_cost_per_1m }) => input_cost_per_1m !== null || output_cost_per_1m !== null,
  );
  if (priced && !carries.prices) left.push('the prices');
  if (left.length > 0) notes.loss('not_carried', null, `The format has no place for ${listed(left)}.`);
}
