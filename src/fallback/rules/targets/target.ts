import { type ChainDefinition, type Condition, conditions, type Provider, type Rule } from '../../model/chain.ts';
import type { preferences } from '../../model/export.ts';
import { ofCooldowns } from '../../model/finding.ts';
import type { Routing } from '../../model/routing.ts';
import { filled } from '../chain.ts';
import { ofStream, usualCondition, usualStatus } from '../conditions.ts';
import { createEngine, type Engine, initialPosition, matchingRule, type Position, positionAfterFailover } from '../engine.ts';
import { endOf, pathsTo } from '../reach.ts';
import type { WarningList } from '../warning-list.ts';
import { listed, uniqueName } from '../wording.ts';

/** The input of an export: the chain, its routing, and the preference for targets that can't both retry and fail over. */
export interface ExportInput {
  readonly chain: ChainDefinition;
  readonly routing: Routing;
  readonly prefer: (typeof preferences)[number];
}

/** An export in progress: its input, its providers in order, and its warnings. */
export interface Source extends ExportInput {
  readonly providers: readonly ExportedProvider[];
  readonly warnings: WarningList;
}

/** The configuration of a target: an object, the list of a file's YAML documents, or the text of a module. Pure; never fails for what the target can't express. */
export type Exporter = (source: Source) => unknown;

/** The chain's reaction to a failure of a provider. */
interface Reaction {
  /** The retries at the same provider. */
  retries: number;
  /** Whether the next provider is tried after that; false for the last provider. */
  failsOver: boolean;
  /** The rule that decides; null for a default. */
  rule: Rule | null;
}

/** A provider in an export. */
export interface ExportedProvider {
  readonly provider: Provider;
  readonly index: number;
  readonly isLast: boolean;
  /** A unique name in a form that other programs accept. */
  readonly slug: string;
  /** The chain's reaction if it fails with `condition`, and with the HTTP `status` if that matters. */
  readonly reactionTo: (condition: Condition, status?: number) => Reaction;
  /** The providers that are tried after it, by index, if it fails with `condition` and each of them with a server error. */
  readonly onwards: (condition: Condition) => readonly number[];
  /** Warns of something about the provider, or its field, that the target can't express. */
  readonly loss: (code: string, field: string | null, detail: string) => void;
  /** Advises about something that does not change how the target behaves. */
  readonly advise: (code: string, field: string | null, detail: string) => void;
}

/** The providers of a chain, to be exported. */
export function exportedProviders({ chain, routing }: ExportInput, warnings: WarningList): ExportedProvider[] {
  const taken = new Set<string>();
  const engine = createEngine(chain);
  const ways = pathsTo(engine);
  const orders = chain.providers.map((_, index) => {
    const known = new Map<Condition, readonly number[]>();
    return (condition: Condition) => {
      const order = known.get(condition) ?? onwards(engine, ways[index]?.position ?? initialPosition(engine, index), condition);
      known.set(condition, order);
      return order;
    };
  });
  return chain.providers.map((provider, index) => ({
    provider,
    index,
    isLast: index === chain.providers.length - 1,
    slug: uniqueName(slug(provider.name, `provider-${index}`), taken),
    reactionTo(condition, status) {
      const decision = routing.providers[index]!.decisions.find((known) => known.condition === condition)!;
      const decided = decision.exceptions.find(({ status_code }) => status_code === status) ?? decision;
      return {
        retries: decided.max_retries,
        failsOver: decided.next_provider !== null,
        rule: decided.rule === null ? null : chain.fallback_rules[decided.rule]!,
      };
    },
    onwards: orders[index]!,
    loss: (code, field, detail) => warnings.loss(code, pathOf(index, field), detail),
    advise: (code, field, detail) => warnings.add(code, pathOf(index, field), detail),
  }));
}

/** The providers after the one of a position. */
function onwards(engine: Engine, from: Position, condition: Condition): number[] {
  const found: number[] = [];
  let failing: Condition = condition;
  let position: Position | undefined = from;
  while (position !== undefined) {
    const rule = matchingRule(engine, position.provider, { condition: failing, status_code: usualStatus(failing) });
    const goesOn = endOf(engine, { condition: failing, rule }) === 'failover';
    position = goesOn ? positionAfterFailover(engine, position, rule) : undefined;
    if (position !== undefined) found.push(position.provider);
    failing = usualCondition;
  }
  return found;
}

/** Warns of failovers by `to`, if the target has a single order. */
export function warnOfOwnOrders({ chain, providers, warnings }: Source, target: string): void {
  const names = chain.providers.map(({ name }) => name);
  for (const { provider, reactionTo, onwards: after } of providers) {
    const led = conditions.filter((condition) => reactionTo(condition).rule?.to != null && reactionTo(condition).failsOver);
    for (const [to, concerned] of Map.groupBy(led, (condition) =>
      after(condition)
        .map((index) => names[index]!)
        .join(', then '),
    ))
      warnings.loss(
        'to',
        'fallback_rules',
        `${target} has a single order; on ${listed(concerned)}, the chain goes from ${provider.name} to ${to}.`,
      );
  }
}

const pathOf = (index: number, field: string | null) => `providers.${index}${field === null ? '' : `.${field}`}`;

/** A name for files and objects of other programs: at most 40 lower-case letters, digits and dashes. */
export function slug(text: string, otherwise = 'chain'): string {
  const dashed = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replace(/^-+|-+$/g, '');
  return dashed === '' ? otherwise : dashed;
}

/**
 * The conditions on which a failure of a provider before the last one ends the chain. No target falls back once a part of a
 * stream was sent, so `interrupted` ends there too.
 */
function endsOf({ routing }: Source): Condition[] {
  const decisions = routing.providers.slice(0, -1).flatMap((provider) => provider.decisions);
  const ends = decisions.filter(({ condition, next_provider }) => next_provider === null && condition !== ofStream.broken);
  return [...new Set(ends.map(({ condition }) => condition))];
}

/** Warns of conditions on which the chain ends with an error but the target does something else. */
export function warnOfEnds(source: Source, instead: string): void {
  const ends = endsOf(source);
  if (ends.length > 0) source.warnings.loss('fail', null, `The chain ends with an error on ${listed(ends)}; ${instead}.`);
}

/** Warns that the chain goes on after a stream that was interrupted, if it does. */
export function warnOfInterrupted({ providers, warnings }: Source, target: string): void {
  const on = providers.filter(({ isLast, reactionTo }) => {
    const { retries, failsOver } = reactionTo(ofStream.broken);
    return retries > 0 || (failsOver && !isLast);
  });
  if (on.length === 0) return;
  const whose = on.length === providers.length ? '' : ` of ${listed(on.map(({ provider }) => provider.name))}`;
  const sentence = `${target} calls nobody once it has sent a part of a streamed answer; on interrupted${whose}, the chain makes another attempt.`;
  warnings.loss('interrupted', null, sentence);
}

const withoutCooldowns =
  "The format can't represent cool-downs: a provider that the chain leaves out after failures is called again for the next prompt.";

/** Warns of the fields that the format can't represent: of cool-downs, and of all others in one warning. */
export function warnOfUnsupportedFields(
  { chain, warnings }: Source,
  carries: { prices?: boolean; params?: boolean; streams?: boolean; cooldowns?: boolean } = {},
): void {
  const { description, metadata, providers } = chain;
  const isPriced = ({ input_cost_per_1m, output_cost_per_1m }: Provider) => input_cost_per_1m !== null || output_cost_per_1m !== null;
  const left: string[] = [];
  if (description !== null) left.push('the description');
  if (filled(metadata)) left.push("the chain's metadata");
  if (providers.some((provider) => filled(provider.metadata))) left.push("the providers' metadata");
  if (!carries.params && providers.some(({ params }) => filled(params))) left.push("the providers' params");
  if (!carries.prices && providers.some(isPriced)) left.push('the prices');
  const limits = (['first_token_ms', 'idle_ms'] as const).filter((field) => providers.some((provider) => provider[field] !== null));
  if (!carries.streams) left.push(...limits);
  const cools = chain.cooldown !== null || providers.some(({ cooldown }) => cooldown !== null);
  if (!carries.cooldowns && cools) warnings.loss(ofCooldowns, chain.cooldown && 'cooldown', withoutCooldowns);
  // Only parameters and limits change how a provider is called.
  const isLoss = left.includes("the providers' params") || (!carries.streams && limits.length > 0);
  if (left.length > 0) warnings.add('not_carried', null, `The format can't represent ${listed(left)}.`, isLoss);
}
