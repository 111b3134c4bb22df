import type { Awaitable } from '../../kit/awaitable.ts';
import { ServiceError, tookTooLong } from '../../kit/errors.ts';
import type { Database } from '../../kit/sql/dialect.ts';
import type { Viewer } from '../rules/sight.ts';
import type { DueWalks } from './due-walk.ts';
import type { Writes } from './engine/group.ts';
import type { InLane } from './in-lane.ts';
import type { Lanes, Timed } from './lanes.ts';
import type { Reader } from './readers.ts';
import type { Indexing } from './search/indexing.ts';
import type { Tables } from './tables.ts';

/** What is stored together: how units of work read and write it, and how it is read outside of them. */
export interface Noun {
  readonly writes?: Writes<never, unknown>;
  /** Prepares its reads, once: the reads of one tenant, and the reads of jobs and admission, for all tenants. */
  readonly reads?: (parts: ReadDependencies) => { readonly ofTenant?: (scope: ReadScope) => unknown; readonly ofAll?: unknown };
}

/** What reads are made of. */
export interface ReadDependencies {
  readonly database: Database<Tables>;
  readonly indexing: Indexing;
  readonly walks: DueWalks;
}

/** The tenant whose data a caller reads, how much of it the caller sees, and how its long reads run. */
export class ReadScope {
  /** For reads that leave out what a caller does not see. */
  readonly viewer: Viewer;
  readonly #parts: ReadScopeDependencies;

  constructor(viewer: Viewer, parts: ReadScopeDependencies) {
    this.viewer = viewer;
    this.#parts = parts;
  }

  /** The tenant, for reads that a caller makes who sees all of its data. @throws ServiceError 403 for another caller */
  get tenant(): number {
    if (this.viewer.sight !== undefined)
      throw new ServiceError('FORBIDDEN', "This needs a key with sees: all; this key sees only its own agents' packets.");
    return this.viewer.tenant_number;
  }

  /** What belongs to a packet, or `unseen` if the caller does not see the packet. */
  ofPacket<T>(packetId: string, read: (tenant: number) => Awaitable<T>, unseen: NoInfer<T>): Awaitable<T> {
    const { tenant_number: tenant, sight } = this.viewer;
    if (sight === undefined) return read(tenant);
    return this.#parts.isSeen(this.viewer, packetId).then((seen) => (seen ? read(tenant) : unseen));
  }

  /** Runs work on a reader when it is the tenant's turn. `long`: in the slow lane. @throws ServiceError 503 when it took too long */
  async run<T>(work: (reader: Reader) => Promise<Timed<T>>, options: { long?: boolean } = {}): Promise<T> {
    const { lanes, signal, isTimeout } = this.#parts;
    try {
      return await lanes.run(this.viewer.tenant_number, work, { signal, ...options });
    } catch (error) {
      throw isTimeout(error) ? tookTooLong() : error;
    }
  }

  readonly inLane: InLane = (read) => this.run((reader) => reader.read(read));

  get signal(): AbortSignal | undefined {
    return this.#parts.signal;
  }
}

interface ReadScopeDependencies {
  readonly lanes: Lanes<Reader>;
  /** Aborted when the caller's connection closes; pending long reads are then not started. */
  readonly signal: AbortSignal | undefined;
  readonly isTimeout: (error: unknown) => boolean;
  readonly isSeen: (viewer: Viewer, packetId: string) => Promise<boolean>;
}
