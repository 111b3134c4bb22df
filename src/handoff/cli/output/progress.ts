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
export function createProgress({ quiet, terminal: { stderr } }: Context): Progress {
  if (quiet || !stderr.isTTY) return { show: () => undefined, clear: () => undefined };
  return {
    show(done, text) {
      const filled = Math.round((done ?? 0) * barWidth);
      const bar = done === undefined ? '' : `[${'#'.repeat(filled)}${'.'.repeat(barWidth - filled)}] ${Math.floor(done * 100)}% `;
      stderr.write(`\r${bar}${text}\x1b[K`);
    },
    clear: () => void stderr.write('\r\x1b[K'),
  };
}
