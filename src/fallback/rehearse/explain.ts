import { conditions } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import { explains } from '../model/finding.ts';
import type { Difference } from '../model/rehearsal.ts';
import type { TestResult } from '../model/test.ts';
import { createEngine } from '../rules/engine.ts';
import { type Reason, reasonsOf } from '../rules/finding-list.ts';
import { type Apart, agreesAsDrawn } from '../rules/rehearsal.ts';

/** A difference with what explains it. */
export interface Explained {
  readonly difference: Difference;
  /** Sentences of the import and of the export that are about its failure. */
  readonly because: readonly string[];
}

/**
 * The differences of a result, each with the findings that explain it: those that are a loss and are about its failure. Which model of
 * a balanced group is drawn explains none, since they compare as equal. That only one of them is called explains what the chain would do
 * without the others, and nothing else.
 * @param apart the providers of which the gateway draws one for each prompt
 */
export function explained(
  result: TestResult,
  findings: readonly Reason[],
  warnings: readonly Warning[],
  apart: Apart = new Map(),
): Explained[] {
  const engine = createEngine(result.chain);
  const names = result.chain.providers.map(({ name }) => name);
  const said = [...findings, ...warnings.flatMap((warning) => reasonsOf(warning, names))];
  const all = said.filter(({ kind }) => kind !== 'load_balanced');
  return (result.differences ?? []).map((difference) => {
    const isAbout = (reason: Reason) =>
      explains(reason, difference) ||
      (reason.loss && difference.condition === null && difference.kind !== 'draws' && isAlways(reason.detail, difference.provider));
    const isOfOne = isOfOneTarget(difference);
    const because = all.filter((reason) => isAbout(reason) && (reason.kind !== 'one_target' || isOfOne)).map(({ detail }) => detail);
    return { difference, because: [...new Set(because)] };
  });

  /** Whether the chain would have done the same as the gateway if it had only the targets that were drawn. */
  function isOfOneTarget({ kind, first_index }: Difference): boolean {
    const prompt = result.results.find(({ index }) => index === first_index);
    return kind !== 'received' && prompt !== undefined && agreesAsDrawn(engine, prompt, apart);
  }

  /** Whether a sentence is about each failure of a provider, as of one that is never called: that explains as well why it gives no answer. */
  function isAlways(detail: string, provider: string): boolean {
    const about = new Set(all.flatMap((one) => (one.detail === detail && one.provider === provider ? [one.condition] : [])));
    return conditions.every((condition) => about.has(condition));
  }
}
