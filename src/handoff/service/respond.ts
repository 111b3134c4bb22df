import { notFound } from '../../kit/errors.ts';
import { isId } from '../../kit/id.ts';
import { deedOfOutsiders } from '../rules/exclusion.ts';
import type { Command } from '../rules/packet.ts';
import type { Store } from '../store/store.ts';
import type { Circumstances } from '../store/trail.ts';
import { type Caller, originOf } from './authentication.ts';
import { type Changed, type ChangeOptions, changeIn, idempotently } from './change.ts';
import { commitGuarded } from './outsiders.ts';

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
  return commitGuarded(store, caller.tenant_number, {
    id,
    origin: originOf(caller),
    deed: (packet) => deedOfOutsiders(packet, command),
    idempotencyKey: idempotency?.key,
    work: (transaction) =>
      idempotently<never>(transaction, idempotency, at, () => ({ id, changed: changeIn(transaction, id, command, at, { ifMatch }) })),
  });
}
