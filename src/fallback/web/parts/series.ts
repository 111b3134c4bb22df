/** The colour token of the n-th series of a chart, from 0. */
export const seriesColor = (index: number): string => `--series-${(Math.max(0, index) % 8) + 1}`;
