import { duration, plural } from '../../../../kit/wording.ts';
import { type Condition, type Cooldown, conditions, maxAllowedFails, maxCooldownSeconds, maxWindowMs } from '../../../model/chain.ts';
import { ofCooldowns } from '../../../model/finding.ts';
import { countedByDefault, usualStatus } from '../../conditions.ts';
import { cooldownOf } from '../../cooldown.ts';
import { listed } from '../../wording.ts';
import type { Section } from '../section.ts';
import type { Source } from '../target.ts';
import { classOf, type ErrorClass } from './errors.ts';

// How LiteLLM's router leaves out models for a while, as the source of version 1.106.2 says, and as interop/litellm-outages.test.ts measures with it.

/** LiteLLM's own numbers: of allowed failures, which it takes for none given, and of seconds. */
const usual = { fails: 3, seconds: 5 };

/** Whether LiteLLM counts a failure for its cool-downs. Errors without a name of their own come from its connections; it does not count them. */
const counts = ({ status, names, isPassedOn }: ErrorClass) =>
  isPassedOn !== true && ([401, 402, 404, 408, 429].includes(status) || (status >= 500 && names.length > 0));

const countedOf = (kind: string): Condition[] =>
  conditions.filter((condition) => counts(classOf({ condition, status_code: usualStatus(condition) }, kind)));

/** The names of the settings of cool-downs. */
export const cooldownNames = ['allowed_fails', 'allowed_fails_policy', 'cooldown_time'];

/** How long a file's router leaves out a model, in milliseconds. */
export const cooldownMsOf = ({ cooldown_time: given }: Readonly<Record<string, unknown>>): number =>
  (Number(given ?? 0) || usual.seconds) * 1000;

interface Cooled {
  readonly kind: string;
  readonly provider: { readonly name: string };
}

/** The cool-down of each model of a chain, by name, with findings about what a chain has not; empty if the file counts no failures. */
export function cooldownsOf(settings: Section, models: readonly Cooled[]): ReadonlyMap<string, Omit<Cooldown, 'conditions'>> {
  const policy = settings.optional('allowed_fails_policy');
  const isRead = settings.at('allowed_fails').startsWith('router_settings');
  const given = isRead ? settings.count('allowed_fails', maxAllowedFails) : undefined;
  const time = settings.number('cooldown_time', Number.MAX_SAFE_INTEGER) || usual.seconds;
  if (policy === undefined && (given === undefined || given === usual.fails)) {
    const why = `LiteLLM takes ${usual.fails}, and any value of litellm_settings, for its default, and then counts no failures`;
    if (settings.get('allowed_fails') !== undefined) settings.leaveOut('allowed_fails', why, 'left_out', { loss: true });
    if (settings.get('cooldown_time') !== undefined)
      settings.leaveOut(
        'cooldown_time',
        'without allowed_fails LiteLLM leaves out models by rules that a chain does not have',
        'left_out',
        {
          loss: true,
        },
      );
    const rules = `Without allowed_fails, LiteLLM leaves out a model for ${duration(time * 1000)} at once after status 401 or 404; if its group has others, also after 402 or 429, or if more than half of at least 5 calls within a minute failed; a model that is alone if all of at least 1000 failed. A chain has no such rules.`;
    settings.findings.add('cooldowns', null, rules, { loss: true });
    return new Map();
  }
  const seconds = Math.min(Math.ceil(time), maxCooldownSeconds);
  const window_ms = Math.min(Math.max(Math.round(time * 1000), 1), maxWindowMs);
  if (seconds !== time || window_ms !== time * 1000)
    settings.note('reduced', 'cooldown_time', `becomes ${duration(seconds * 1000)}, with failures counted within ${duration(window_ms)}.`, {
      loss: true,
      measured: false,
    });
  return new Map(
    models.map(({ kind, provider: { name } }) => {
      const limits = countedOf(kind).map((condition) => {
        const [error = ''] = classOf({ condition, status_code: usualStatus(condition) }, kind).names;
        return { condition, fails: policy?.count(error.replace(/Retries$/, 'AllowedFails'), maxAllowedFails) ?? given ?? usual.fails };
      });
      const least = Math.min(...limits.map(({ fails }) => fails));
      const [counted, others] = [true, false].map((isLeast) =>
        limits.flatMap(({ condition, fails }) => ((fails === least) === isLeast ? [condition] : [])),
      ) as [Condition[], Condition[]];
      const sentence = `LiteLLM counts every failure of ${name} and allows more of them on ${listed(others)} (allowed_fails_policy); the cool-down of the chain only counts the others, of which it allows ${plural(least, 'failure')}.`;
      if (others.length > 0)
        settings.findings.add('cooldowns', settings.at('allowed_fails_policy'), sentence, { provider: name, loss: true });
      return [name, { allowed_fails: least, window_ms, seconds, ...(isSame(counted, countedByDefault) ? {} : { conditions: counted }) }];
    }),
  );
}

const isSame = (some: readonly Condition[], others: readonly Condition[]) =>
  conditions.every((condition) => some.includes(condition) === others.includes(condition));

/** The settings of an export: without a cool-down LiteLLM's are switched off, since a chain without one tries its providers anew for each prompt. */
export function cooldownSettings({ chain, providers, warnings }: Source, kinds: readonly (string | null)[]): Record<string, unknown> {
  const cooldowns = chain.providers.map((provider) => cooldownOf(chain, provider));
  const index = cooldowns.findIndex((cooldown) => cooldown !== null);
  const cooldown = cooldowns[index];
  if (cooldown === undefined || cooldown === null) return { disable_cooldowns: true };
  const { allowed_fails, window_ms, seconds } = cooldown;
  const unlike = chain.providers.filter((_, other) => JSON.stringify(cooldowns[other]) !== JSON.stringify(cooldown));
  const one = `LiteLLM has one number of allowed failures for models that are alone in their group; that of ${chain.providers[index]!.name} also holds for ${listed(unlike.map(({ name }) => name))}.`;
  if (unlike.length > 0) warnings.loss(ofCooldowns, 'cooldown', one);
  if (window_ms !== seconds * 1000)
    warnings.loss(
      ofCooldowns,
      'cooldown',
      `LiteLLM counts failures as long as its cool-downs last, ${duration(seconds * 1000)}; the chain for ${duration(window_ms)}.`,
    );
  for (const [other, { provider }] of providers.entries()) {
    const [theirs, ours] = [countedOf(kinds[other] ?? 'openai'), cooldown.conditions ?? countedByDefault];
    const apart = conditions.filter((condition) => theirs.includes(condition) !== ours.includes(condition));
    const sentence = `Of the failures of ${provider.name}, LiteLLM counts ${listed(theirs)} for its cool-downs; the chain counts ${listed(ours)}.`;
    if (apart.length > 0) warnings.loss(ofCooldowns, 'cooldown', sentence);
  }
  // LiteLLM takes its own default for none given, but not beside a policy.
  const policy = { InternalServerErrorAllowedFails: allowed_fails };
  return { allowed_fails, ...(allowed_fails === usual.fails ? { allowed_fails_policy: policy } : {}), cooldown_time: seconds };
}
