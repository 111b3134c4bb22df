import type { Context } from '../context.ts';

/** A bar on the terminal that shows how much of something is done; nothing where there is no terminal. */
export interface Progress {
  /** @param done between 0 and 1; undefined where the whole is not known */
  show(done: number | undefined, text: string): void;
  /** Takes the bar away, so that a line can be written. */
  clear(): void;
}

const barWidth = 24;

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
