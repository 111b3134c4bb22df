import type { Fault } from '../../kit/errors.ts';
import type { SchemaChecks } from '../json-schema/checks.ts';
import type { Action } from '../model/action.ts';
import type { People } from '../rules/approval.ts';
import type { Facts } from '../rules/approving.ts';
import type { Judgement, Subject } from '../rules/policy.ts';
import type { Caller } from './authentication.ts';
import type { PolicyService } from './policies.ts';

/** Where what decides about actions comes from. */
export interface FactSources {
  readonly policies: PolicyService;
  readonly checks: SchemaChecks;
}

/** Thrown in a unit of work, which may not wait, when it needs a fact that is not read yet. */
class FactNeeded extends Error {
  readonly read: () => Promise<void>;

  constructor(read: () => Promise<void>) {
    super('A unit of work needs a fact that is not read yet.');
    this.read = read;
  }
}

/** The most facts that one operation needs: the policies, the schema of an action and people, again after an edit, with room for a race. */
const maxFacts = 16;

/** What decides about the actions of a tenant, read when a unit of work first needs it. */
class ReadFacts implements Facts {
  readonly #sources: FactSources;
  readonly #tenant: number;
  readonly #caller: Caller | undefined;
  readonly #known = new Map<string, unknown>();

  constructor(sources: FactSources, tenant: number, caller: Caller | undefined) {
    this.#sources = sources;
    this.#tenant = tenant;
    this.#caller = caller;
  }

  judge(subject: Subject, version?: { readonly name: string; readonly version: number }): Judgement {
    const { policies } = this.#sources;
    return this.#fact(JSON.stringify(['judge', subject, version]), () =>
      version === undefined ? policies.judge(this.#tenant, subject) : policies.judgeByVersion(this.#tenant, version, subject),
    );
  }

  faultsOf(schema: NonNullable<Action['schema']>, given: Action['arguments']): readonly Fault[] {
    const [text, value] = [JSON.stringify(schema), JSON.stringify(given)];
    return this.#fact(JSON.stringify(['faults', text, value]), () => this.#check(text, value, schema));
  }

  people(): People {
    return this.#fact('people', async () => (await this.#sources.policies.of(this.#tenant)).people);
  }

  isBound(agent: string): boolean {
    return this.#caller?.agents?.includes(agent) ?? false;
  }

  async #check(text: string, value: string, schema: unknown): Promise<readonly Fault[]> {
    const { checks } = this.#sources;
    const own = await checks.faultsOf(this.#tenant, schema, 'schema');
    if (own.length > 0) return own;
    const { faults, ranOut } = await checks.check({ owner: this.#tenant, schema: text, value, whole: 'arguments' });
    if (ranOut) return [{ field: 'arguments', detail: "arguments can't be checked: that takes too many steps." }];
    return faults.map(({ field, detail }) =>
      field === '' ? { field: 'arguments', detail } : { field: `arguments.${field}`, detail: `arguments.${detail.trimStart()}` },
    );
  }

  #fact<T>(name: string, read: () => Promise<T>): T {
    if (this.#known.has(name)) return this.#known.get(name) as T;
    throw new FactNeeded(async () => {
      this.#known.set(name, await read());
    });
  }
}

/**
 * Commits a unit of work that may need facts about actions: when it does, they are read, and it is committed again with them. What is
 * about no action costs nothing.
 * @param prepare asks for facts that are needed for certain, so that they are read before the first commit
 */
export async function withFacts<T>(
  sources: FactSources,
  { tenant, caller, prepare }: { tenant: number; caller?: Caller | undefined; prepare?: (facts: Facts) => void },
  commit: (facts: Facts) => Promise<T>,
): Promise<T> {
  const facts = new ReadFacts(sources, tenant, caller);
  const attempt = async (left: number): Promise<T> => {
    try {
      prepare?.(facts);
      return await commit(facts);
    } catch (error) {
      if (!(error instanceof FactNeeded) || left === 0) throw error;
      await error.read();
      return attempt(left - 1);
    }
  };
  return attempt(maxFacts);
}
