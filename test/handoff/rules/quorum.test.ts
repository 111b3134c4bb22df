import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import { createExample } from '../../../src/handoff/model/examples.ts';
import type { RespondRequest } from '../../../src/handoff/model/packet.ts';
import type { Then } from '../../../src/handoff/model/policy.ts';
import type { Facts } from '../../../src/handoff/rules/action-case.ts';
import type { Command } from '../../../src/handoff/rules/command.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { type Decision, decide } from '../../../src/handoff/rules/packet.ts';
import { latestQuestion } from '../../../src/handoff/rules/question-state.ts';
import {
  type Absence,
  type Approval,
  type Approver,
  type AskedStep,
  anybody,
  type People,
  placeOf,
  progressOf,
  type Quorum,
} from '../../../src/handoff/rules/quorum.ts';
import { ServiceError } from '../../../src/kit/errors.ts';
import { noFacts } from '../../support/facts.ts';
import { runs } from '../../support/runs.ts';

const start = Date.parse('2026-03-01T09:00:00.000Z');
const at = (seconds: number) => new Date(start + seconds * 1000);
const text = (seconds: number) => at(seconds).toISOString();

const nobodyAway: People = {
  groups: new Map([['finance', ['ann', 'Bob', 'cyd']]]),
  absences: [],
  suspended: new Set(),
  renamed: new Map(),
};
const approval = (step: number, name: string, seconds: number, more: Partial<Approval> = {}): Approval => ({
  ...{ step, name, for: null, decision: 'approve', at: text(seconds), void: false },
  ...more,
});
const quorum = (steps: readonly AskedStep[], approvals: readonly Approval[] = [], more: Partial<Quorum> = {}): Quorum => ({
  ...{ steps, byPolicy: true, began_at: text(0), expires_at: null, approvals, standing: [], people: nobodyAway },
  ...more,
});

const finance = ['group:finance'];
const place = (asked: Quorum, name: string, seconds: number, { from = finance, approves = true, ...more }: PlaceOptions = {}) =>
  placeOf(asked, from, { name, verified: true, isAsker: false, ...more }, at(seconds), approves);
type PlaceOptions = Partial<Approver> & { from?: readonly string[] | null; approves?: boolean };

describe('The approval of an action', () => {
  test('two different people of a group must approve, in the first step', () => {
    const steps: AskedStep[] = [{ from: ['group:finance'], count: 2 }, { from: ['cfo'] }];
    const open = progressOf(quorum(steps, [approval(0, 'ann', 5)]), at(9));
    assert.deepEqual(open, {
      ...{ granted: [], outcome: 'open', look_at: null, step: 0, of: 2, count: 2, given: 1, from: ['group:finance'], escalated: 0 },
    });
    const second = quorum(steps, [approval(0, 'ann', 5), approval(0, 'Bob', 7)]);
    assert.equal((progressOf(second, at(9)) as { step: number }).step, 1);
    const done = quorum(steps, [...second.approvals, approval(1, 'cfo', 8)]);
    assert.deepEqual(progressOf(done, at(9)), { granted: [], outcome: 'approved', at: text(8) });
  });

  test('anybody may approve an action that no policy decides', () => {
    assert.equal(progressOf(quorum(anybody), at(0)).outcome, 'open');
    assert.equal(progressOf(quorum(anybody, [approval(0, 'whoever', 1)]), at(1)).outcome, 'approved');
  });

  test('a step that times out is rejected, passed or kept, as its policy says', () => {
    const outcome = (on_timeout: 'reject' | 'next' | 'keep', seconds: number) =>
      progressOf(quorum([{ from: ['ann'], timeout_seconds: 60, on_timeout }, { from: ['cfo'] }]), at(seconds));
    assert.deepEqual(outcome('reject', 60), { granted: [], outcome: 'rejected', at: text(60), step: 0 });
    assert.deepEqual(
      { ...outcome('reject', 59), from: undefined, granted: [] },
      {
        ...{ granted: [], outcome: 'open', look_at: text(60), step: 0, of: 2, count: 1, given: 0, from: undefined, escalated: 0 },
      },
    );
    assert.equal((outcome('next', 60) as { step: number }).step, 1);
    assert.equal((outcome('keep', 6000) as { step: number }).step, 0);
  });

  test('an escalation asks more people after its time, and says when to look again', () => {
    const steps: AskedStep[] = [{ from: ['cfo'], escalate: [{ after_seconds: 30, to: ['group:finance'] }] }];
    const before = progressOf(quorum(steps), at(29));
    assert.deepEqual([before.outcome, 'look_at' in before && before.look_at], ['open', text(30)]);
    const after = progressOf(quorum(steps), at(30));
    assert.deepEqual('from' in after && [after.from, after.escalated, after.look_at], [['cfo', 'group:finance'], 1, null]);
  });

  test('the time of the question ends it whatever its step [H556]', () => {
    const steps: AskedStep[] = [{ from: ['ann'], timeout_seconds: 30, on_timeout: 'next' }, { from: ['cfo'] }];
    assert.deepEqual(progressOf(quorum(steps, [], { expires_at: text(40) }), at(90)), { granted: [], outcome: 'timed_out', at: text(40) });
    const same = quorum([{ from: ['ann'], timeout_seconds: 40, on_timeout: 'reject' }], [], { expires_at: text(40) });
    assert.equal(progressOf(same, at(40)).outcome, 'timed_out');
    const given = quorum(steps, [approval(1, 'cfo', 39)], { expires_at: text(40) });
    assert.equal(progressOf(given, at(90)).outcome, 'approved', 'what was decided before stays');
  });

  test('one person has one place: names are compared trimmed, in NFC and without case [H553, H555]', () => {
    const given = quorum([{ from: ['group:finance'], count: 2 }], [approval(0, 'bob', 1)]);
    assert.equal(place(given, ' BOB', 2), 'approved already');
    assert.deepEqual(place(given, 'BOB', 2, { approves: false }), { for: null }, 'who approved may still reject');
    assert.deepEqual(place(given, 'Cyd ', 2), { for: null });
    assert.equal(place(given, 'mallory', 2), 'not asked');
  });

  test('a delegate answers in the place of who is away, together once, and no further [H554]', () => {
    const absences: Absence[] = [
      { person: 'ann', to: 'dan', from: text(10), until: text(20) },
      { person: 'dan', to: 'eve', from: null, until: text(99) },
    ];
    const people = { ...nobodyAway, absences };
    const fresh = quorum([{ from: ['group:finance'], count: 2 }], [], { people });
    assert.deepEqual(place(fresh, 'dan', 10), { for: 'ann' });
    assert.equal(place(fresh, 'dan', 9), 'not asked');
    assert.equal(place(fresh, 'dan', 20), 'not asked');
    assert.equal(place(fresh, 'eve', 15), 'not asked', 'a delegate delegates nothing further');
    const forAnn = quorum(fresh.steps, [approval(0, 'dan', 11, { for: 'ann' })], { people });
    assert.equal(place(forAnn, 'ann', 15), 'approved already');
    assert.equal(place(forAnn, 'dan', 15), 'approved already');
    const byAnn = quorum(fresh.steps, [approval(0, 'ann', 11)], { people });
    assert.equal(place(byAnn, 'dan', 15), 'approved already');
  });

  test('a suspended person counts for nothing, not even with what was given before [H555]', () => {
    const people = { ...nobodyAway, suspended: new Set(['ann']) };
    const given = quorum([{ from: ['group:finance'] }], [approval(0, 'ann', 1)], { people });
    assert.equal(progressOf(given, at(2)).outcome, 'open');
    assert.equal(place(given, 'ann', 2), 'not asked');
  });

  test('a standing approval counts in each step that asks its person, once, and never for another one of a count', () => {
    const standing = [{ id: 's1', name: 'ann', isAsker: false }];
    const two = progressOf(quorum([{ from: ['group:finance'], count: 2 }], [], { standing }), at(3));
    assert.deepEqual([two.outcome, two.granted], ['open', [approval(0, 'ann', 3, { standing_id: 's1' })]]);
    const one = progressOf(quorum([{ from: ['ann'] }], [], { standing }), at(3));
    assert.deepEqual([one.outcome, one.granted.length], ['approved', 1]);
    const again = progressOf(quorum([{ from: ['ann'] }, { from: ['ann', 'Bob'] }], [], { standing }), at(3));
    assert.deepEqual([again.outcome, again.granted.length], ['open', 1], 'the second step needs another person');
    assert.equal(progressOf(quorum(anybody, [], { standing }), at(3)).outcome, 'approved', 'who asks anybody asks that person too');
    const asker = [{ ...standing[0]!, isAsker: true }];
    assert.equal(progressOf(quorum(anybody, [], { standing: asker, byPolicy: false }), at(3)).outcome, 'open');
  });

  test('many standing approvals cost a step no more than one: its groups are looked up once', () => {
    let lookups = 0;
    const groups = new Map([['all', Array.from({ length: 100 }, (_, index) => `p${index}`)]]);
    const get = (name: string) => {
      lookups += 1;
      return groups.get(name);
    };
    const people = { ...nobodyAway, groups: { get } as never };
    const standing = groups.get('all')!.map((name) => ({ id: name, name, isAsker: false }));
    const { granted } = progressOf(quorum([{ from: ['group:all'], count: 60 }], [], { standing, people }), at(3));
    assert.deepEqual([granted.length, lookups], [60, 1]);
  });

  test('under a policy, a typed name and the keys of the asker count in no step, not even where it asks anybody [H429]', () => {
    for (const from of [finance, null]) {
      assert.deepEqual(place(quorum([]), 'ann', 0, { from }), { for: null });
      assert.equal(place(quorum([]), 'ann', 0, { from, verified: false }), 'not verified');
      assert.equal(place(quorum([]), 'ann', 0, { from, isAsker: true }), 'the asker');
    }
    const unruled = quorum([], [], { byPolicy: false });
    assert.deepEqual(place(unruled, 'ann', 0, { from: null, verified: false, isAsker: true }), { for: null });
  });
});

const agent = { origin: 'the agent’s key', lineage: [] };
const claimed = decide(
  newPacket(structuredClone(createExample) as never, { id: 'p', now: at(0), agentId: undefined }).packet,
  { kind: 'claim', claimant: { agent_id: 'agent', agent_name: 'Agent', framework: null } },
  at(0),
).packet;

describe('The open question of an action', () => {
  const judged: unknown[] = [];
  const facts: Facts = {
    ...noFacts,
    judge({ arguments: given, ...others }) {
      judged.push(others);
      return { verdict: { policy: 'p', version: 1, rule: null, then: null }, skipped: [], shadow: [] };
    },
  };
  const before = { kept: {}, earlier: [], facts, family: agent };
  const question = { action: { tool: 'refund', arguments: { n: 0 } } };
  const ask: Command = { kind: 'ask', question, agentId: 'agent', questionId: 'q', token: undefined };
  const edit: Command = {
    ...{ kind: 'respond', answer: { decision: 'edit', responded_by: 'ann', arguments: { n: 1 } } },
    decider: { verified: true, method: 'key', key_id: 'ann' },
  };
  const custom = { long: 'x'.repeat(5000) };
  const asked = () => decide({ ...claimed, context: { ...claimed.context, custom } }, ask, at(0), null, before);
  const then = ({ packet, kept }: Decision, command: Command) =>
    decide(packet, command, at(1), null, { ...before, kept: kept!, sources: [agent.origin], family: { origin: 'ann', lineage: [] } });

  test('keeps what its policy judged only once the packet changes in it, and an edit is judged with that [H432]', () => {
    const open = asked();
    assert.ok(JSON.stringify(open.kept).length < 500, 'nothing of the packet is kept');
    const edited = then(open, edit);
    assert.deepEqual([edited.packet.hitl?.response, judged.at(-1)], ['edit', judged[0]]);
    const patch = (patch: object): Command => ({ kind: 'patch', patch, agentId: 'agent', questionId: 'q2', token: undefined });
    const changed = then(then(open, patch({ context: { custom: { late: 1 } } })), patch({ metadata: { tags: ['late'] } }));
    assert.deepEqual(changed.packet.context.custom, { late: 1 });
    assert.deepEqual([then(changed, edit).packet.hitl?.response, judged.at(-1)], ['edit', judged[0]]);
  });

  test('is not decided without the facts', () => {
    const { packet, kept } = asked();
    for (const command of [edit, { kind: 'time_out' } as const])
      assert.throws(() => decide(packet, command, at(1), null, { kept: kept!, earlier: [] }), /without the policies/);
    assert.throws(() => decide(claimed, ask, at(0)), /without the policies/);
  });
});

/** What a policy says to arguments: it asks steps, asks anybody (no rule fits), or a rule decides. */
type Said = { readonly ask: AskedStep[] } | 'anybody' | 'approve' | 'reject';

interface Act {
  readonly second: number;
  readonly who: string;
  readonly what: 'approve' | 'reject' | 'edit';
  /** Which arguments an edit makes. */
  readonly n: number;
  readonly verified: boolean;
  readonly isAsker: boolean;
}

/** A slow model: it lives through every second, keeps what it knows, and shares no code with the rules. */
interface Scene {
  /** By the arguments, those that are asked about first; null: no policy. */
  readonly policy: Said[] | null;
  readonly isBound: boolean;
  readonly expires: number | null;
  readonly groups: Record<string, string[]>;
  readonly absences: { person: string; to: string; from: number; until: number }[];
  readonly standing: { name: string; isAsker: boolean }[];
  readonly suspended: string[];
  readonly acts: Act[];
}

interface Accepted {
  step: number;
  name: string;
  for: string | null;
  second: number;
  void: boolean;
}

interface Live {
  outcome: 'open' | 'approved' | 'rejected' | 'timed_out';
  steps: AskedStep[];
  step: number;
  /** The second in which the step began. */
  began: number;
  /** Who is used up, by any step. */
  used: Set<string>;
  /** How many approvals the step has. */
  given: number;
  /** What the model accepted. */
  accepted: Accepted[];
}

const lastSecond = 40;

/** What the policy makes of arguments, from a second on. */
function say(scene: Scene, live: Live, n: number, second: number): void {
  const said = scene.policy === null ? 'anybody' : scene.policy[n]!;
  Object.assign(live, { step: 0, began: second, used: new Set(), given: 0 });
  for (const accepted of live.accepted) accepted.void = true;
  if (said === 'reject') live.outcome = 'rejected';
  else if (said === 'approve' && scene.isBound) live.outcome = 'approved';
  else live.steps = typeof said === 'string' ? [{ from: null }] : said.ask;
}

function askedIn(scene: Scene, live: Live, second: number): Set<string> | 'anybody' {
  const step = live.steps[live.step]!;
  if (step.from === null) return 'anybody';
  const lists = [...step.from];
  for (const { after_seconds, to } of step.escalate ?? []) if (second - live.began >= after_seconds) lists.push(...to);
  const people = new Set<string>();
  for (const entry of lists)
    for (const person of entry.startsWith('group:') ? (scene.groups[entry.slice(6)] ?? []) : [entry]) people.add(person);
  return people;
}

/** Goes on with the model while time or standing approvals change it in this second. */
function settle(scene: Scene, live: Live, second: number): void {
  for (;;) {
    if (live.outcome !== 'open') return;
    if (live.step >= live.steps.length) {
      live.outcome = 'approved';
      return;
    }
    const step = live.steps[live.step]!;
    if (live.given >= (step.count ?? 1)) {
      Object.assign(live, { step: live.step + 1, began: second, given: 0 });
      continue;
    }
    if (scene.expires !== null && second >= scene.expires) {
      live.outcome = 'timed_out';
      return;
    }
    const isOver = step.timeout_seconds !== undefined && second - live.began >= step.timeout_seconds;
    if (isOver && step.on_timeout === 'reject') {
      live.outcome = 'rejected';
      return;
    }
    if (isOver && step.on_timeout === 'next') {
      Object.assign(live, { step: live.step + 1, began: live.began + step.timeout_seconds!, given: 0 });
      continue;
    }
    const asked = askedIn(scene, live, second);
    const stands = scene.standing.find(
      ({ name, isAsker }) =>
        scene.isBound && !isAsker && (asked === 'anybody' || asked.has(name)) && !live.used.has(name) && !scene.suspended.includes(name),
    );
    if (stands === undefined) return;
    accept(live, stands.name, null, second);
  }
}

function accept(live: Live, who: string, other: string | null, second: number): void {
  for (const name of [who, ...(other === null ? [] : [other])]) live.used.add(name);
  live.given += 1;
  live.accepted.push({ step: live.step, name: who, for: other, second, void: false });
}

/** Whose place a person takes in the model; undefined: none. */
function placeIn(scene: Scene, live: Live, { who, verified, isAsker }: Act, second: number, approves: boolean): string | null | undefined {
  if (scene.policy !== null && (!verified || isAsker)) return undefined;
  if (scene.suspended.includes(who)) return undefined;
  const isFree = (name: string) => !approves || !live.used.has(name);
  const asked = askedIn(scene, live, second);
  if (!isFree(who)) return undefined;
  if (asked === 'anybody' || asked.has(who)) return null;
  for (const person of [...asked].toSorted()) {
    if (scene.suspended.includes(person) || !isFree(person)) continue;
    if (
      scene.absences.some((absence) => absence.person === person && absence.to === who && absence.from <= second && second < absence.until)
    )
      return person;
  }
  return undefined;
}

/** What somebody does in the model; whether it is taken. */
function live(scene: Scene, model: Live, act: Act, second: number): boolean {
  if (model.outcome !== 'open') return false;
  const place = placeIn(scene, model, act, second, act.what === 'approve');
  if (place === undefined) return false;
  if (act.what === 'reject') model.outcome = 'rejected';
  else if (act.what === 'approve') accept(model, act.who, place, second);
  else {
    say(scene, model, act.n, second);
    if (model.outcome !== 'open') return true;
    const anew = placeIn(scene, model, act, second, true);
    if (anew !== undefined) accept(model, act.who, anew, second);
    else model.accepted.push({ step: 0, name: act.who, for: place, second, void: true });
  }
  settle(scene, model, second);
  return true;
}

const people = ['ann', 'bob', 'cyd', 'dan', 'eve'];
const person = fc.constantFrom(...people);
const fromList = fc.array(fc.oneof(person, fc.constantFrom('group:g', 'group:h', 'group:none')), { minLength: 1, maxLength: 3 });
const second = fc.integer({ min: 0, max: lastSecond });
const rarely = fc.oneof({ arbitrary: fc.constant(false), weight: 5 }, { arbitrary: fc.constant(true), weight: 1 });
const step = fc.record(
  {
    from: fromList,
    count: fc.integer({ min: 1, max: 3 }),
    timeout_seconds: fc.integer({ min: 1, max: 20 }),
    on_timeout: fc.constantFrom('reject' as const, 'next' as const, 'keep' as const),
    escalate: fc.array(fc.record({ after_seconds: fc.integer({ min: 1, max: 15 }), to: fromList }), { maxLength: 2 }),
  },
  { requiredKeys: ['from'] },
);
const steps: fc.Arbitrary<AskedStep[]> = fc
  .array(step, { minLength: 1, maxLength: 4 })
  // The last step has no next one.
  .map((all) => all.map((one, index) => (index === all.length - 1 && one.on_timeout === 'next' ? { ...one, on_timeout: 'keep' } : one)));
const said: fc.Arbitrary<Said> = fc.oneof(
  { arbitrary: fc.record({ ask: steps }), weight: 8 },
  { arbitrary: fc.constantFrom('anybody' as const, 'approve' as const, 'reject' as const), weight: 2 },
);
const scenes: fc.Arbitrary<Scene> = fc.record({
  policy: fc.option(fc.array(said, { minLength: 3, maxLength: 3 }), { freq: 8 }),
  isBound: fc.boolean(),
  expires: fc.option(fc.integer({ min: 1, max: lastSecond }), { freq: 2 }),
  groups: fc.record({ g: fc.uniqueArray(person, { maxLength: 4 }), h: fc.uniqueArray(person, { maxLength: 2 }) }),
  absences: fc.uniqueArray(fc.record({ person, to: person, from: second, until: second }), {
    maxLength: 4,
    selector: (absence) => absence.person,
  }),
  standing: fc.uniqueArray(fc.record({ name: person, isAsker: rarely }), { maxLength: 2, selector: ({ name }) => name }),
  suspended: fc.uniqueArray(person, { maxLength: 1 }),
  acts: fc.array(
    fc.record({
      ...{ second, who: person, n: fc.integer({ min: 0, max: 2 }), verified: rarely.map((not) => !not), isAsker: rarely },
      what: fc.constantFrom('approve' as const, 'approve' as const, 'approve' as const, 'reject' as const, 'edit' as const),
    }),
    { maxLength: 14 },
  ),
});

/** The rules as a service uses them: it acts at the times that they name and when somebody answers, and keeps what they say. */
class Asked {
  readonly #facts: Facts;
  #decision: Decision;

  constructor({ policy, isBound, expires, groups, absences, standing, suspended }: Scene) {
    const thenOf = (one: Said): Then | null =>
      typeof one !== 'string'
        ? (one as unknown as Then)
        : one === 'anybody'
          ? null
          : one === 'approve'
            ? { approve: 'ok' }
            : { reject: 'no' };
    this.#facts = {
      ...noFacts,
      judge({ arguments: given }) {
        const verdict = policy && { policy: 'p', version: 1, rule: 1, then: thenOf(policy[given.n as number]!) };
        return { verdict, skipped: [], shadow: [] };
      },
      isBound: () => isBound,
      standing: () => standing.map((one) => ({ ...one, id: one.name, method: 'key', key_id: one.isAsker ? agent.origin : one.name })),
      people: () => ({
        groups: new Map(Object.entries(groups)),
        absences: absences.map((absence) => ({ ...absence, from: text(absence.from), until: text(absence.until) })),
        suspended: new Set(suspended),
        renamed: new Map(),
      }),
    };
    const action = { tool: 'refund', arguments: { n: 0 } };
    const question = { action, ...(expires === null ? {} : { timeout_seconds: expires }) };
    const ask: Command = { kind: 'ask', question, agentId: 'agent', questionId: 'q', token: undefined };
    this.#decision = decide(claimed, ask, at(0), null, { kept: {}, earlier: [], facts: this.#facts, family: agent });
  }

  get #hitl() {
    return this.#decision.packet.hitl!;
  }

  get decision() {
    return this.#hitl.decision;
  }

  get approvals() {
    return this.#hitl.approvals ?? [];
  }

  get step() {
    return this.#hitl.step;
  }

  outcome(now: number): Live['outcome'] {
    const word = this.decision?.decision;
    if (word !== undefined) return word === 'reject' ? 'rejected' : 'approved';
    return latestQuestion(this.#decision.packet, at(now)).state === 'timed_out' ? 'timed_out' : 'open';
  }

  isDue(now: number): boolean {
    const next = this.step?.changes_at ?? null;
    return next !== null && Date.parse(next) <= at(now).getTime();
  }

  do(command: Command, now: number, family?: typeof agent): void {
    const { packet, kept = {} } = this.#decision;
    const before = { kept, earlier: [], facts: this.#facts, sources: [agent.origin], family };
    const decision = decide(packet, command, at(now), null, before);
    if (decision.packet !== packet) this.#decision = decision;
  }

  /** Whether what somebody does is taken. */
  act({ who, what, n, verified, isAsker }: Act, now: number): boolean {
    const answer: RespondRequest = { decision: what, responded_by: who, ...(what === 'edit' ? { arguments: { n } } : {}) };
    const family = isAsker ? agent : { origin: who, lineage: [] };
    const decider = { verified, method: verified ? 'key' : 'typed', key_id: family.origin } as const;
    try {
      this.do({ kind: 'respond', answer, decider }, now, family);
      return true;
    } catch (error) {
      assert.ok(error instanceof ServiceError, String(error));
      return false;
    }
  }
}

test('random policies, people, keys, edits, absences and clocks end as a slow model of the rules says', () => {
  fc.assert(
    fc.property(scenes, (scene) => {
      const model: Live = { outcome: 'open', steps: [], step: 0, began: 0, used: new Set(), given: 0, accepted: [] };
      say(scene, model, 0, 0);
      const asked = new Asked(scene);
      const acts = scene.acts.toSorted((one, other) => one.second - other.second);
      for (let now = 0; now <= lastSecond; now += 1) {
        settle(scene, model, now);
        // Between the times that it names, the rules are not asked.
        if (asked.isDue(now)) asked.do({ kind: 'time_out' }, now);
        for (const act of acts.filter((one) => one.second === now)) {
          const isTaken = live(scene, model, act, now);
          assert.equal(asked.act(act, now), isTaken, `${act.who}, ${act.what} at ${now}`);
        }
        assert.equal(asked.outcome(now), model.outcome, `at ${now}`);
        if (model.outcome !== 'open') continue;
        const isOfAnybody = model.steps[model.step]!.from === null;
        const { index, given } = asked.step ?? {};
        assert.deepEqual(isOfAnybody ? asked.step : [index! - 1, given], isOfAnybody ? null : [model.step, model.given], `at ${now}`);
      }
      assert.deepEqual(
        asked.approvals.map(({ step: index, name, for: other, at: time, void: isVoid }) => ({
          ...{ step: index - 1, name, for: other, second: (Date.parse(time) - start) / 1000, void: isVoid },
        })),
        model.accepted,
      );
      requirePromises(scene, model, asked);
    }),
    { numRuns: runs(1000) },
  );
});

/**
 * What holds whatever the rules say: no person counts twice, under a policy nobody who is not verified and no asker, and an approved action
 * has the quorum of each step that time did not pass.
 */
function requirePromises({ policy, isBound }: Scene, { steps: all }: Live, { approvals, decision }: Asked): void {
  const counting = approvals.filter((approval) => !approval.void);
  const used = counting.flatMap(({ name, for: other }) => [name, ...(other === null ? [] : [other])]);
  assert.equal(new Set(used).size, used.length, 'a person counts once');
  if (policy !== null) assert.ok(counting.every(({ verified, key_id }) => verified && key_id !== agent.origin));
  if (decision?.decision !== 'approve' && decision?.decision !== 'edit') return;
  const judged = policy?.[decision.arguments.n as number];
  if (judged === 'approve' && isBound) {
    assert.deepEqual(decision.by, []);
    return;
  }
  for (const [index, one] of all.entries()) {
    const given = counting.filter((approval) => approval.step === index + 1).length;
    assert.ok(given >= (one.count ?? 1) || (one.on_timeout === 'next' && one.timeout_seconds !== undefined), `step ${index}`);
  }
}
