import type { Person } from '../rules/identity.ts';

/** When something happened, and the key that caused it; null: the service itself. */
export interface Provenance {
  readonly now: Date;
  readonly keyId: string | null;
  /** The person who caused it, if an identity provider has identified the person. */
  readonly person?: Person;
  /** The actor of all entries, instead of the actor that each event names. */
  readonly actor?: string;
}
