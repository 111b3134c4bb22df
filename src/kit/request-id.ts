import { AsyncLocalStorage } from 'node:async_hooks';

const ids = new AsyncLocalStorage<string>();

/** Does `work` for a request, whose id everything that it starts can read. */
export const withRequestId = <T>(id: string, work: () => T): T => ids.run(id, work);

/** The id of the request for which this code runs; undefined outside of requests. It only serves logs. */
export const currentRequestId = (): string | undefined => ids.getStore();
