import { type Condition, conditions } from '../model/chain.ts';
import type { Warning } from '../model/common.ts';
import type { Finding } from '../model/finding.ts';

/** What a finding is about, and whether it is a loss. */
export interface Concern {
  readonly provider?: string;
  readonly condition?: Condition;
  readonly loss?: boolean;
  /** Whether it only concerns streamed answers. */
  readonly stream?: true;
}

/** Collects the findings of an import; the same one is kept once. */
export class FindingList {
  readonly items: Finding[] = [];
  readonly #seen = new Set<string>();
  readonly #measured: string | null;

  /** @param measured the program and its versions with which losses were measured */
  constructor(measured: string | null = null) {
    this.#measured = measured;
  }

  add(kind: string, field: string | null, detail: string, { provider, condition, loss = false, stream }: Concern = {}): void {
    const measured = loss ? this.#measured : null;
    const about = { provider: provider ?? null, condition: condition ?? null, loss, measured, ...(stream && { stream }) };
    const finding = { kind, field, line: null, detail, ...about };
    const key = JSON.stringify(finding);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.items.push(finding);
  }
}

/** What a finding says, and of which failures. */
export type Reason = Pick<Finding, 'detail' | 'loss' | 'provider' | 'condition' | 'stream'> & Partial<Pick<Finding, 'kind'>>;

/** A warning of an export as findings: its field or its sentence names the providers, and its sentence the conditions. */
export function reasonsOf({ field, detail, loss }: Warning, names: readonly string[]): Reason[] {
  const words = ` ${detail.replace(/[,;.:]? /g, ' ')} `;
  const index = /^providers\.(\d+)(\.|$)/.exec(field ?? '')?.[1];
  const named = index === undefined ? names.filter((name) => words.includes(` ${name} `)) : [names[Number(index)] ?? null];
  return conditions
    .filter((condition) => new RegExp(`\\b${condition}\\b`).test(detail))
    .flatMap((condition) => (named.length === 0 ? [null] : named).map((provider) => ({ detail, loss, provider, condition })));
}
