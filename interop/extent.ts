/** Whether a run has all of its files: `npm --prefix interop run test:full`, which `.ci/full` runs. CI has a part of those that take long. */
export const isFull = process.env.INTEROP === 'full';

const path = (name: string) => new URL(name, import.meta.url).pathname;

/** Whether LiteLLM is the newest one, not the pinned one whose output the documents show. */
export const isNewest = process.env.LITELLM === 'newest';

/** The Python environment with LiteLLM: that of CI, or with `LITELLM=newest` that of its newest version (`interop/python newest`). */
export const litellmFolder = path(isNewest ? '.venv-newest' : '.venv');
