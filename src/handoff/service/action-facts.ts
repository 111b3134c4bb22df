import { type Awaitable, andThen } from '../../kit/awaitable.ts';
import type { Clock } from '../../kit/clock.ts';
import type { Fault } from '../../kit/errors.ts';
import type { SchemaChecks } from '../json-schema/checks.ts';
import type { Action } from '../model/action.ts';
import { isSamePerson } from '../model/people.ts';
import type { Facts, GrantingStanding, StandingFit } from '../rules/action-case.ts';
import { isOfFamily } from '../rules/exclusion.ts';
import type { Judgement, Subject } from '../rules/policy.ts';
import type { People } from '../rules/quorum.ts';
import { acts, hasRight } from '../rules/rights.ts';
import { type Caller, type createCallerOfOrigin, familyOf } from './authentication.ts';
import type { PolicyService } from './policies.ts';

/** Where what decides about actions comes from. */
export interface FactSources {
  readonly policies: PolicyService;
  readonly checks: SchemaChecks;
  readonly callerOfOrigin: ReturnType<typeof createCallerOfOrigin>;
  clock: Clock;
}

/** Thrown in a unit of work, which may not wait, when it needs a fact that is not read yet. */
class FactNeeded extends Error {
  readonly read: () => Promise<void>;

  constructor(read: () => Promise<void>) {
    super('A unit of work needs a fact that is not read yet.');
    this.read = read;
  }
}

/** What every answer needs. */
export const answerFacts = (facts: Facts): unknown => facts.people();

/**
 * How often an operation may need a further fact. It needs the policies, the schema of an action, people and standing approvals, each
 * again after an edit; the rest is for packets that change between two attempts.
 */
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
    return this.#fact('people', () => andThen(this.#sources.policies.of(this.#tenant), ({ people }) => people));
  }

  isBound(agent: string): boolean {
    return this.#caller?.agents?.includes(agent) ?? false;
  }

  standing(fit: StandingFit): readonly GrantingStanding[] {
    return this.#fact(JSON.stringify(['standing', fit]), () => this.#standing(fit));
  }

  async #standing({ agent, tool, arguments_digest, sources, among }: StandingFit): Promise<readonly GrantingStanding[]> {
    const { policies, callerOfOrigin, clock } = this.#sources;
    const now = clock();
    const { standing } = await policies.of(this.#tenant);
    const fitting = standing.filter(
      (one) =>
        one.agent_id === agent &&
        one.tool === tool &&
        (one.arguments_digest === null || one.arguments_digest === arguments_digest) &&
        now < new Date(one.expires_at) &&
        (among?.includes(one.id) ?? true),
    );
    const granting: GrantingStanding[] = [];
    // biome-ignore lint/plugin: a person has approved a few calls of a tool of an agent for later, and each look-up is cached.
    for (const { id, person: name, origin, method, key_id } of fitting) {
      const approver = await callerOfOrigin(this.#tenant, origin);
      if (approver === undefined || !hasRight(approver, acts.answerByLink) || !isSamePerson(approver.responder ?? '', name)) continue;
      granting.push({ id, name, method, key_id, isAsker: isOfFamily(sources, familyOf(approver)) });
    }
    return granting;
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

  #fact<T>(name: string, read: () => Awaitable<T>): T {
    if (this.#known.has(name)) return this.#known.get(name) as T;
    const found = read();
    if (!(found instanceof Promise)) {
      this.#known.set(name, found);
      return found;
    }
    // The read has begun already; the next attempt has its result.
    throw new FactNeeded(async () => {
      this.#known.set(name, await found);
    });
  }
}

/**
 * Commits a unit of work that may need facts about actions or people. If it needs one, the fact is read, and the unit is committed again
 * with it. A unit that needs no facts runs once.
 * @param prepare asks for facts that are needed for certain, so that they are read before the first commit
 */
export async function withFacts<T>(
  sources: FactSources,
  { tenant, caller, prepare }: { tenant: number; caller?: Caller | undefined; prepare?: ((facts: Facts) => void) | undefined },
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
