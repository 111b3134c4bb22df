/** How many times as many cases as usual the tests of random and of very many cases walk: `BATON_TEST_RUNS`, which `.ci/full` sets. */
const factor = Number(process.env.BATON_TEST_RUNS ?? 1);

/** How many random cases a test walks where `usual` are enough in each run. */
export const runs = (usual: number): number => usual * factor;

/** Whether tests that otherwise walk a part of their cases walk all. */
export const walksAll = factor > 1;
