import type { Clock } from '../../kit/clock.ts';
import type { Viewer } from '../rules/sight.ts';
import type { SeenAgent } from '../store/agents.ts';
import type { Page } from '../store/page-size.ts';
import type { Store } from '../store/store.ts';

/** The most seen agents that wait to be written; further ones are dropped until the next write. */
const maxWaiting = 10_000;

/**
 * Records which agents a tenant's requests have named, and when. It collects them and writes them together: a write per
 * request would cost more than the request itself.
 */
export class AgentService {
  readonly #store: Store;
  readonly #clock: Clock;
  #waiting = new Map<string, Omit<SeenAgent, 'last_seen_at'> & { readonly at: Date }>();
  #writing: Promise<unknown> = Promise.resolve();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** Records that a request named an agent. It is written within a second, and before any `page`. */
  seen(tenant: number, agentId: string): void {
    const agent_id = agentId.toWellFormed();
    const name = `${tenant} ${agent_id}`;
    if (this.#waiting.size >= maxWaiting && !this.#waiting.has(name)) return;
    this.#waiting.set(name, { tenant, agent_id, at: this.#clock() });
  }

  /** Writes the recorded agents; returns how many there were. */
  async write(): Promise<number> {
    const written = this.#waiting;
    this.#waiting = new Map();
    const current = this.#writing
      .then(() =>
        this.#store.agents.recordSeen([...written.values()].map(({ at, ...agent }) => ({ ...agent, last_seen_at: at.toISOString() }))),
      )
      .catch((error: unknown) => {
        // Nothing that was seen is lost, and what was seen since is later.
        this.#waiting = new Map([...written, ...this.#waiting].slice(-maxWaiting));
        throw error;
      });
    this.#writing = current.catch(() => undefined);
    await current;
    return written.size;
  }

  /** A page of the agents that a caller sees. The read is cancelled by `signal`. */
  async page(viewer: Viewer, page: Page, signal: AbortSignal) {
    await this.write();
    return this.#store.of(viewer, signal).agents.page(page);
  }
}
