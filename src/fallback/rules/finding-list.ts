import { type Condition, conditions } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import { type Concerned, type Finding, ofCooldowns } from '../model/finding.ts';

/** What a finding is about, and whether it is a loss. */
export interface Concern {
  readonly provider?: string | null;
  readonly condition?: Condition | null;
  readonly loss?: boolean;
  /** False for a loss that follows from what a chain can have, or from what nobody has measured. */
  readonly measured?: false;
  /** Whether it only concerns streamed answers. */
  readonly stream?: true;
  /** The statuses that it concerns; all if left out. */
  readonly status_codes?: readonly number[];
}

/** Collects the findings of an import; the same one is kept once, with the statuses of all. */
export class FindingList {
  readonly items: Finding[] = [];
  readonly #seen = new Map<string, Finding>();
  readonly #measured: string | null;

  /** @param measured the program and its versions with which losses were measured */
  constructor(measured: string | null = null) {
    this.#measured = measured;
  }

  add(kind: string, field: string | null, detail: string, concern: Concern = {}): void {
    const { provider, condition, loss = false, stream, status_codes } = concern;
    const measured = loss && concern.measured !== false ? this.#measured : null;
    const about = { provider: provider ?? null, condition: condition ?? null, loss, measured, ...(stream && { stream }) };
    const finding: Finding = { kind, field, line: null, detail, ...about };
    const key = JSON.stringify(finding);
    const known = this.#seen.get(key);
    if (known === undefined) {
      if (status_codes !== undefined) finding.status_codes = [...status_codes];
      this.#seen.set(key, finding);
      this.items.push(finding);
    } else if (status_codes === undefined) delete known.status_codes;
    else if (known.status_codes !== undefined) known.status_codes = [...new Set([...known.status_codes, ...status_codes])];
  }

  /** Says with what the losses of some providers were measured, if with less than the others; null for nothing. */
  measuredWith(measured: string | null, providers: ReadonlySet<string>): void {
    for (const finding of this.items)
      if (finding.measured !== null && finding.provider !== null && providers.has(finding.provider)) finding.measured = measured;
  }
}

/** What a finding says, and of which failures. */
export type Reason = Pick<Finding, 'detail' | 'loss' | keyof Concerned> & Partial<Pick<Finding, 'kind'>>;

/**
 * A warning of an export as findings: its field or its sentence names the providers, all if neither does, and its sentence the conditions,
 * unless it is about cool-downs as such.
 */
export function reasonsOf({ code, field, detail, loss }: Warning, names: readonly string[]): Reason[] {
  const words = ` ${detail} `.replace(/[,;.:]? /g, ' ');
  const index = /^providers\.(\d+)(\.|$)/.exec(field ?? '')?.[1];
  const inWords = names.filter((name) => words.includes(` ${name} `));
  const named = index !== undefined ? names.slice(Number(index), Number(index) + 1) : inWords.length > 0 ? inWords : names;
  if (code === ofCooldowns) return named.map((provider) => ({ kind: code, detail, loss, provider, condition: null }));
  return conditions
    .filter((condition) => new RegExp(`\\b${condition}\\b`).test(detail))
    .flatMap((condition) => named.map((provider) => ({ detail, loss, provider, condition })));
}
