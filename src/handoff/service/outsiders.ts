import { ServiceError } from '../../kit/errors.ts';
import type { AnyPacket } from '../rules/packet.ts';
import type { Store } from '../store/store.ts';
import type { Transaction, Unit } from '../store/units.ts';

/** A unit on a packet that, if the packet's question says so, may only run for a key that is no source of the question. */
interface GuardedUnit<T> extends Pick<Unit<T>, 'idempotencyKey' | 'answerLinks' | 'answerLinksOf' | 'whole' | 'work'> {
  /** The id of the packet. */
  readonly id: string;
  /** The first key of the chain of rotations of the key in question. */
  readonly origin: string;
  /** What happens to the question, if only another key may do that. */
  deed(packet: AnyPacket): 'answered' | 'withdrawn' | 'changed' | undefined;
}

/** A unit's answer when it needs to know the sources of the question, which most questions don't ask for. */
const unknownSources = Symbol('unknown sources');

/** Commits a guarded unit. It first runs without knowing the sources of the question. @throws ServiceError 403 */
export async function commitGuarded<T>(store: Store, tenant: number, { id, origin, deed, ...unit }: GuardedUnit<T>): Promise<T> {
  const run = (withSources: boolean) =>
    store.of(tenant).commit<T | typeof unknownSources>({
      ...unit,
      packets: [id],
      announces: true,
      ...(withSources ? { chainOf: origin } : {}),
      work(transaction) {
        const packet = transaction.packets.get(id);
        const done = packet && deed(packet);
        if (done !== undefined) {
          if (!withSources) return unknownSources;
          requireOutsider(transaction, id, origin, done);
        }
        return unit.work(transaction);
      },
    });
  const done = await run(false);
  return done === unknownSources ? ((await run(true)) as T) : done;
}

/** @throws ServiceError 403 when the key, one whose place it took, or one through which it was created is a source of the question */
function requireOutsider({ keys, packets }: Transaction, id: string, origin: string, deed: string): void {
  const family = keys.chainOf(origin);
  if (!packets.sources(id).some((key) => family.has(key))) return;
  const who = 'this one created or claimed the packet, or asked, or was created by a key that did';
  throw new ServiceError('FORBIDDEN', `The question must be ${deed} with another key: ${who}.`);
}
