import type { Context } from '../context.ts';

/** A progress bar on the terminal; without a terminal it does nothing. */
export interface Progress {
  /** @param done from 0 to 1; undefined when the total is unknown */
  show(done: number | undefined, text: string): void;
  /** Removes the bar, so that a line can be written. */
  clear(): void;
}

const barWidth = 24;

/** Makes a progress bar on standard error, unless --quiet is set. */
export function createProgress({ quiet, err }: Context): Progress {
  if (quiet || err.columns === undefined) return { show: () => undefined, clear: () => undefined };
  return {
    show(done, text) {
      const filled = Math.round((done ?? 0) * barWidth);
      const bar = done === undefined ? '' : `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${Math.floor(done * 100)}% `;
      err.status(bar + text);
    },
    clear: () => err.status(),
  };
}
