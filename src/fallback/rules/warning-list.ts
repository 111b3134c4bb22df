import type { Warning } from '../model/common.ts';

/** Collects warnings; the same one is kept once. */
export class WarningList {
  readonly items: Warning[] = [];
  /** Whether a warning was a loss: an export that is not exact, because other calls are made or an import gives another chain. */
  hasLoss = false;

  add(code: string, field: string | null, detail: string): void {
    if (this.items.some((known) => known.code === code && known.field === field && known.detail === detail)) return;
    this.items.push({ code, field, detail });
  }

  /** Adds a warning about something that an export can't express. */
  loss(code: string, field: string | null, detail: string): void {
    this.hasLoss = true;
    this.add(code, field, detail);
  }
}
