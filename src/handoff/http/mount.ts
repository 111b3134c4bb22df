import type { Mount } from '../../kit/http/mount.ts';
import type { HandoffRoute } from '../model/route.ts';
import type { Caller } from '../service/authentication.ts';

/** Mounts a route of the service. Its handler gets the caller. */
export type HandoffMount = Mount<Caller, HandoffRoute>;

/** What the routes of a noun are mounted with, beside its services. */
export interface MountParts {
  readonly mount: HandoffMount;
  /** The largest item of a batch that the caller may send, in bytes. */
  readonly itemLimit: (caller: Caller) => number;
}

/** Mounts the routes of a noun. */
export type MountNoun = (parts: MountParts) => void;
