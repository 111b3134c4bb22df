import { notFound, ServiceError } from '../../kit/errors.ts';
import { isId } from '../../kit/id.ts';
import type { Command } from '../rules/packet.ts';
import type { Store } from '../store/store.ts';
import type { Circumstances } from '../store/trail.ts';
import type { Transaction, Unit } from '../store/units.ts';
import type { Caller } from './authentication.ts';
import { type Changed, type ChangeOptions, changeIn, idempotently } from './change.ts';

/** The first key of the chain of rotations that a key belongs to; its id identifies the chain. */
export const originOf = ({ key_id, rotated_from = key_id }: Caller): string => rotated_from;

/** What a unit needs to tell whether a key is a source of a packet's question. */
const sourceNeeds = (packetId: string, origin: string) => ({ sourcesOf: [packetId], chainOf: origin });

/** A unit's answer when it needs to know the sources of the question, which most questions don't ask for. */
const unknownSources = Symbol('unknown sources');

/** A unit on a packet that a person's key or link runs. */
interface PersonUnit<T> extends Pick<Unit<T>, 'idempotencyKey' | 'answerLinks' | 'answerLinksOf' | 'work'> {
  /** The id of the packet. */
  readonly id: string;
  /** The first key of the chain of rotations of the key in question. */
  readonly origin: string;
}

/**
 * Commits a unit on a packet that only keys which are no source of its question may run, if the question says so. The
 * unit first runs without that knowledge.
 */
export async function commitAsPerson<T>(store: Store, tenant: number, { id, origin, ...unit }: PersonUnit<T>): Promise<T> {
  const run = (withSources: boolean) =>
    store.of(tenant).commit<T | typeof unknownSources>({
      ...unit,
      packets: [id],
      announces: true,
      ...(withSources ? sourceNeeds(id, origin) : {}),
      work(transaction) {
        if (transaction.packets.get(id)?.hitl?.exclude_source) {
          if (!withSources) return unknownSources;
          requireOutsider(transaction, id, origin);
        }
        return unit.work(transaction);
      },
    });
  const done = await run(false);
  return done === unknownSources ? ((await run(true)) as T) : done;
}

/** @throws ServiceError 403 when the key, or one whose place it took, created or claimed the packet or asked its question */
function requireOutsider({ keys, sources }: Transaction, id: string, origin: string): void {
  const chain = keys.chainOf(origin);
  if (sources.of(id).some((key) => chain.has(key)))
    throw new ServiceError(
      'FORBIDDEN',
      'The question must be answered with another key: this one created or claimed the packet, or asked.',
    );
}

/** Answers the question of a packet. */
export async function respond(
  store: Store,
  caller: Caller,
  id: string,
  command: Command & { kind: 'respond' },
  at: Circumstances,
  { ifMatch, idempotency }: Pick<ChangeOptions, 'ifMatch' | 'idempotency'>,
): Promise<Changed> {
  if (!isId(id)) throw notFound('packet');
  return commitAsPerson(store, caller.tenant_number, {
    id,
    origin: originOf(caller),
    idempotencyKey: idempotency?.key,
    work: (transaction) =>
      idempotently<never>(transaction, idempotency, at, () => ({ id, changed: changeIn(transaction, id, command, at, { ifMatch }) })),
  });
}
