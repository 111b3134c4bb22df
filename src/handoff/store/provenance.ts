import type { Person } from '../rules/identity.ts';

/** When something happened, and the key that caused it; null: the service itself. */
export interface Provenance {
  readonly now: Date;
  readonly keyId: string | null;
  /** The person whom the identity provider says that it was. */
  readonly person?: Person;
  /** The actor, whatever an event says. */
  readonly actor?: string;
}
