/** Whether a run has all of its files: `npm --prefix interop run test:full`, which `.ci/full` runs. CI has a part of those that take long. */
export const isFull = process.env.INTEROP === 'full';
