import type { Warning } from '../model/common.ts';

/** Collects warnings; the same one is kept once. */
export class WarningList {
  readonly items: Warning[] = [];
  /** Whether a warning is a loss: other calls are made, or an import gives another chain. */
  get hasLoss(): boolean {
    return this.items.some(({ loss }) => loss);
  }

  add(code: string, field: string | null, detail: string, loss = false): void {
    if (this.items.some((known) => known.code === code && known.field === field && known.detail === detail)) return;
    this.items.push({ code, field, detail, loss });
  }

  /** Adds a warning about something that can't be expressed. */
  loss(code: string, field: string | null, detail: string): void {
    this.add(code, field, detail, true);
  }
}
