import type { Context } from '../context.ts';

const barWidth = 24;

/** A progress bar on the terminal. */
export type Progress = ReturnType<typeof createProgress>;

/** Makes a progress bar on standard error. Without a terminal, or with --quiet, it does nothing. */
export function createProgress({ quiet, err }: Context) {
  const isShown = !quiet && err.columns !== undefined;
  return {
    /** @param done from 0 to 1; undefined when the total is unknown */
    show(done: number | undefined, text: string): void {
      if (!isShown) return;
      const filled = Math.round((done ?? 0) * barWidth);
      const bar = done === undefined ? '' : `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${Math.floor(done * 100)}% `;
      err.status(bar + text);
    },
    /** Removes the bar, so that a line can be written. */
    clear(): void {
      if (isShown) err.status();
    },
  };
}
