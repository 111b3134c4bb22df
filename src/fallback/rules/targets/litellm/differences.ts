import { plural } from '../../../../kit/wording.ts';
import { type ChainRequest, conditions, maxRetries } from '../../../model/chain.ts';
import { concerns } from '../../../model/finding.ts';
import { define } from '../../chain.ts';
import { canFailWith, type FailureKind } from '../../conditions.ts';
import { createEngine, decide, type Engine, initialPosition } from '../../engine.ts';
import type { FindingList } from '../../finding-list.ts';
import { pathsTo } from '../../reach.ts';
import { listed, times } from '../../wording.ts';
import type { Draft, Section } from '../section.ts';
import { classOf, coolsDown, isSkipped } from './errors.ts';
import { prefixedKey } from './groups.ts';
import { repeatsOf, repeatsSentence, specialOf } from './names.ts';
import { aboutOf, failures, type Reached } from './reached.ts';
import { callsOf, type Deployment, type FailureOf, fallbacksOf, firstCallsOf, type Router, weighed } from './router.ts';

/** A model of a file that is a provider of the chain. */
interface Imported extends Deployment {
  readonly index: number;
  /** Its name with the provider that LiteLLM infers, if only that fits the pattern of its entry. */
  readonly inferred: string | undefined;
  readonly provider: { readonly name: string };
}

interface Parts<D extends Imported> {
  readonly router: Router<D>;
  /** The group where the chain starts. */
  readonly first: string;
  readonly chain: readonly Reached<D>[];
}

/** Finds the models that are not part of the chain, and groups of fallbacks that the file does not have. */
export function noteLeftOut<D extends Imported>(
  file: Section,
  { deployments, chain, router, first }: Parts<D> & { deployments: readonly D[] },
): void {
  const isUsed = (group: string) => chain.some(({ deployment }) => deployment.group === group);
  // A model that a pattern has become is one of its entry.
  for (const one of deployments.filter((model) => !chain.some(({ deployment }) => deployment.index === model.index))) {
    const why = isUsed(one.group)
      ? `LiteLLM never calls it: other models of ${one.group} have an order or a weight, and it has none`
      : `the fallbacks of ${first} do not lead to it`;
    file.findings.add('left_out', `model_list.${one.index}`, `${one.provider.name} is not imported, because ${why}.`);
  }
  const lists = [router.general, router.contextWindow, router.contentPolicy].flatMap((list) => list ?? []);
  const named = lists.flatMap((list) => [...list].flatMap(([group, backups]) => (group === '*' || isUsed(group) ? backups : [])));
  const { byDefault } = router;
  const instead = byDefault === null || !router.groups.has(byDefault) ? 'LiteLLM and the chain skip it' : `LiteLLM then calls ${byDefault}`;
  for (const group of new Set(named.filter((name) => !router.groups.has(name))))
    file.findings.add('unknown_model', 'fallbacks', `The fallbacks name ${group}, which is not in model_list; ${instead}.`);
  const pattern = `${first} is a pattern; name a model that fits it as group.`;
  if (first.includes('*')) file.findings.add('pattern', 'model_list', pattern, { loss: true, measured: false });
}

/** Finds groups whose fallbacks are under their name with a provider, which hold only for models that LiteLLM knows. */
export function notePrefixed<D extends Imported>(findings: FindingList, { router, chain }: Pick<Parts<D>, 'router' | 'chain'>): void {
  for (const { group, provider } of chain.map(({ deployment }) => deployment))
    for (const condition of conditions) {
      const key = prefixedKey(fallbacksOf(router, specialOf[condition]), group);
      const sentence = `LiteLLM uses the fallbacks of ${key} for ${group} if it knows this model; the chain does not. Name them ${group}.`;
      if (key !== undefined) findings.add('other_name', 'fallbacks', sentence, { provider: provider.name, condition, loss: true });
    }
}

/** Finds models that fit a pattern only with a provider that LiteLLM infers, which it does for the models that it knows (versions 1.106.2 and 1.110.2). */
export function noteInferred<D extends Imported>(findings: FindingList, chain: readonly Reached<D>[]): void {
  const sentenceOf = ({ group, inferred }: D) =>
    `LiteLLM takes ${group} for ${inferred} if its own list of models has it, and refuses it otherwise; the chain calls it. Name it ${inferred}.`;
  const [first] = chain;
  if (first?.deployment.inferred !== undefined)
    for (const condition of conditions)
      findings.add('inferred', 'model_list', sentenceOf(first.deployment), {
        provider: first.deployment.provider.name,
        condition,
        loss: true,
      });
  for (const { deployment, outcomes } of chain)
    for (const { failing, next: after } of outcomes)
      for (const one of after.filter(({ inferred }) => inferred !== undefined))
        findings.add('inferred', 'fallbacks', sentenceOf(one), {
          provider: deployment.provider.name,
          ...aboutOf(failing),
          loss: true,
        });
}

/** Finds what LiteLLM does otherwise than the chain, by simulating the calls of both. */
export function noteDifferences<D extends Imported>(findings: FindingList, { draft, ...parts }: Parts<D> & { draft: Draft }): void {
  const { router, chain } = parts;
  for (const group of new Set(chain.map(({ deployment }) => deployment.group))) noteDraws(findings, parts, group);
  noteRepeats(findings, chain);
  const engine = createEngine(define(draft as unknown as ChainRequest));
  const { providers } = engine.chain;
  for (const failing of failures.filter(({ condition }) => providers.some((one) => canFailWith(one, condition)))) {
    const parting = partingOf(engine, parts, () => failing);
    if (parting === null) continue;
    const last = parting.ours[Math.max(parting.at - 1, 0)] ?? parting.theirs[0]!;
    // The finding about what is repeated says it already.
    if (callsFor(last, failing) > 1) continue;
    const sentence = `If every model fails with ${shown(failing)}, LiteLLM makes ${counted(parting.theirs)}; the chain makes ${counted(parting.ours)}.`;
    findings.add('calls', null, sentence, { provider: last.provider.name, ...aboutOf(failing), loss: true });
  }
  for (const { deployment, outcomes } of chain) {
    const cut = outcomes.filter(({ retries }) => retries > maxRetries);
    for (const { failing, retries } of cut) {
      const sentence = `LiteLLM retries ${deployment.provider.name} ${times(retries)} on ${failing.condition}; the chain at most ${maxRetries} times.`;
      findings.add('reduced', null, sentence, { provider: deployment.provider.name, ...aboutOf(failing), loss: true, measured: false });
    }
  }
  if (router.hasCooldowns) noteCooldowns(findings, parts);
  noteWithheld(findings, parts);
  if (router.contextWindow !== null) noteTooLarge(findings, chain);
  noteCells(findings, engine, parts);
}

/** Finds that LiteLLM knows a prompt that is too long by one of its statuses only. */
function noteTooLarge<D extends Imported>(findings: FindingList, chain: readonly Reached<D>[]): void {
  const sentence = 'LiteLLM treats a prompt that is too long as such only with status 400; with 413 its fallbacks for any failure hold.';
  for (const { deployment } of chain)
    findings.add('status', null, sentence, {
      provider: deployment.provider.name,
      condition: 'context_length',
      status_codes: [413],
      loss: true,
    });
}

/** Finds that LiteLLM returns an answer that a filter withheld to the caller, unless the group has fallbacks for refused content. */
function noteWithheld<D extends Imported>(findings: FindingList, { router, first, chain }: Parts<D>): void {
  const { contentPolicy, general } = router;
  const isRaised = (group: string) =>
    contentPolicy === null ? general.has('*') : contentPolicy.has(group) || contentPolicy.has(first) || contentPolicy.has('*');
  for (const { deployment, outcomes } of chain) {
    const condition = outcomes.find(({ failing, next: after }) => specialOf[failing.condition] === 'content' && after.length > 0)?.failing
      .condition;
    if (condition === undefined || isRaised(deployment.group)) continue;
    const { name } = deployment.provider;
    const sentence = `LiteLLM returns an answer of ${name} that a filter withheld (status 200) to the caller, since ${deployment.group} has no content_policy_fallbacks; the chain goes on.`;
    findings.add('withheld', 'fallbacks', sentence, { provider: name, condition, status_codes: [200], loss: true });
  }
}

/** Finds the models that LiteLLM leaves out for a while after failures. */
function noteCooldowns<D extends Imported>(findings: FindingList, { router, chain }: Parts<D>): void {
  const waits =
    'LiteLLM leaves out a model for a while after certain failures, also in later prompts; a chain does so by its cooldown, and only in a timeline: in other tests it tries every provider anew for each prompt.';
  findings.add('memory', null, waits, { loss: true });
  for (const { deployment, outcomes } of chain) {
    const { group } = deployment;
    const isAlone = router.groups.get(group)!.length === 1;
    const sentence = `LiteLLM soon leaves out a model of ${group} that is limited or refuses, perhaps before its retries; the chain leaves it at once.`;
    for (const { failing } of outcomes.filter((outcome) => coolsDown(classOf(outcome.failing, deployment.kind), isAlone))) {
      const calls = (given: Router<D>) => firstCallsOf(given, group, (one) => (one === deployment ? failing : null)).length;
      // Without retries by a policy, a model that is alone is left at once in any case.
      if (isAlone && calls(router) === calls({ ...router, hasCooldowns: false })) continue;
      findings.add('cooldowns', null, sentence, { provider: deployment.provider.name, ...aboutOf(failing), loss: true });
    }
  }
}

/** How often LiteLLM calls a model for one call of its router. */
function callsFor({ kind }: Deployment, failing: FailureKind | null): number {
  const repeats = repeatsOf(kind);
  return failing !== null && repeats?.conditions.includes(failing.condition) ? repeats.calls : 1;
}

/** Finds the calls that LiteLLM repeats by itself. */
function noteRepeats<D extends Imported>(findings: FindingList, chain: readonly Reached<D>[]): void {
  for (const { kind, provider } of chain.map(({ deployment }) => deployment))
    for (const condition of repeatsOf(kind)?.conditions ?? [])
      findings.add('repeats', null, repeatsSentence(repeatsOf(kind)!, provider.name), { provider: provider.name, condition, loss: true });
}

/** Where the calls of LiteLLM and of the chain part, and all calls of both. */
interface Parting<D> {
  readonly at: number;
  readonly theirs: readonly D[];
  readonly ours: readonly D[];
}

/** Lets LiteLLM and the chain call models that fail in these ways; null if both do the same. */
function partingOf<D extends Imported>(engine: Engine, { router, first, chain }: Parts<D>, failureOf: FailureOf<D>): Parting<D> | null {
  const theirs = callsOf(router, first, failureOf).flatMap((one) => Array<D>(callsFor(one, failureOf(one))).fill(one));
  const ours = chainCalls(engine, (provider) => failureOf(chain[provider]!.deployment)).map((index) => chain[index]!.deployment);
  const isLost = (calls: readonly D[]) => calls.every((one) => failureOf(one) !== null);
  const length = Math.max(theirs.length, ours.length);
  for (let at = 0; at < length; at += 1) if (groupAndOrder(theirs[at]) !== groupAndOrder(ours[at])) return { at, theirs, ours };
  return isLost(theirs) === isLost(ours) ? null : { at: length, theirs, ours };
}

/** Finds what differs if a model fails alone, and after the failures that lead to it, as far as no finding is about that failure. */
function noteCells<D extends Imported>(findings: FindingList, engine: Engine, parts: Parts<D>): void {
  const { chain } = parts;
  const leading = pathsTo(engine).map((way) =>
    (way?.failures ?? []).map(
      (failure) => [chain[failure.provider]!.deployment, failures.find(({ condition }) => condition === failure.condition)!] as const,
    ),
  );
  for (const [index, { deployment }] of chain.entries()) {
    for (const failing of failures.filter(({ condition }) => canFailWith(engine.chain.providers[index]!, condition))) {
      for (const before of [[], leading[index]!]) {
        const down = new Map<D, FailureKind>([...before, [deployment, failing]]);
        const parting = partingOf(engine, parts, (one) => down.get(one) ?? null);
        if (parting === null) continue;
        const last = Math.max(parting.at - 1, 0);
        const failed = [parting.ours[last], parting.theirs[last]].find((one) => one !== undefined && down.has(one));
        if (failed === undefined) continue;
        const { name: provider } = failed.provider;
        const failure = down.get(failed)!;
        if (findings.items.some((one) => one.loss && concerns(one, { provider, stream: false, ...failure }))) continue;
        const said = listed([...down].map(([{ provider }, one]) => `${provider.name} fails with ${shown(one)}`));
        const sentence = `If ${said}, LiteLLM makes ${counted(parting.theirs)}; the chain makes ${counted(parting.ours)}.`;
        findings.add('calls', null, sentence, { provider, ...aboutOf(failure), loss: true });
      }
    }
  }
}

const shown = ({ condition, status_code }: FailureKind) => (status_code === null ? condition : `${condition} (${status_code})`);

/** The group and the order of a model. Models with the same group and order stand for one another. */
const groupAndOrder = (one: Deployment | undefined) => (one === undefined ? '' : `${one.group} ${one.order}`);

/** Finds that LiteLLM draws the models of a group at random and may call one again, while a chain tries each once. */
function noteDraws<D extends Imported>(findings: FindingList, { router, chain }: Parts<D>, group: string): void {
  const all = router.groups.get(group)!;
  for (const level of Map.groupBy(all, ({ order }) => order).values()) {
    const drawn = weighed(level);
    noteRest(findings, { group, rest: level.filter((one) => !drawn.includes(one)) });
    if (drawn.length < 2) continue;
    const lead = chain.find(({ deployment }) => drawn.includes(deployment));
    if (lead === undefined) continue;
    const by = drawn.some(({ weights }) => weights.some((weight) => weight > 0)) ? ' by their weights' : '';
    const begins = `LiteLLM draws one of the ${drawn.length} models of ${group} at random${by} for each call; the chain begins with ${lead.deployment.provider.name}.`;
    findings.add('load_balanced', 'model_list', begins);
    for (const { provider } of drawn.filter((one) => one !== lead.deployment))
      for (const condition of conditions)
        findings.add('load_balanced', 'model_list', begins, { provider: provider.name, condition, loss: true });
    for (const { failing, retries, next: after } of lead.outcomes) {
      const isTriedAgain = retries > 0 || after.some((one) => drawn.includes(one));
      const error = classOf(failing, lead.deployment.kind);
      const isLeftOut = isSkipped(error) || (router.hasCooldowns && coolsDown(error, false));
      const isUnlike = new Set(drawn.map((one) => callsIfAllWere(one, drawn, router, failing).join())).size > 1;
      const unlike = `LiteLLM draws one of the ${drawn.length} models of ${group} at random for each call, and what follows its ${failing.condition} depends on which: their kinds or their num_retries differ.`;
      if (isUnlike)
        for (const { provider } of drawn)
          findings.add('unlike_models', 'model_list', unlike, { provider: provider.name, ...aboutOf(failing), loss: true });
      if (!isTriedAgain || isLeftOut) continue;
      const calls = firstCallsOf(router, group, () => failing).filter((one) => drawn.includes(one)).length;
      const sentence = `LiteLLM makes up to ${plural(calls, 'call')} to the ${drawn.length} models of ${group} and draws one for each, perhaps the same again; the chain calls each once, and the last one for the other calls.`;
      const { name } = lead.deployment.provider;
      findings.add('load_balanced', 'model_list', sentence, { provider: name, ...aboutOf(failing), loss: true });
    }
  }
}

/** The calls that follow if the models that LiteLLM draws from are all like one of them, and every call fails; by group and order. */
function callsIfAllWere<D extends Imported>({ group, kind, retries }: D, drawn: readonly D[], router: Router<D>, failing: FailureKind) {
  const alike = router.groups.get(group)!.map((one) => (drawn.includes(one) ? { ...one, kind, retries } : one));
  const calls = firstCallsOf({ ...router, groups: new Map(router.groups).set(group, alike) }, group, () => failing);
  return calls.flatMap((one) => Array<string>(callsFor(one, failing)).fill(groupAndOrder(one)));
}

/** Finds that LiteLLM draws models of a group without a weight at random as well, once those with a weight have refused. */
function noteRest<D extends Imported>(findings: FindingList, { group, rest }: { group: string; rest: readonly D[] }): void {
  if (rest.length < 2) return;
  const sentence = `If the models of ${group} with a weight refuse, LiteLLM draws one of the ${rest.length} others at random for each call; the chain calls each once, in order.`;
  for (const { provider } of rest)
    for (const condition of conditions)
      findings.add('load_balanced', 'model_list', sentence, { provider: provider.name, condition, loss: true });
}

/** The providers that the chain calls, by index, if some fail. */
function chainCalls(engine: Engine, failureOf: (provider: number) => FailureKind | null): number[] {
  const position = initialPosition(engine);
  const calls: number[] = [];
  for (;;) {
    calls.push(position.provider);
    const failing = failureOf(position.provider);
    if (failing === null) return calls;
    const failure = { ...failing, retry_after_ms: null };
    const { end } = decide(engine, position, failure, { random: () => 0, elapsed_ms: 0, deadline_ms: null });
    if (end !== null) return calls;
  }
}

/** The calls as a list: `3 calls of a and 1 call of b`. */
function counted(calls: readonly Imported[]): string {
  const called = Map.groupBy(calls, ({ provider }) => provider.name);
  return listed([...called].map(([name, list]) => `${plural(list.length, 'call')} of ${name}`));
}
