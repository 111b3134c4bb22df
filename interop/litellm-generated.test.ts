import assert from 'node:assert/strict';
import { after, test } from 'node:test';

import type { ChainDefinition, ChainRequest } from '../src/fallback/model/chain.ts';
import { define } from '../src/fallback/rules/chain.ts';
import { type Random, seeded } from '../src/fallback/rules/random.ts';
import { importChain } from '../src/fallback/rules/targets/import.ts';
import { ServiceError } from '../src/kit/errors.ts';
import { isFull } from './extent.ts';
import { startSceneRouter } from './litellm.ts';
import { failures, healthyStreams, judge, type Model, streamFailures } from './scenes.ts';

const router = await startSceneRouter();
after(() => router.stop());

const count = Number(process.env.GENERATED ?? (isFull ? 200 : 40));
const triedOfEach = 3;
/** How long files are tried, in milliseconds; on a slow machine they are fewer. */
const longestMs = isFull ? 150_000 : 60_000;
/** Fixed, so that a run fails only by a change; `SEED=N` and `SEED=random` look further. */
const firstSeed = process.env.SEED === 'random' ? Math.floor(Math.random() * 1_000_000) : Number(process.env.SEED ?? 70_000);

interface Entry {
  model_name: string;
  litellm_params: Record<string, unknown>;
}

/** Other kinds of providers than OpenAI, whose errors LiteLLM reads in ways of their own. */
const kinds = ['anthropic', 'azure', 'mistral', 'groq', 'deepseek', 'together_ai', 'openrouter', 'gemini'];

/** The model and the address of a deployment, which names its host. */
const deployed = (kind: string, name: string) => ({
  model: `${kind}/${name}`,
  api_base: `http://${name}.test${['anthropic', 'azure', 'gemini'].includes(kind) ? '' : '/v1'}`,
});

/** Kinds whose streams the fake providers have. */
const streamed = kinds.filter((kind) => kind !== 'gemini');

/** A configuration as people could write it: groups, weights, orders, patterns, aliases, fallbacks of all kinds and retry policies, in both sections. */
function generated(seed: number, known = kinds) {
  const random: Random = seeded(seed);
  const below = (most: number) => Math.floor(random() * most);
  const chance = (share: number) => random() < share;
  const pick = <T>(items: readonly T[]): T => items[below(items.length)]!;
  const groups = ['ada', chance(0.2) ? 'openai/bob' : 'bob', 'cid', chance(0.2) ? 'gpt-dan' : 'dan', 'eve'].slice(0, 2 + below(4));
  const model_list = groups.flatMap((group): Entry[] => {
    const size = chance(0.7) ? 1 : 2 + below(2);
    const style = size === 1 ? 'plain' : pick(['plain', 'weight', 'some weight', 'order', 'some order'] as const);
    return Array.from({ length: size }, (_, index) => ({
      model_name: group,
      litellm_params: {
        ...deployed(chance(0.6) ? 'openai' : pick(known), `${group.replace('/', '.')}-${index}`),
        api_key: 'sk-any',
        ...(chance(0.15) ? { num_retries: below(4) } : {}),
        ...(chance(0.1) ? { max_retries: 1 + below(3) } : {}),
        ...(style === 'weight' || (style === 'some weight' && index === 0) ? { weight: 1 + below(3) } : {}),
        ...(style === 'order' || (style === 'some order' && index === 0) ? { order: index + 1 } : {}),
      },
    }));
  });
  // A pattern, an alias, and a group that the file does not have.
  if (chance(0.2))
    model_list.push({ model_name: 'any/*', litellm_params: { model: 'openai/*', api_base: 'http://gus-0.test/v1', api_key: 'sk-any' } });
  const alias = chance(0.15) ? { fay: pick(groups) } : {};
  const others = [
    ...(model_list.at(-1)!.model_name === 'any/*' ? ['any/gus-0'] : []),
    ...Object.keys(alias),
    ...(chance(0.1) ? ['nobody'] : []),
  ];
  const backups = () => [...groups, ...others].filter(() => chance(0.5));
  /** A group by the name that its fallbacks may also have. */
  const keyOf = (group: string) => (chance(0.7) ? group : group === 'openai/bob' ? 'bob' : group === 'gpt-dan' ? 'openai/gpt-dan' : group);
  const maps = (share: number) =>
    groups.flatMap((group) => {
      const list = backups().filter((one) => one !== group);
      return chance(share) && list.length > 0 ? [{ [keyOf(group)]: list }] : [];
    });
  const policy = () =>
    Object.fromEntries(
      ['RateLimit', 'Timeout', 'Authentication', 'BadRequest', 'InternalServer', 'ServiceUnavailable', 'ContentPolicyViolation'].flatMap(
        (name) => (chance(0.3) ? [[`${name}ErrorRetries`, below(4)]] : []),
      ),
    );
  const some = <T extends object>(share: number, name: string, value: T) =>
    chance(share) && Object.keys(value).length > 0 ? { [name]: value } : {};
  const wide = () => (chance(0.1) ? [{ '*': backups() }] : []);
  /** Settings that may be in either section, and those of the router alone. */
  const either = () => ({
    ...(chance(0.8) ? { num_retries: below(4) } : {}),
    ...some(0.9, 'fallbacks', [...wide(), ...maps(0.6)]),
    ...some(0.4, 'context_window_fallbacks', maps(0.5)),
    ...some(0.4, 'content_policy_fallbacks', maps(0.5)),
    ...some(0.3, 'default_fallbacks', backups()),
    ...(chance(0.1) ? { max_fallbacks: 1 + below(3) } : {}),
  });
  const routers = {
    ...some(0.4, 'retry_policy', policy()),
    ...some(0.3, 'model_group_retry_policy', { [pick(groups)]: policy() }),
    ...some(1, 'model_group_alias', alias),
    ...(chance(0.8) ? { disable_cooldowns: true } : {}),
  };
  const section = pick(['router', 'router', 'litellm', 'both'] as const);
  const unset = chance(0.5) ? { fallbacks: [], num_retries: null } : {};
  const router_settings = {
    ...(section === 'litellm' ? {} : either()),
    ...(section === 'both' ? unset : {}),
    ...routers,
  };
  const litellm_settings =
    section === 'router' ? {} : { ...either(), ...(chance(0.2) ? { retry_policy: policy(), disable_cooldowns: true } : {}) };
  return { group: groups[0]!, model_list, router_settings, litellm_settings };
}

/** The models of a chain's providers. */
function modelsOf(chain: ChainDefinition, { model_list }: { model_list: readonly Entry[] }): Map<string, Model> {
  return new Map(
    chain.providers.map(({ name, api_base, model_id }): [string, Model] => {
      const host = new URL(api_base!).hostname;
      const entry = model_list.find(({ litellm_params }) => new URL(String(litellm_params.api_base)).hostname === host)!;
      return [name, { host, pool: `${model_id.split('-')[0]} ${entry.litellm_params.order ?? ''}` }];
    }),
  );
}

test(`LiteLLM does with up to ${count} generated files what the imported chain says, except for what a finding names [F164]`, async () => {
  const unexplained: string[] = [];
  let [scenes, excused, seed] = [0, 0, firstSeed];
  const until = performance.now() + longestMs;
  for (; seed < firstSeed + count && performance.now() < until; seed += 1) {
    const { group, ...value } = generated(seed);
    const { request, findings } = importChain({ format: 'litellm', value, group });
    const chain = define(request as ChainRequest);
    const models = modelsOf(chain, value);
    // A few failures of each file; all files together have each of them often.
    const random = seeded(seed, 1);
    const tried = failures.toSorted(() => random() - 0.5).slice(0, triedOfEach);
    const fresh = value.router_settings.disable_cooldowns !== true;
    const found = await judge(
      router,
      { name: `seed ${seed}`, chain, findings, models },
      { config: JSON.stringify(value), group, fresh, tried },
    );
    scenes += found.scenes;
    excused += found.excused;
    unexplained.push(...found.unexplained);
  }
  console.log(`Seeds ${firstSeed} to ${seed - 1}: ${scenes} scenes, ${excused} differences with a finding.`);
  assert.ok(scenes > 0);
  assert.deepEqual(unexplained, []);
});

/** The chain of a file; null for one that needs more rules than a chain may have. */
function importOf(value: object, group: string) {
  try {
    const { request, findings } = importChain({ format: 'litellm', value, group });
    return { chain: define(request as ChainRequest), findings };
  } catch (error) {
    if (error instanceof ServiceError && error.message.includes('in so many ways')) return null;
    throw error;
  }
}

test(`LiteLLM does with the streams and tools of up to ${count} generated files what the imported chain says, except for what a finding names [F164]`, async () => {
  const unexplained: string[] = [];
  let [scenes, excused, tooMany, seed] = [0, 0, 0, firstSeed];
  const until = performance.now() + longestMs;
  for (; seed < firstSeed + count && performance.now() < until; seed += 1) {
    const { group, ...value } = generated(seed, streamed);
    const random = seeded(seed, 2);
    const [hasTools, isLimited] = [random() < 0.5, random() < 0.5];
    if (isLimited) Object.assign(value.router_settings, { stream_timeout: 5 });
    const imported = importOf(value, group);
    if (imported === null) {
      tooMany += 1;
      continue;
    }
    const { chain, findings } = imported;
    const shuffled = <T>(items: readonly T[]) => items.toSorted(() => random() - 0.5);
    // Whole refusals come before a stream, and broken answers are those of streams.
    const whole = failures.filter(({ condition }) => condition !== 'invalid_response');
    const tried = [...shuffled(streamFailures(hasTools, isLimited)).slice(0, triedOfEach), ...shuffled(whole).slice(0, 1)];
    const found = await judge(
      router,
      { name: `seed ${seed}`, chain, findings, models: modelsOf(chain, value) },
      {
        config: JSON.stringify(value),
        group,
        fresh: value.router_settings.disable_cooldowns !== true,
        tried,
        streams: healthyStreams(hasTools),
      },
    );
    scenes += found.scenes;
    excused += found.excused;
    unexplained.push(...found.unexplained);
  }
  console.log(
    `Seeds ${firstSeed} to ${seed - 1}: ${scenes} streamed scenes, ${excused} differences with a finding; ${tooMany} files need more rules than a chain may have.`,
  );
  assert.ok(scenes > 0);
  assert.deepEqual(unexplained, []);
});
