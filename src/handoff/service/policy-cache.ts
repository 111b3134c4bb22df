import { LRUCache } from 'lru-cache';

import type { Awaitable } from '../../kit/awaitable.ts';
import { readJson } from '../../kit/json.ts';
import type { Turns } from '../../kit/turns.ts';
import type { SchemaChecks } from '../json-schema/checks.ts';
import type { Delegation } from '../model/delegation.ts';
import type { Group } from '../model/group.ts';
import type { PolicyRequest, Rule } from '../model/policy.ts';
import type { Remembered } from '../rules/action-case.ts';
import { subjectOrigin } from '../rules/exclusion.ts';
import { inOrder, type JudgedPolicy, type Judgement, judge, matching, type Subject } from '../rules/policy.ts';
import { quickFit } from '../rules/quick-fit.ts';
import type { Absence, People } from '../rules/quorum.ts';
import { strictSchema } from '../rules/strict-schema.ts';
import type { StoredDocument } from '../store/documents.ts';
import type { Counted } from '../store/people.ts';
import type { Store } from '../store/store.ts';

/** What a tenant has published about approvals. */
export interface Published {
  /** In the order in which they are tried. */
  readonly policies: readonly StoredPolicy[];
  readonly people: People;
  readonly standing: readonly StoredStanding[];
}

/** An approval that stands, as stored. */
export interface StoredStanding extends Omit<Remembered, 'id'> {
  readonly id: string;
  /** The origin of the caller who gave it: while that may answer, it stands. */
  readonly origin: string;
  readonly packet_id: string;
}

/** A stored document as an approval that stands. */
export const storedStanding = ({ name, document }: Pick<StoredDocument, 'name' | 'document'>): StoredStanding => ({
  ...(readJson(document) as Omit<StoredStanding, 'id'>),
  id: name,
});

/** A policy as stored. */
export type StoredPolicy = Omit<JudgedPolicy, 'misfit'>;

/** The most tenants whose documents are known. */
const maxTenants = 200;

interface PolicyCacheDependencies {
  readonly store: Store;
  /** What the names of the groups of an identity provider begin with. */
  readonly providerPrefix: string;
  readonly turns: Turns;
  readonly checks: SchemaChecks;
}

/** The policies, groups and delegations of tenants, until any of them changes. */
export class PolicyCache {
  readonly #parts: PolicyCacheDependencies;
  readonly #published = new LRUCache<number, Awaitable<Published>>({ max: maxTenants });
  readonly #schemas = new WeakMap<Rule, { readonly schema: unknown; readonly text: string }>();

  constructor(parts: PolicyCacheDependencies) {
    this.#parts = parts;
  }

  /** Forgets what is published: something may have changed. */
  clear(): void {
    this.#published.clear();
  }

  of(tenant: number): Awaitable<Published> {
    const published = this.#published;
    const known = published.get(tenant);
    if (known !== undefined) return known;
    const reading: Promise<Published> = this.#read(tenant);
    published.set(tenant, reading);
    reading.then(
      // Not after a change since then.
      (found) => published.get(tenant) === reading && published.set(tenant, found),
      () => published.get(tenant) === reading && published.delete(tenant),
    );
    return reading;
  }

  async #read(tenant: number): Promise<Published> {
    const { documents, people } = this.#parts.store.whole(tenant);
    const [policies, groups, delegations, standing, known, renamed] = await Promise.all([
      documents.all('policy'),
      documents.all('group'),
      documents.all('delegation'),
      documents.all('standing'),
      people.counted(),
      people.renamed(),
    ]);
    return {
      policies: inOrder(policies.map(storedPolicy)),
      standing: standing.map(storedStanding),
      people: {
        groups: new Map([
          // A group of the tenant that had such a name before the prefix was set names nobody.
          ...groups
            .filter(({ name }) => !name.startsWith(this.#parts.providerPrefix))
            .map(({ name, document }): [string, string[]] => [name, (readJson(document) as Pick<Group, 'members'>).members]),
          ...providerGroups(known),
        ]),
        absences: delegations.map(({ document }): Absence => readJson(document) as Delegation),
        suspended: new Set(known.flatMap(({ name_key, suspended_at }) => (suspended_at === null ? [] : [name_key]))),
        renamed: new Map(renamed.map(({ name_key, subject, issuer }) => [name_key, subjectOrigin({ subject, issuer })])),
      },
    };
  }

  /**
   * What the policies say to a subject, if their rules tell so without the engine; undefined otherwise. It does not say which part of a
   * subject does not fit a rule.
   */
  judgeNow(policies: readonly StoredPolicy[], subject: Subject): Judgement | undefined {
    const misfits = new Map<StoredPolicy, (string | undefined)[]>();
    for (const policy of matching(policies, subject)) {
      const found: (string | undefined)[] = [];
      misfits.set(policy, found);
      for (const rule of policy.rules) {
        const fits = rule.when === undefined || quickFit(this.#schemaOf(rule).schema, subject);
        if (fits === undefined) return undefined;
        found.push(fits ? undefined : 'when');
        if (fits) break;
      }
    }
    return judge(
      policies.map((policy) => ({ ...policy, misfit: (rule) => misfits.get(policy)?.[rule] })),
      subject,
    );
  }

  /**
   * The policies, of which those whose `match` fits a subject are ready to judge it: their rules are checked up to the first that fits.
   * @throws ServiceError 503 when too many checks wait
   */
  async ready(tenant: number, policies: readonly StoredPolicy[], subject: Subject): Promise<JudgedPolicy[]> {
    const { turns } = this.#parts;
    const value = JSON.stringify(subject);
    const misfits = new Map<StoredPolicy, (string | null | undefined)[]>();
    for (const policy of matching(policies, subject)) {
      const found: (string | null | undefined)[] = [];
      misfits.set(policy, found);
      for (const rule of policy.rules) {
        await turns.next(tenant);
        const misfit = await this.#misfitOf(tenant, rule, value);
        found.push(misfit);
        if (!misfit) break;
      }
    }
    return policies.map((policy) => ({ ...policy, misfit: (rule) => misfits.get(policy)?.[rule] }));
  }

  /** The first part of a subject, as JSON, that a rule does not fit; undefined if it fits, null if the check took too many steps. */
  async #misfitOf(owner: number, rule: Rule, value: string): Promise<string | null | undefined> {
    if (rule.when === undefined) return undefined;
    const { text: schema } = this.#schemaOf(rule);
    const { faults, ranOut } = await this.#parts.checks.check({ owner, schema, value, whole: 'The action' });
    if (ranOut) return null;
    const [first] = faults;
    return first === undefined ? undefined : first.field || 'when';
  }

  /** The schema by which a rule is judged, also as JSON. */
  #schemaOf(rule: Rule): { readonly schema: unknown; readonly text: string } {
    const known = this.#schemas.get(rule);
    if (known !== undefined) return known;
    const schema = 'approve' in rule.then ? strictSchema(rule.when, 'when').schema : rule.when;
    const own = { schema, text: JSON.stringify(schema) };
    this.#schemas.set(rule, own);
    return own;
  }
}

/** A stored policy as it is judged by. */
export const storedPolicy = ({ name, version, document }: Pick<StoredDocument, 'name' | 'version' | 'document'>): StoredPolicy => ({
  ...{ name, version },
  ...(readJson(document) as PolicyRequest),
});

/** The groups of the identity provider, by their names with the prefix, with the people who were in them when they signed in last. */
function providerGroups(people: readonly Counted[]): Map<string, string[]> {
  const members = new Map<string, string[]>();
  for (const { name, groups } of people)
    for (const group of groups) {
      const known = members.get(group);
      if (known === undefined) members.set(group, [name]);
      else known.push(name);
    }
  return members;
}
