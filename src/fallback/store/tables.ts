import type { Generated } from 'kysely';

/** The tables. Ids are UUIDs version 7, so their order is the order of creation. */
export interface Tables {
  /**
   * `text` is the chain as JSON, as returned to callers; `findings` are those of the import that made it, as JSON.
   * `rehearsal_token` is null until it is first needed.
   */
  chains: { id: string; version: number; text: string; rehearsal_token: Generated<string | null>; findings: Generated<string> };
  /**
   * `text` is the result as JSON without its prompts; `prompts` is their list as JSON, empty while the test runs. Until `lease_until`, an ISO 8601 text, the
   * instance that runs the test counts as alive.
   */
  test_results: {
    id: string;
    chain_id: string;
    status: string;
    text: string;
    prompts: Generated<string>;
    lease_until: Generated<string | null>;
    cancel_requested: Generated<number>;
  };
  /** The finished prompts of running tests, which survive a crash. */
  test_prompts: { result_id: string; position: number; text: string };
}
