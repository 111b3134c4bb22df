import { conditions } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import type { Finding } from '../model/finding.ts';
import type { Difference } from '../model/rehearsal.ts';
import type { TestResult } from '../model/test.ts';

/** What an explanation needs of a finding. */
type Reason = Pick<Finding, 'detail' | 'loss' | 'provider' | 'condition'>;

/** A difference with what explains it. */
export interface Explained {
  readonly difference: Difference;
  /** Sentences of the import and of the export that name its provider and its condition. */
  readonly because: readonly string[];
}

/**
 * The differences of a result, each with the findings that explain it: those that are a loss and are about its condition,
 * and about its provider or about all providers.
 */
export function explained(result: TestResult, findings: readonly Reason[], warnings: readonly Warning[]): Explained[] {
  const names = result.chain.providers.map(({ name }) => name);
  const all = [...findings, ...warnings.flatMap((warning) => findingsOf(warning, names))];
  return (result.differences ?? []).map((difference) => {
    const because = all.filter((finding) => explains(finding, difference)).map(({ detail }) => detail);
    return { difference, because: [...new Set(because)] };
  });
}

function explains({ loss, provider, condition }: Reason, difference: Difference): boolean {
  if (!loss || (provider === null && condition === null)) return false;
  return (provider === null || provider === difference.provider) && condition === difference.condition;
}

/** A warning of an export as findings: its field or its sentence names the providers, and its sentence the conditions. */
function findingsOf({ field, detail, loss }: Warning, names: readonly string[]): Reason[] {
  const words = ` ${detail.replace(/[,;.:]? /g, ' ')} `;
  const index = /^providers\.(\d+)(\.|$)/.exec(field ?? '')?.[1];
  const named = index === undefined ? names.filter((name) => words.includes(` ${name} `)) : [names[Number(index)] ?? null];
  return conditions
    .filter((condition) => new RegExp(`\\b${condition}\\b`).test(detail))
    .flatMap((condition) => (named.length === 0 ? [null] : named).map((provider) => ({ detail, loss, provider, condition })));
}
