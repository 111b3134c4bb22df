import { conditions } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import { explains } from '../model/finding.ts';
import type { Difference } from '../model/rehearsal.ts';
import type { PromptResult, TestResult } from '../model/test.ts';
import { isUnanswered, mayCause, promptsOf } from '../rules/causes.ts';
import { createEngine } from '../rules/engine.ts';
import { type Reason, reasonsOf } from '../rules/finding-list.ts';
import { type Apart, agreesAsDrawn, type Groups } from '../rules/rehearsal.ts';

/** A difference with what explains it. */
export interface Explained {
  readonly difference: Difference;
  /** Sentences of the import and of the export that are about its failure. */
  readonly because: readonly string[];
}

/** What a gateway draws: the providers of which it calls one for each prompt, and its balanced groups. */
interface Drawn {
  readonly apart?: Apart | undefined;
  readonly groups?: Groups;
}

/**
 * The differences of a result, each with the findings that explain it: those that are a loss and are about its failure. Which model of
 * a balanced group is drawn explains none, since they compare as equal. That only one of them is called explains what the chain would do
 * without the others, and nothing else.
 */
export function explained(
  result: TestResult,
  findings: readonly Reason[],
  warnings: readonly Warning[],
  { apart = new Map(), groups = new Map() }: Drawn = {},
): Explained[] {
  const engine = createEngine(result.chain);
  const names = result.chain.providers.map(({ name }) => name);
  const said = [...findings, ...warnings.flatMap((warning) => reasonsOf(warning, names))];
  const all = said.filter(({ kind }) => kind !== 'load_balanced');
  return (result.differences ?? []).map((difference) => {
    const prompts = promptsOf(difference, result.results);
    const isOfOne = isOfOneTarget(difference, prompts);
    const isAbout = (reason: Reason) =>
      explains(reason, difference) || (reason.loss && reason.provider === difference.provider && isOfStart(difference) && isAlways(reason));
    const isCause = (reason: Reason) => (reason.kind === 'one_target' ? isOfOne : mayCause(reason, difference, prompts, groups));
    const because = all.filter((reason) => isAbout(reason) && isCause(reason)).map(({ detail }) => detail);
    return { difference, because: [...new Set(because)] };
  });

  /** Whether the chain would have done in each prompt the same as the gateway if it had only the targets that were drawn. */
  function isOfOneTarget({ kind, provider, actual }: Difference, prompts: readonly PromptResult[]): boolean {
    // Draws do not call a provider that the chain leaves out.
    const isStray = kind === 'cooldown' && actual.calls.some((call) => call.provider === provider);
    const isDrawn = (prompt: PromptResult) => !isUnanswered(prompt) && agreesAsDrawn(engine, prompt, apart);
    return kind !== 'received' && !isStray && prompts.length > 0 && prompts.every(isDrawn);
  }

  /** Whether a sentence is about each failure of a provider, as of one that is never called: that explains as well why it gives no answer. */
  function isAlways({ detail, provider }: Reason): boolean {
    const about = new Set(all.flatMap((one) => (one.detail === detail && one.provider === provider ? [one.condition] : [])));
    return conditions.every((condition) => about.has(condition));
  }
}

/** Whether a difference is about the first call. Draws, and calls when the caller has its answer, follow no failure either. */
const isOfStart = ({ condition, kind, expected }: Difference): boolean =>
  condition === null && kind !== 'draws' && expected.calls.length > 0;
