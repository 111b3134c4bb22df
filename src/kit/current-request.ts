import { AsyncLocalStorage } from 'node:async_hooks';

import type { Span, TraceContext } from './trace-context.ts';

/** What everything that a request starts can read of it. */
export interface CurrentRequest {
  readonly id: string;
  /** The trace that the request belongs to, if any. */
  readonly trace: TraceContext | undefined;
  /** Its span, while spans are exported and it has not ended. */
  readonly span?: Span | undefined;
}

const current = new AsyncLocalStorage<CurrentRequest>();

/** Does `work` for a request. */
export const withRequest = <T>(request: CurrentRequest, work: () => T): T => current.run(request, work);

/** The request for which this code runs; undefined outside of requests. It only serves logs and traces. */
export const currentRequest = (): CurrentRequest | undefined => current.getStore();
