import type { Clock } from '../../kit/clock.ts';
import type { NewId } from '../../kit/id.ts';
import type { Store } from '../store/store.ts';

/** What most services need. */
export interface ServiceDependencies {
  store: Store;
  clock: Clock;
  newId: NewId;
}

/** What services need that send to URLs of callers. */
export interface SendingDependencies extends ServiceDependencies {
  /** Returns a sentence that says why nothing of a tenant can be sent to a URL; undefined when it can. */
  urlProblem: (url: string, tenant: number) => Promise<string | undefined>;
}
