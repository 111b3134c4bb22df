import { plural } from '../../../../kit/wording.ts';
import { conditions } from '../../../model/chain.ts';
import type { FindingList } from '../../finding-list.ts';
import { listed } from '../../wording.ts';
import type { Section } from '../section.ts';
import { classOf, isLostOn422, measuredKinds, measuredOnce } from './errors.ts';
import { aboutOf, type Reached } from './reached.ts';
import { type Deployment, fallbacksOf, type Router } from './router.ts';

// What LiteLLM does besides the calls after a failure, as measured with versions 1.106.2 and 1.110.2.

type Named = Deployment & { readonly provider: { readonly name: string } };

interface Parts<D extends Named> {
  readonly router: Router<D>;
  readonly chain: readonly Reached<D>[];
}

/** Finds the other names of the first group whose calls have not the fallbacks of the group. */
export function noteAliases(
  settings: Section,
  { aliases, router, first }: { aliases: ReadonlyMap<string, string>; router: Router; first: string },
): void {
  const listOf = (name: string) =>
    ([null, 'context', 'content'] as const).map((special) => {
      const fallbacks = fallbacksOf(router, special);
      return fallbacks.get(name) ?? fallbacks.get('*') ?? [];
    });
  const own = listOf(first);
  const others = [...aliases].flatMap(([alias, group]) =>
    group === first && alias !== first && JSON.stringify(listOf(alias)) !== JSON.stringify(own) ? [alias] : [],
  );
  if (others.length === 0) return;
  const sentence = `Calls of ${listed(others)}, another name of ${first}, do not have the fallbacks of ${first}: LiteLLM looks for those of the called name. Name it as group to import its chain.`;
  settings.findings.add('alias', settings.at('model_group_alias'), sentence, { loss: true });
}

/** The kinds whose answers without content LiteLLM takes for failures. */
const refusingEmpty: ReadonlySet<string> = new Set(['groq', 'gemini', 'vertex_ai']);

/** Finds the models whose answers LiteLLM returns to the caller even if they have no content. */
export function noteAnswers<D extends Named>(findings: FindingList, chain: readonly Reached<D>[]): void {
  const names = chain.flatMap(({ deployment, outcomes }) => {
    const goesOn = outcomes.some(
      ({ failing, retries, next }) => failing.condition === 'invalid_response' && (retries > 0 || next.length > 0),
    );
    return goesOn && !refusingEmpty.has(deployment.kind) ? [deployment.provider.name] : [];
  });
  if (names.length === 0) return;
  const sentence = `LiteLLM returns an answer of ${listed(names)} without content to the caller; the chain takes it for invalid_response, and goes on as after an answer that can't be read.`;
  findings.add('empty_answer', null, sentence, { loss: true });
}

/** Finds that LiteLLM waits for Retry-After where a group has one model, and does not wait where it has several. */
export function noteRetryAfter<D extends Named>(findings: FindingList, { router, chain }: Parts<D>): void {
  const retried = chain.filter(({ outcomes }) => outcomes.some(({ retries }) => retries > 0));
  const [alone, together] = [1, 0].map((most) => [
    ...new Set(retried.flatMap(({ deployment: { group } }) => (router.groups.get(group)!.length <= 1 === (most === 1) ? [group] : []))),
  ]) as [string[], string[]];
  const obeys = `Before each retry of ${listed(alone)}, LiteLLM waits as long as Retry-After says, up to 60 s, instead of its own wait; the chain at most as long as its rules.`;
  if (alone.length > 0) findings.add('waits', null, obeys, { loss: true });
  const hurries = `LiteLLM does not wait between calls of ${listed(together)}, which ${together.length === 1 ? 'has' : 'have'} several models; the chain does before a retry.`;
  if (together.length > 0) findings.add('waits', null, hurries, { loss: true });
}

/** Finds the models that LiteLLM leaves out in the middle of their retries, after more failures than the file allows. */
export function noteAllowedFails<D extends Named>(settings: Section, chain: readonly Reached<D>[]): void {
  const general = Number(settings.get('allowed_fails') ?? Number.POSITIVE_INFINITY);
  const policy = settings.optional('allowed_fails_policy')?.fields ?? {};
  for (const { deployment, outcomes } of chain)
    for (const { failing, retries } of outcomes) {
      const [name = ''] = classOf(failing, deployment.kind).names;
      const allowed = Number(policy[name.replace(/Retries$/, 'AllowedFails')] ?? general);
      if (!(retries > allowed)) continue;
      const provider = deployment.provider.name;
      const sentence = `LiteLLM leaves out ${provider} after more than ${plural(allowed, 'failure')} (allowed_fails), before its ${plural(retries, 'further call')} are made; the chain makes them all.`;
      settings.findings.add('cooldowns', null, sentence, { provider, ...aboutOf(failing), loss: true });
    }
}

/** Finds that LiteLLM calls the other models of a group before its fallbacks. */
export function noteWeightedFailover<D extends Named>(settings: Section, { router, chain }: Parts<D>): void {
  const field = settings.at('enable_weighted_failover');
  for (const { deployment } of chain) {
    const { group, provider } = deployment;
    const { length } = router.groups.get(group)!;
    if (length < 2) continue;
    const sentence = `With enable_weighted_failover, LiteLLM calls each of the ${length} models of ${group}, with its retries, before any fallback; the chain calls ${group} as without it.`;
    for (const condition of conditions)
      settings.findings.add('weighted_failover', field, sentence, { provider: provider.name, condition, loss: true });
  }
}

/**
 * Finds the models of which 1.110.2 treats a prompt that is too long like any other failure: those without context_window_fallbacks.
 * 1.106.2, as the chain, calls no later order for it, and no fallbacks at all if other groups have context_window_fallbacks.
 */
export function noteTooLong<D extends Named>(findings: FindingList, { router, chain, first }: Parts<D> & { first: string }): void {
  const hasList = (fallbacks: Router['general'], ...names: string[]) => names.some((name) => fallbacks.has(name));
  for (const { deployment } of chain) {
    const { group, kind, provider } = deployment;
    const isSpecial = classOf({ condition: 'context_length', status_code: 400 }, kind).special === 'context';
    if (!isSpecial || (router.contextWindow !== null && hasList(router.contextWindow, group, first, '*'))) continue;
    const hasOrders = new Set(router.groups.get(group)!.flatMap(({ order }) => order ?? [])).size > 1;
    if (!hasOrders && (router.contextWindow === null || !hasList(router.general, group, '*'))) continue;
    const usual = router.contextWindow === null ? 'skips the later orders of its group' : 'calls no fallbacks for it';
    const sentence = `If a prompt is too long for ${provider.name}, which has no context_window_fallbacks, LiteLLM 1.106.2, like the chain, ${usual}; 1.110.2 goes on as after any other failure.`;
    findings.add('too_long', 'context_window_fallbacks', sentence, {
      provider: provider.name,
      condition: 'context_length',
      status_codes: [400],
      loss: true,
    });
  }
}

/** Finds the models with fallbacks among their own parameters, which LiteLLM calls within each call of the model. */
export function noteOwnFallbacks<D extends Named & { readonly index: number }>(file: Section, chain: readonly Reached<D>[]): void {
  const entries = file.sections('model_list', 1000);
  for (const { index, provider } of chain.map(({ deployment }) => deployment)) {
    const parameters = entries[index]!.section('litellm_params');
    const { fallbacks } = parameters.fields;
    if (!Array.isArray(fallbacks) || fallbacks.length === 0) continue;
    const sentence = `LiteLLM calls the fallbacks among the parameters of ${provider.name} within each of its calls; the chain does not call them.`;
    for (const condition of conditions)
      file.findings.add('own_fallbacks', parameters.at('fallbacks'), sentence, { provider: provider.name, condition, loss: true });
  }
}

/** Finds models whose provider LiteLLM does not know, so that it never calls them. */
export function noteUnknown<D extends Named & { readonly unknown: string | undefined }>(
  findings: FindingList,
  chain: readonly Reached<D>[],
): void {
  for (const { provider, unknown } of chain.map(({ deployment }) => deployment)) {
    const sentence = `LiteLLM does not know the provider ${unknown}, so it never calls ${provider.name}; the chain calls it.`;
    if (unknown === undefined) continue;
    for (const condition of conditions)
      findings.add('unknown_provider', 'model_list', sentence, { provider: provider.name, condition, loss: true });
  }
}

/** Finds kinds whose errors were not measured, and those that lose a prompt by `drop_params`. */
export function noteKinds<D extends Named>(settings: Section, chain: readonly Reached<D>[]): void {
  const { findings } = settings;
  for (const { kind, provider } of chain.map(({ deployment }) => deployment)) {
    const sentence = `LiteLLM's errors of the kind ${kind} are taken for those of OpenAI's, which decides what of ${provider.name} it retries.`;
    if (!measuredKinds.has(kind)) findings.add('errors', null, sentence, { provider: provider.name, loss: true, measured: false });
    const lost = `With drop_params, LiteLLM calls ${provider.name} twice on status 422 and then ends with an error; the chain treats it like other invalid requests.`;
    if (settings.get('drop_params') === true && isLostOn422(kind))
      findings.add('drop_params', settings.at('drop_params'), lost, {
        provider: provider.name,
        condition: 'invalid_request',
        status_codes: [422],
        loss: true,
      });
  }
}

/** Says of the findings so far with what they were measured, if with less than the others: kinds with one version, and others not at all. */
export function noteMeasured<D extends Named>(findings: FindingList, chain: readonly Reached<D>[]): void {
  const namesOf = (isOf: (kind: string) => boolean) =>
    new Set(chain.flatMap(({ deployment: { kind, provider } }) => (isOf(kind) ? [provider.name] : [])));
  const isOnce = (kind: string) => measuredOnce.has(kind);
  findings.measuredWith('LiteLLM 1.106.2', namesOf(isOnce));
  const unmeasured = namesOf((kind) => !measuredKinds.has(kind) && !isOnce(kind));
  findings.measuredWith(null, unmeasured);
}

/** Finds that LiteLLM leaves out models before it calls them, if `enable_pre_call_checks` is set. */
export function noteChecks<D extends Named>(settings: Section, chain: readonly Reached<D>[]): void {
  if (settings.get('enable_pre_call_checks') !== true) return;
  const field = settings.at('enable_pre_call_checks');
  for (const { name: provider } of chain.map(({ deployment }) => deployment.provider)) {
    const sentence = `With enable_pre_call_checks, LiteLLM does not call ${provider} with a prompt that it knows to be too long for it; the chain calls it, and fails over when it refuses.`;
    settings.findings.add('pre_call_checks', field, sentence, { provider, condition: 'context_length', loss: true });
  }
}
