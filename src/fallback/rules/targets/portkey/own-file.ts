import { isObject } from '../../../../kit/json.ts';
import { conditions } from '../../../model/chain.ts';
import { FindingList, type Reason } from '../../finding-list.ts';
import { knownKind } from '../../kinds.ts';
import { errorOf } from '../../provider-errors.ts';
import { isOutside } from '../../rehearsal.ts';
import { listed } from '../../wording.ts';
import { fakeAddress, type RedirectedFile, type RedirectOptions, rehearsalKey } from '../gateway.ts';
import { kindNamed } from '../kind-names.ts';
import { Section } from '../section.ts';
import { isSlug, type NamedTarget, namedTargets } from './import.ts';
import { hostOf, kindNames } from './names.ts';

type Fields = Record<string, unknown>;

/** The fields of targets and strategies that decide which calls are made. */
const kept = ['name', 'strategy', 'weight', 'retry', 'request_timeout', 'override_params', 'on_status_codes'];

/** The circuit breaker of a target or a strategy, which remembers failures of earlier prompts. */
const breaker = 'cb_config';

/** The fields of a target that its redirection replaces. */
const replaced = ['provider', 'api_key', 'custom_host', 'virtual_key', 'targets'];

/**
 * Leads the targets of a Portkey configuration to the fake providers below `base`. Strategies, retries, timeouts and parameters
 * stay as they are; what would reach other systems is left out, and so are circuit breakers unless `keepState`.
 * @param value the parsed file, which an import has accepted
 */
export function redirectFile(value: unknown, base: string, { keepState }: Pick<RedirectOptions, 'keepState'>): RedirectedFile {
  const targets = namedTargets(new Section(value, '', new FindingList()));
  const names = new Map(targets.map(({ name, path }) => [path, name]));
  const omitted = new Set<string>();
  const left: string[] = [];
  const asOpenai: string[] = [];
  const reasons: Reason[] = [];

  function redirect(node: Fields, path: string): Fields | undefined {
    const taken = keepState ? [...kept, breaker] : kept;
    for (const field of Object.keys(node)) if (![...taken, ...replaced].includes(field)) omitted.add(field);
    const plain: Fields = Object.fromEntries(taken.flatMap((field) => (node[field] === undefined ? [] : [[field, node[field]]])));
    if (!keepState && isObject(plain.strategy) && breaker in plain.strategy) {
      const { [breaker]: _, ...strategy } = plain.strategy;
      plain.strategy = strategy;
      omitted.add(breaker);
    }
    if (!Array.isArray(node.targets)) return leaf(node, plain, path);
    const inner = node.targets.flatMap((target, index) =>
      isObject(target) ? (redirect(target, path === '' ? `targets.${index}` : `${path}.targets.${index}`) ?? []) : [],
    );
    return inner.length === 0 ? undefined : { ...plain, targets: inner };
  }

  function leaf({ provider }: Fields, plain: Fields, path: string): Fields | undefined {
    const called = typeof provider === 'string' ? provider : '';
    const kind = kindNamed(kindNames, called);
    const name = names.get(path) ?? `target ${path}`;
    if (isOutside({ provider: kind })) {
      left.push(name);
      return undefined;
    }
    const address = `${fakeAddress(base, name)}/v1`;
    // What the gateway does with a name that it does not know is its own matter.
    if (kind === null && called !== '' && !isSlug(called))
      return { ...plain, provider: called, custom_host: address, api_key: rehearsalKey };
    const target = knownKind(kind) === undefined ? { provider: 'openai', custom_host: address } : hostOf(called, address);
    if (target.provider !== called) {
      asOpenai.push(name);
      if (kind !== null) reasons.push(...sentOtherwise(name, kind));
    }
    return { ...plain, ...target, api_key: rehearsalKey };
  }

  const file = redirect(value as Fields, '') ?? {};
  const notes = [
    ...(left.length === 0 ? [] : [`Left out, because their protocols can't be redirected to fake providers: ${listed(left)}.`]),
    ...(asOpenai.length === 0
      ? []
      : [`Rehearsed by OpenAI's protocol, because Portkey calls them by one that fake providers don't have: ${listed(asOpenai)}.`]),
    ...(omitted.size === 0 ? [] : [`Left out of the file for the rehearsal: ${listed([...omitted])}.`]),
  ];
  return { file, groups: drawnTogether(targets), apart: drawnApart(targets), models: new Map(), notes, reasons };
}

/** A configuration in which the targets without a timeout have one; null if all have one. Portkey would wait for ever. */
export function withTimeouts(value: unknown, ms: number): Fields | null {
  if (!isObject(value) || typeof value.request_timeout === 'number') return null;
  if (!Array.isArray(value.targets)) return { ...value, request_timeout: ms };
  const targets = value.targets.map((target) => withTimeouts(target, ms) ?? target);
  return targets.some((target, index) => target !== (value.targets as unknown[])[index]) ? { ...value, targets } : null;
}

/** The failures that a kind sends with another status than OpenAI, by whose protocol a target is rehearsed: Portkey decides by the status. */
function sentOtherwise(provider: string, kind: string): Reason[] {
  return conditions.flatMap((condition) => {
    const [own, other] = [kind, 'openai'].map((name) => errorOf(name, condition)?.status);
    if (own === undefined || own === other) return [];
    const detail = `${kind} sends status ${own} for ${condition}; ${provider} is rehearsed by OpenAI's protocol${other === undefined ? '' : `, with ${other}`}.`;
    return [{ detail, loss: true, provider, condition }];
  });
}

/** The targets between which a strategy balances the load, each with the path of the strategy. */
function drawnTogether(targets: readonly NamedTarget[]): ReadonlyMap<string, string> {
  const drawn = targets.flatMap(({ name, balancedBy }) => (balancedBy === null ? [] : [[name, balancedBy] as const]));
  const counts = Map.groupBy(drawn, ([, strategy]) => strategy);
  return new Map(drawn.filter(([, strategy]) => counts.get(strategy)!.length > 1));
}

/** The targets that are not called in a prompt in which another one is: a strategy draws either the one or the other. */
function drawnApart(targets: readonly NamedTarget[]): ReadonlyMap<string, ReadonlySet<string>> {
  const isApart = (one: NamedTarget, other: NamedTarget) =>
    one.draws.some((draw) => other.draws.some(({ strategy, target }) => strategy === draw.strategy && target !== draw.target));
  return new Map(targets.map((one) => [one.name, new Set(targets.flatMap((other) => (isApart(one, other) ? [other.name] : [])))]));
}
