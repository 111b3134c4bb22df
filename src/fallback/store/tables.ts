import type { Generated } from 'kysely';

/** Ids are UUIDs version 7, so that their order is the order of creation. */
export interface Tables {
  /** `text` is the chain as it is answered, in JSON. */
  chains: { id: string; version: number; text: string };
  /**
   * `text` is the result in JSON; while it runs, without its prompts. Until `lease_until`, a moment as an ISO 8601 text,
   * the instance that runs it is taken to be alive.
   */
  test_results: {
    id: string;
    chain_id: string;
    status: string;
    text: string;
    lease_until: Generated<string | null>;
    cancel_requested: Generated<number>;
  };
  /** The prompts of results that run, so that a crash loses none that was done. */
  test_prompts: { result_id: string; position: number; text: string };
}
