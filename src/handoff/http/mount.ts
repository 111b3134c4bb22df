import type { Mount } from '../../kit/http/mount.ts';
import type { HandoffRoute } from '../model/route.ts';
import type { Caller } from '../service/authentication.ts';

/** Mounts a route of the service. Its handler gets the caller. */
export type HandoffMount = Mount<Caller, HandoffRoute>;
