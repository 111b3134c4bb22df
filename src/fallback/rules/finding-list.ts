import type { Condition } from '../model/chain.ts';
import type { Finding } from '../model/finding.ts';

/** What a finding is about, and whether it is a loss. */
export interface Concern {
  readonly provider?: string;
  readonly condition?: Condition;
  readonly loss?: boolean;
}

/** Collects the findings of an import; the same one is kept once. */
export class FindingList {
  readonly items: Finding[] = [];
  readonly #seen = new Set<string>();

  add(kind: string, field: string | null, detail: string, { provider, condition, loss = false }: Concern = {}): void {
    const finding = { kind, field, line: null, detail, provider: provider ?? null, condition: condition ?? null, loss };
    const key = JSON.stringify(finding);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.items.push(finding);
  }
}
