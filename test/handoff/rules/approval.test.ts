import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';

import {
  type Absence,
  type Approval,
  type AskedStep,
  anybody,
  type People,
  placeOf,
  progressOf,
  type Quorum,
} from '../../../src/handoff/rules/approval.ts';

const start = Date.parse('2026-03-01T09:00:00.000Z');
const at = (seconds: number) => new Date(start + seconds * 1000);
const text = (seconds: number) => at(seconds).toISOString();

const nobodyAway: People = { groups: new Map([['finance', ['ann', 'Bob', 'cyd']]]), absences: [], suspended: new Set() };
const approval = (step: number, name: string, seconds: number, more: Partial<Approval> = {}): Approval => ({
  ...{ step, name, for: null, decision: 'approve', at: text(seconds), void: false },
  ...more,
});
const quorum = (steps: readonly AskedStep[], approvals: readonly Approval[] = [], more: Partial<Quorum> = {}): Quorum => ({
  ...{ steps, began_at: text(0), expires_at: null, approvals, standing: [], people: nobodyAway },
  ...more,
});

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
    const open = { from: ['group:finance'] };
    assert.equal(placeOf(given, open, ' BOB', at(2), true), 'approved already');
    assert.deepEqual(placeOf(given, open, 'BOB', at(2), false), { for: null }, 'who approved may still reject');
    assert.deepEqual(placeOf(given, open, 'Cyd ', at(2), true), { for: null });
    assert.equal(placeOf(given, open, 'mallory', at(2), true), 'not asked');
  });

  test('a delegate answers in the place of who is away, together once, and no further [H554]', () => {
    const absences: Absence[] = [
      { person: 'ann', to: 'dan', from: text(10), until: text(20) },
      { person: 'dan', to: 'eve', from: null, until: text(99) },
    ];
    const people = { ...nobodyAway, absences };
    const open = { from: ['group:finance'] };
    const fresh = quorum([{ from: ['group:finance'], count: 2 }], [], { people });
    assert.deepEqual(placeOf(fresh, open, 'dan', at(10), true), { for: 'ann' });
    assert.equal(placeOf(fresh, open, 'dan', at(9), true), 'not asked');
    assert.equal(placeOf(fresh, open, 'dan', at(20), true), 'not asked');
    assert.equal(placeOf(fresh, open, 'eve', at(15), true), 'not asked', 'a delegate delegates nothing further');
    const forAnn = quorum(fresh.steps, [approval(0, 'dan', 11, { for: 'ann' })], { people });
    assert.equal(placeOf(forAnn, open, 'ann', at(15), true), 'approved already');
    assert.equal(placeOf(forAnn, open, 'dan', at(15), true), 'approved already');
    const byAnn = quorum(fresh.steps, [approval(0, 'ann', 11)], { people });
    assert.equal(placeOf(byAnn, open, 'dan', at(15), true), 'approved already');
  });

  test('a suspended person counts for nothing, not even with what was given before [H555]', () => {
    const people = { ...nobodyAway, suspended: new Set(['ann']) };
    const given = quorum([{ from: ['group:finance'] }], [approval(0, 'ann', 1)], { people });
    assert.equal(progressOf(given, at(2)).outcome, 'open');
    assert.equal(placeOf(given, { from: ['group:finance'] }, 'ann', at(2), true), 'not asked');
  });

  test('a standing approval counts in each step that asks its person, once, and never for another one of a count', () => {
    const standing = [{ id: 's1', name: 'ann' }];
    const two = progressOf(quorum([{ from: ['group:finance'], count: 2 }], [], { standing }), at(3));
    assert.deepEqual([two.outcome, two.granted], ['open', [approval(0, 'ann', 3, { standing_id: 's1' })]]);
    const one = progressOf(quorum([{ from: ['ann'] }], [], { standing }), at(3));
    assert.deepEqual([one.outcome, one.granted.length], ['approved', 1]);
    const again = progressOf(quorum([{ from: ['ann'] }, { from: ['ann', 'Bob'] }], [], { standing }), at(3));
    assert.deepEqual([again.outcome, again.granted.length], ['open', 1], 'the second step needs another person');
    assert.equal(progressOf(quorum(anybody, [], { standing }), at(3)).outcome, 'approved', 'who asks anybody asks that person too');
  });
});

/** A slow model: it lives through every second, keeps what it knows, and shares no code with the rules. */
interface Scene {
  readonly steps: AskedStep[];
  readonly expires: number | null;
  readonly groups: Record<string, string[]>;
  readonly absences: { person: string; to: string; from: number; until: number }[];
  readonly standing: string[];
  readonly suspended: string[];
  readonly acts: { second: number; who: string; what: 'approve' | 'reject' }[];
}

interface Live {
  outcome: 'open' | 'approved' | 'rejected' | 'timed_out';
  step: number;
  /** The second in which the step began. */
  began: number;
  /** Who is used up, by any step. */
  used: Set<string>;
  /** How many approvals the step has. */
  given: number;
  /** What the model accepted, by step. */
  accepted: { step: number; name: string; for: string | null; second: number }[];
}

const lastSecond = 40;

function askedIn(scene: Scene, live: Live, second: number): Set<string> | 'anybody' {
  const step = scene.steps[live.step]!;
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
    if (live.step >= scene.steps.length) {
      live.outcome = 'approved';
      return;
    }
    const step = scene.steps[live.step]!;
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
      (name) => (asked === 'anybody' || asked.has(name)) && !live.used.has(name) && !scene.suspended.includes(name),
    );
    if (stands === undefined) return;
    live.used.add(stands);
    live.given += 1;
    live.accepted.push({ step: live.step, name: stands, for: null, second });
  }
}

/** Whose place a person takes in the model; undefined: none. */
function placeIn(scene: Scene, live: Live, who: string, second: number, approves: boolean): { for: string | null } | undefined {
  if (scene.suspended.includes(who)) return undefined;
  const isFree = (name: string) => !approves || !live.used.has(name);
  const asked = askedIn(scene, live, second);
  if (asked === 'anybody') return isFree(who) ? { for: null } : undefined;
  if (!isFree(who)) return undefined;
  if (asked.has(who)) return { for: null };
  for (const person of [...asked].toSorted()) {
    if (scene.suspended.includes(person) || !isFree(person)) continue;
    if (
      scene.absences.some((absence) => absence.person === person && absence.to === who && absence.from <= second && second < absence.until)
    )
      return { for: person };
  }
  return undefined;
}

const people = ['ann', 'bob', 'cyd', 'dan', 'eve'];
const person = fc.constantFrom(...people);
const fromList = fc.array(fc.oneof(person, fc.constantFrom('group:g', 'group:h', 'group:none')), { minLength: 1, maxLength: 3 });
const second = fc.integer({ min: 0, max: lastSecond });
const step = fc.record(
  {
    from: fc.oneof({ arbitrary: fromList, weight: 9 }, { arbitrary: fc.constant(null), weight: 1 }),
    count: fc.integer({ min: 1, max: 3 }),
    timeout_seconds: fc.integer({ min: 1, max: 20 }),
    on_timeout: fc.constantFrom('reject' as const, 'next' as const, 'keep' as const),
    escalate: fc.array(fc.record({ after_seconds: fc.integer({ min: 1, max: 15 }), to: fromList }), { maxLength: 2 }),
  },
  { requiredKeys: ['from'] },
);
const scenes: fc.Arbitrary<Scene> = fc.record({
  steps: fc
    .array(step, { minLength: 1, maxLength: 4 })
    // The last step has no next one.
    .map((steps) =>
      steps.map((one, index) => (index === steps.length - 1 && one.on_timeout === 'next' ? { ...one, on_timeout: 'keep' as const } : one)),
    ),
  expires: fc.option(fc.integer({ min: 1, max: lastSecond }), { freq: 2 }),
  groups: fc.record({ g: fc.uniqueArray(person, { maxLength: 4 }), h: fc.uniqueArray(person, { maxLength: 2 }) }),
  absences: fc.uniqueArray(fc.record({ person, to: person, from: second, until: second }), {
    maxLength: 4,
    selector: (absence) => absence.person,
  }),
  standing: fc.uniqueArray(person, { maxLength: 2 }),
  suspended: fc.uniqueArray(person, { maxLength: 1 }),
  acts: fc.array(
    fc.record({
      second,
      who: person,
      what: fc.constantFrom('approve' as const, 'approve' as const, 'approve' as const, 'reject' as const),
    }),
    {
      maxLength: 14,
    },
  ),
});

/** The rules as a service uses them: it asks at the times that they name and when somebody acts, and records what they say. */
class Asked {
  readonly scene: Scene;
  approvals: Approval[] = [];
  outcome = 'open';
  #next: number | null = 0;

  constructor(scene: Scene) {
    this.scene = scene;
  }

  quorum(): Quorum {
    const { steps, expires, groups, absences, standing, suspended } = this.scene;
    return {
      steps,
      began_at: text(0),
      expires_at: expires === null ? null : text(expires),
      approvals: this.approvals,
      standing: standing.map((name) => ({ id: `standing ${name}`, name })),
      people: {
        groups: new Map(Object.entries(groups)),
        absences: absences.map((absence) => ({ ...absence, from: text(absence.from), until: text(absence.until) })),
        suspended: new Set(suspended),
      },
    };
  }

  look(now: number): ReturnType<typeof progressOf> {
    const progress = progressOf(this.quorum(), at(now));
    this.approvals = [...this.approvals, ...progress.granted];
    this.outcome = progress.outcome;
    this.#next = progress.outcome === 'open' && progress.look_at !== null ? (Date.parse(progress.look_at) - start) / 1000 : null;
    return progress;
  }

  isDue(now: number): boolean {
    return this.outcome === 'open' && this.#next !== null && this.#next <= now;
  }

  act(who: string, what: 'approve' | 'reject', now: number): string | undefined {
    const progress = this.look(now);
    if (progress.outcome !== 'open') return undefined;
    const place = placeOf(this.quorum(), progress, who, at(now), what === 'approve');
    if (typeof place === 'string') return place;
    if (what === 'reject') this.outcome = 'rejected';
    else {
      this.approvals = [...this.approvals, approval(progress.step, who, now, place)];
      this.look(now);
    }
    return undefined;
  }
}

test('random policies, people, absences and clocks end as a slow model of the rules says', () => {
  fc.assert(
    fc.property(scenes, (scene) => {
      const live: Live = { outcome: 'open', step: 0, began: 0, used: new Set(), given: 0, accepted: [] };
      const asked = new Asked(scene);
      const acts = scene.acts.toSorted((one, other) => one.second - other.second);
      for (let now = 0; now <= lastSecond; now += 1) {
        settle(scene, live, now);
        // Between the times that it names, the rules are not asked.
        if (asked.isDue(now)) asked.look(now);
        for (const { who, what } of acts.filter((act) => act.second === now)) {
          settle(scene, live, now);
          const place = live.outcome === 'open' ? placeIn(scene, live, who, now, what === 'approve') : undefined;
          const refusal = asked.outcome === 'open' ? asked.act(who, what, now) : undefined;
          if (live.outcome === 'open') assert.equal(refusal === undefined, place !== undefined, `${who} at ${now}: ${refusal}`);
          if (place === undefined) continue;
          if (what === 'reject') live.outcome = 'rejected';
          else {
            for (const name of [who, ...(place.for === null ? [] : [place.for])]) live.used.add(name);
            live.given += 1;
            live.accepted.push({ step: live.step, name: who, for: place.for, second: now });
            settle(scene, live, now);
          }
        }
        assert.equal(asked.outcome, live.outcome, `at ${now}`);
        if (live.outcome === 'open') {
          const progress = asked.look(now);
          assert.deepEqual(progress.outcome === 'open' && [progress.step, progress.given], [live.step, live.given], `at ${now}`);
        }
      }
      assert.deepEqual(
        asked.approvals.map(({ step: index, name, for: other, at: time }) => ({
          step: index,
          name,
          for: other,
          second: (Date.parse(time) - start) / 1000,
        })),
        live.accepted,
      );
      requirePromises(scene, asked);
    }),
    { numRuns: 3000 },
  );
});

/** What holds whatever the rules say: no person counts twice, and an approved action has the quorum of each step that time did not pass. */
function requirePromises({ steps }: Scene, { approvals, outcome }: Asked): void {
  const used = approvals.flatMap(({ name, for: other }) => [name, ...(other === null ? [] : [other])]);
  assert.equal(new Set(used).size, used.length, 'a person counts once');
  if (outcome !== 'approved') return;
  for (const [index, one] of steps.entries()) {
    const given = approvals.filter((approval) => approval.step === index).length;
    assert.ok(given >= (one.count ?? 1) || (one.on_timeout === 'next' && one.timeout_seconds !== undefined), `step ${index}`);
  }
}
