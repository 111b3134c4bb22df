import { duration, plural } from '../../kit/wording.ts';
import type { Agreement } from '../model/rehearsal.ts';
import type { Check, Mode, Preset, Verdict } from '../model/test.ts';
import type { Engine } from './engine.ts';
import { reachable, worstCase } from './reach.ts';
import type { PromptOutcome, Tally } from './statistics.ts';
import { listed, times } from './wording.ts';

interface Judged {
  readonly engine: Engine;
  readonly mode: Mode;
  readonly preset: Preset | null;
  readonly tally: Tally;
  /** The tolerance per attempt beyond the time bound of a prompt, since real time is not exact. */
  readonly slackMs: number;
  /** Of a rehearsal: how far the gateway agrees, and why it is not usable. */
  readonly rehearsed?: (Agreement & { readonly problem: string | null }) | undefined;
}

/** Presets in which the first provider fails, so that a backup must answer. */
const needBackup: ReadonlySet<Preset | null> = new Set(['coverage', 'primary_down', 'cascade']);

/** The checks of a finished run and the resulting verdict. */
export function judge(judged: Judged): { verdict: Verdict; checks: Check[] } {
  const { mode, preset, tally, engine, rehearsed } = judged;
  const done = tally.prompts.toSorted((one, other) => one.index - other.index);
  const lost = done.filter(({ success }) => !success);
  const checks = [
    check('all_served', lost.length === 0, servedSentence(done.length, lost.length)),
    ...(rehearsed === undefined ? [] : [agreementCheck(rehearsed), testedCheck(rehearsed)]),
    ...(lost.length === 0 ? [] : [lossesCheck(lost)]),
    // A gateway that agrees is bounded like the chain; its waits are its own.
    ...(rehearsed === undefined ? [boundedCheck(judged, done)] : []),
    ...(preset === 'coverage' ? [rulesCheck(judged)] : []),
    ...(needBackup.has(preset) && engine.chain.providers.length > 1 ? [backupCheck(judged)] : []),
    ...(mode === 'drill' || mode === 'live' ? [answersCheck(judged)] : []),
  ];
  if (rehearsed !== undefined && (rehearsed.differing > 0 || rehearsed.problem !== null)) return { verdict: 'differs', checks };
  const holds = checks.filter(({ advisory, name }) => !advisory && name !== 'all_served').every(({ passed }) => passed);
  if (!holds) return { verdict: 'fail', checks };
  if (lost.length > 0) return { verdict: 'lost_as_ruled', checks };
  return { verdict: checks.every(({ passed }) => passed) ? 'pass' : 'partial', checks };
}

function agreementCheck({ prompts, differing, problem }: NonNullable<Judged['rehearsed']>): Check {
  const detail =
    differing === 0
      ? 'The gateway did what the chain says.'
      : `In ${differing} of ${plural(prompts, 'prompt')} the gateway did not do what the chain says.`;
  return check('agrees', differing === 0 && problem === null, problem === null ? detail : `${problem} ${detail}`);
}

function testedCheck({ not_tested }: NonNullable<Judged['rehearsed']>): Check {
  const untested = `In ${plural(not_tested, 'prompt')} a call should have failed, and the gateway made none that did; they test nothing.`;
  return check('tested', not_tested === 0, not_tested === 0 ? 'Every failure of the plan has met a call.' : untested, true);
}

/** How many of the prompts were served, as a sentence. */
function servedSentence(prompts: number, lost: number): string {
  if (lost === 0) return prompts === 1 ? 'The prompt was served.' : `All ${prompts} prompts were served.`;
  if (lost === prompts) return prompts === 1 ? 'The prompt was lost.' : `All ${prompts} prompts were lost.`;
  return `${lost} of ${prompts} prompts ${lost === 1 ? 'was' : 'were'} lost.`;
}

const check = (name: string, passed: boolean, detail: string, advisory = false): Check => ({ name, passed, advisory, detail });

/** Whether a failed prompt follows the rules: a rule or default ended it, or the plan left no provider. */
function isIntended({ end, scene }: PromptOutcome): boolean {
  if (end === 'rule') return true;
  return end === 'exhausted' && scene.expects !== 'served';
}

function lossesCheck(lost: readonly PromptOutcome[]): Check {
  const unintended = lost.find((one) => !isIntended(one));
  if (unintended === undefined) return check('losses_as_ruled', true, 'Every lost prompt ended as the rules say.');
  const why = unintended.end === 'deadline' ? 'its deadline passed' : 'no provider was left to try';
  return check('losses_as_ruled', false, `The prompt with index ${unintended.index} (${unintended.scene.name}) was lost because ${why}.`);
}

function boundedCheck({ engine, slackMs }: Judged, done: readonly PromptOutcome[]): Check {
  const worst = worstCase(engine);
  const bound = `${plural(worst.attempts, 'attempt')} and ${duration(worst.latency_ms)}`;
  const beyond = done.find(({ attempts, latency_ms }) => attempts > worst.attempts || latency_ms > worst.latency_ms + slackMs * attempts);
  if (beyond === undefined) return check('bounded', true, `No prompt took more than ${bound}, the worst case.`);
  const { index, attempts, latency_ms } = beyond;
  const took = `${plural(attempts, 'attempt')} and ${duration(latency_ms)}`;
  return check('bounded', false, `The prompt with index ${index} took ${took}; the worst case is ${bound}.`);
}

function rulesCheck({ engine, tally }: Judged): Check {
  const applicable = new Set(reachable(engine).flatMap((rulings) => rulings.map(({ rule }) => rule)));
  const missed = tally.figures().rules.flatMap(({ never_hit }, rule) => (never_hit && applicable.has(rule) ? [rule] : []));
  const detail =
    missed.length === 0
      ? 'Every rule that can fire has fired.'
      : `${listed(missed.map((rule) => `fallback_rules.${rule}`))} never fired; a larger prompt_count reaches more of the plan.`;
  return check('rules_exercised', missed.length === 0, detail, true);
}

function backupCheck({ engine, tally }: Judged): Check {
  const first = engine.chain.providers[0]!.name;
  const served = tally.prompts.some(({ served_by }) => served_by !== null && served_by !== first);
  return check('backup_served', served, served ? 'A backup served at least one prompt.' : 'No backup served a prompt.', true);
}

/**
 * Whether every provider that was really called has answered. If one has not, the verdict is at most `partial`; if that is
 * the first one, or its key was refused every time, the chain does not do what it is for, and the verdict is `fail`.
 */
function answersCheck({ engine, tally }: Judged): Check {
  const silent = engine.chain.providers.flatMap(({ name }, index) => {
    const { calls, answers, failures } = tally.reached.get(name)!;
    if (calls === 0 || answers > 0) return [];
    const reasons = [...failures.keys()];
    const isGrave = index === 0 || reasons.every((reason) => reason === 'auth_error');
    return [{ isGrave, detail: `${name} was called ${times(calls)} and never answered, because of ${listed(reasons)}.` }];
  });
  if (silent.length === 0) return check('providers_answer', true, 'Every provider that was called has answered.');
  return check('providers_answer', false, silent.map(({ detail }) => detail).join(' '), !silent.some(({ isGrave }) => isGrave));
}
