import type { Check, Preset, PromptResult, Verdict } from '../model/test.ts';
import type { Engine, Next } from './engine.ts';
import type { Scene } from './plan.ts';
import { casesOf, unreachable, worstCase } from './reach.ts';
import { duration, listed, plural } from './wording.ts';

/** A finished prompt: its result, why it ended if it failed, and its scene. */
export interface FinishedPrompt {
  readonly result: PromptResult;
  readonly end: Next['end'];
  readonly scene: Scene;
}

/** The input of a verdict. */
export interface Judged {
  readonly engine: Engine;
  readonly preset: Preset | null;
  readonly done: readonly FinishedPrompt[];
  /** The tolerance per attempt beyond the time bound of a prompt, since real time is not exact. */
  readonly slackMs: number;
}

/** Presets in which the first provider fails, so that a backup must answer. */
const needBackup: ReadonlySet<Preset | null> = new Set(['coverage', 'primary_down', 'cascade']);

/** The checks of a finished run and the resulting verdict. */
export function judge(judged: Judged): { verdict: Verdict; checks: Check[] } {
  const { preset, done, engine } = judged;
  const lost = done.filter(({ result }) => !result.success);
  const checks = [
    check('all_served', lost.length === 0, servedSentence(done.length, lost.length)),
    ...(lost.length === 0 ? [] : [lossesCheck(lost)]),
    boundedCheck(judged),
    ...(preset === 'coverage' ? [rulesCheck(judged)] : []),
    ...(needBackup.has(preset) && engine.chain.providers.length > 1 ? [backupCheck(judged)] : []),
  ];
  const holds = checks.filter(({ advisory, name }) => !advisory && name !== 'all_served').every(({ passed }) => passed);
  if (!holds) return { verdict: 'fail', checks };
  if (lost.length > 0) return { verdict: 'safe', checks };
  return { verdict: checks.every(({ passed }) => passed) ? 'pass' : 'partial', checks };
}

/** How many of the prompts were served, as a sentence. */
function servedSentence(prompts: number, lost: number): string {
  if (lost === 0) return prompts === 1 ? 'The prompt was served.' : `All ${prompts} prompts were served.`;
  if (lost === prompts) return prompts === 1 ? 'The prompt was lost.' : `All ${prompts} prompts were lost.`;
  return `${lost} of ${prompts} prompts ${lost === 1 ? 'was' : 'were'} lost.`;
}

const check = (name: string, passed: boolean, detail: string, advisory = false): Check => ({ name, passed, advisory, detail });

/** Whether a failed prompt follows the rules: a rule or default ended it, or the plan left no provider. */
function isMeant({ end, scene }: FinishedPrompt): boolean {
  if (end === 'rule') return true;
  return end === 'exhausted' && scene.expects !== 'served';
}

function lossesCheck(lost: readonly FinishedPrompt[]): Check {
  const odd = lost.find((one) => !isMeant(one));
  if (odd === undefined) return check('losses_as_ruled', true, 'Every lost prompt ended as the rules say.');
  const why = odd.end === 'deadline' ? 'its deadline passed' : 'no provider was left to try';
  return check('losses_as_ruled', false, `The prompt with index ${odd.result.index} (${odd.scene.name}) was lost because ${why}.`);
}

function boundedCheck({ engine, done, slackMs }: Judged): Check {
  const { attempts, latency_ms } = worstCase(engine);
  const beyond = done.find(
    ({ result }) => result.attempts.length > attempts || result.latency_ms > latency_ms + slackMs * result.attempts.length,
  );
  return beyond === undefined
    ? check('bounded', true, `No prompt took more than ${plural(attempts, 'attempt')} and ${duration(latency_ms)}, the worst case.`)
    : check(
        'bounded',
        false,
        `The prompt with index ${beyond.result.index} took ${plural(beyond.result.attempts.length, 'attempt')} and ${duration(beyond.result.latency_ms)}; the worst case is ${plural(attempts, 'attempt')} and ${duration(latency_ms)}.`,
      );
}

function rulesCheck({ engine, done }: Judged): Check {
  const out = new Set(unreachable(engine));
  const alive = new Set(
    [...engine.chain.providers.keys()]
      .filter((provider) => !out.has(provider))
      .flatMap((provider) => casesOf(engine, provider).map(({ rule }) => rule)),
  );
  const hit = new Set(done.flatMap(({ result }) => result.attempts.map(({ rule }) => rule)));
  const missed = [...engine.chain.fallback_rules.keys()].filter((rule) => alive.has(rule) && !hit.has(rule));
  const detail =
    missed.length === 0
      ? 'Every rule that can fire has fired.'
      : `${listed(missed.map((rule) => `fallback_rules.${rule}`))} never fired; a larger prompt_count reaches more of the plan.`;
  return check('rules_exercised', missed.length === 0, detail, true);
}

function backupCheck({ engine, done }: Judged): Check {
  const first = engine.chain.providers[0]!.name;
  const served = done.some(({ result }) => result.served_by !== null && result.served_by !== first);
  return check('backup_served', served, served ? 'A backup served at least one prompt.' : 'No backup served a prompt.', true);
}
