import { conditions } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import { explains } from '../model/finding.ts';
import type { Difference } from '../model/rehearsal.ts';
import type { TestResult } from '../model/test.ts';
import { type Reason, reasonsOf } from '../rules/finding-list.ts';

/** A difference with what explains it. */
export interface Explained {
  readonly difference: Difference;
  /** Sentences of the import and of the export that are about its failure. */
  readonly because: readonly string[];
}

/**
 * The differences of a result, each with the findings that explain it: those that are a loss and are about its failure. Which model of
 * a balanced group is drawn explains none, since they compare as equal.
 */
export function explained(result: TestResult, findings: readonly Reason[], warnings: readonly Warning[]): Explained[] {
  const names = result.chain.providers.map(({ name }) => name);
  const said = [...findings, ...warnings.flatMap((warning) => reasonsOf(warning, names))];
  const all = said.filter(({ kind }) => kind !== 'load_balanced');
  return (result.differences ?? []).map((difference) => {
    const isAbout = (reason: Reason) =>
      explains(reason, difference) ||
      (reason.loss && difference.condition === null && difference.kind !== 'draws' && isAlways(reason.detail, difference.provider));
    const because = all.filter(isAbout).map(({ detail }) => detail);
    return { difference, because: [...new Set(because)] };
  });

  /** Whether a sentence is about each failure of a provider, as of one that is never called: that explains as well why it gives no answer. */
  function isAlways(detail: string, provider: string): boolean {
    const about = new Set(all.flatMap((one) => (one.detail === detail && one.provider === provider ? [one.condition] : [])));
    return conditions.every((condition) => about.has(condition));
  }
}
