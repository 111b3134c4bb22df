import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { compileSchema } from '../../../src/handoff/json-schema/compile.ts';
import {
  effectOf,
  inOrder,
  type JudgedPolicy,
  judge,
  policyFaults,
  policyWarnings,
  type Subject,
} from '../../../src/handoff/rules/policy.ts';
import { quickFit } from '../../../src/handoff/rules/quick-fit.ts';
import { strictSchema } from '../../../src/handoff/rules/strict-schema.ts';

const subject: Subject = {
  ...{ tool: 'refund', arguments: { amount: 500 }, agent: 'refund-eu', framework: 'langgraph' },
  ...{ tags: ['eu', 'billing'], priority: 'normal', custom: {} },
};
const policy = (name: string, more: Partial<JudgedPolicy> = {}): JudgedPolicy => ({
  ...{ name, version: 1, rules: [{ then: { reject: name } }], misfit: () => undefined },
  ...more,
});

describe('The policies of a tenant', () => {
  test('the first by order, then by name, whose match fits decides, and the skipped ones say where they did not fit', () => {
    const policies = inOrder([
      policy('b'),
      policy('c', { order: -1, match: { agents: ['other', 'refunds-*'] } }),
      policy('a', { match: { tools: ['transfer'] } }),
      policy('d', { order: -2, match: { tags: ['eu', 'us'] } }),
    ]);
    const { verdict, skipped } = judge(policies, subject);
    assert.deepEqual(verdict, { policy: 'b', version: 1, rule: 1, then: { reject: 'b' } });
    assert.deepEqual(skipped, [
      { policy: 'd', rule: null, path: 'match.tags' },
      { policy: 'c', rule: null, path: 'match.agents' },
      { policy: 'a', rule: null, path: 'match.tools' },
    ]);
  });

  test('a list that is empty or left out fits everything; a star at the end stands for any rest', () => {
    const matches = (match: JudgedPolicy['match']) => judge([policy('p', match === undefined ? {} : { match })], subject).verdict !== null;
    for (const match of [{}, { agents: [] }, { agents: ['refund-*'] }, { tools: ['*'] }, { tags: ['b*', 'eu'] }])
      assert.ok(matches(match), JSON.stringify(match));
    for (const match of [{ agents: ['refund'] }, { tools: ['*fund'] }, { tags: ['eu', 'b'] }])
      assert.ok(!matches(match), JSON.stringify(match));
  });

  test('the first rule that fits decides; if none fits, anybody is asked', () => {
    const rules = [{ then: { approve: 'small' } }, { then: { reject: 'large' } }];
    const with1 = policy('p', { rules, misfit: (rule) => (rule === 0 ? 'arguments.amount' : undefined) });
    assert.deepEqual(judge([with1], subject), {
      verdict: { policy: 'p', version: 1, rule: 2, then: { reject: 'large' } },
      skipped: [{ policy: 'p', rule: 1, path: 'arguments.amount' }],
      shadow: [],
    });
    const none = judge([policy('p', { rules, misfit: () => 'tool' }), policy('q')], subject);
    assert.deepEqual(none.verdict, { policy: 'p', version: 1, rule: null, then: null }, 'a later policy does not decide');
  });

  test('a policy in shadow decides nothing, stands in nobody’s way, and says what it would have done', () => {
    const judged = judge([policy('s', { mode: 'shadow' }), policy('t')], subject);
    assert.equal(judged.verdict?.policy, 't');
    assert.deepEqual(judged.shadow, [{ policy: 's', version: 1, rule: 1, then: { reject: 's' } }]);
  });

  test('a rule approves by itself only for an agent that the asking key is bound to', () => {
    const verdict = { policy: 'p', version: 1, rule: 1, then: { approve: 'small' } };
    assert.deepEqual([effectOf(verdict, true), effectOf(verdict, false)], [{ approve: 'small' }, null]);
    assert.deepEqual(effectOf({ ...verdict, then: { reject: 'no' } }, false), { reject: 'no' });
  });

  test('the last step has no next one, and an end needs a time', () => {
    const faults = policyFaults({
      rules: [
        {
          then: {
            ask: [
              { from: ['a'], on_timeout: 'reject' },
              { from: ['group:'], timeout_seconds: 1, on_timeout: 'next' },
            ],
          },
        },
      ],
    });
    assert.deepEqual(
      faults.map(({ field }) => field),
      ['rules.0.then.ask.0.timeout_seconds', 'rules.0.then.ask.1.on_timeout', 'rules.0.then.ask.1.from'],
    );
  });

  test('warnings name groups that do not exist, steps without enough people, and rules that never decide', () => {
    const ask = [
      { from: ['group:finance', 'group:none'], count: 2, timeout_seconds: 5, escalate: [{ after_seconds: 5, to: ['group:finance'] }] },
    ];
    const warnings = policyWarnings({ rules: [{ then: { ask } }, { then: { reject: 'no' } }] }, new Map([['finance', ['ann']]]));
    assert.deepEqual(warnings, [
      'Rule 1 fits every action: the rules after it never decide.',
      'Step 1 of rule 1 asks the group none, which does not exist.',
      'Step 1 of rule 1 needs 2 people, and asks 1.',
      'Step 1 of rule 1 escalates after its own timeout, which is never reached.',
    ]);
  });
});

/** Whether a value fits a rule that approves, for a schema. */
function approving(schema: unknown): (value: unknown) => boolean {
  const { schema: strict, faults } = strictSchema(schema, 'when');
  assert.deepEqual(faults, []);
  const compiled = compileSchema(strict, 'when');
  assert.ok('checker' in compiled, JSON.stringify(compiled));
  return (value) => {
    const { faults: wrong, ranOut } = compiled.checker.check(value);
    return wrong.length === 0 && !ranOut;
  };
}
const approves = (schema: unknown, value: unknown) => approving(schema)(value);

/** A schema of random nesting. */
interface Random {
  readonly properties?: Readonly<Record<string, Random>>;
  readonly minimum?: number;
  readonly maxLength?: number;
  readonly items?: object;
}

describe('A rule that approves', () => {
  test('does not fit a missing or mistyped value [H551]', () => {
    const amount = { properties: { arguments: { properties: { amount: { maximum: 50 } } } } };
    assert.ok(approves(amount, { arguments: { amount: 50 } }));
    for (const value of [
      {},
      { arguments: {} },
      { arguments: [] },
      { arguments: { amount: '50' } },
      { arguments: { amount: null } },
      { arguments: { amount: 51 } },
    ])
      assert.ok(!approves(amount, value), JSON.stringify(value));
    assert.ok(!approves({ properties: { to: true } }, {}), 'what is named must be there');
    assert.ok(!approves({ items: { maximum: 5 } }, []), 'an array without items has none that fits');
    assert.ok(!approves({ allOf: [{ properties: { a: { minLength: 1 } } }] }, { a: 1 }));
    assert.ok(approves({ properties: { a: { type: ['integer', 'null'], maximum: 5 } } }, { a: 3 }));
    assert.ok(!approves({ properties: { a: { type: ['integer', 'null'], maximum: 5 } } }, { a: null }), 'null is not compared');
    assert.ok(!approves({ properties: { a: { type: ['integer', 'null'], maximum: 5 } } }, { a: 3.5 }));
  });

  test('may use only keywords that say what is there', () => {
    const fieldsOf = (schema: unknown) => strictSchema(schema, 'when').faults.map(({ field }) => field);
    assert.deepEqual(fieldsOf({ not: {}, properties: { a: { pattern: 'x', anyOf: [] } } }), [
      'when.not',
      'when.properties.a.pattern',
      'when.properties.a.anyOf',
    ]);
    assert.deepEqual(fieldsOf({ properties: { a: { type: 'string', maximum: 5 } } }), ['when.properties.a.type']);
    assert.deepEqual(fieldsOf({ maximum: 5, maxLength: 3 }), ['when']);
  });

  test('fits no value from which a named part was taken, or whose type was changed, whatever the schema', () => {
    const leaf = fc.oneof(
      fc.record({ minimum: fc.integer({ min: -9, max: 9 }) }),
      fc.record({ maxLength: fc.integer({ min: 0, max: 9 }) }),
      fc.record({ items: fc.record({ maximum: fc.integer({ min: 0, max: 9 }) }) }),
    );
    const schemas = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 3 },
        leaf,
        fc.record({ properties: fc.dictionary(fc.constantFrom('a', 'b', 'c'), tie('node'), { minKeys: 1 }) }),
      ),
    })).node as fc.Arbitrary<Random>;
    /** A value that fits, and all values in which one named part is missing or of another type. */
    const fitting = (schema: Random): unknown => {
      if (schema.properties === undefined) return 'minimum' in schema ? 9 : 'maxLength' in schema ? '' : [0];
      return Object.fromEntries(Object.entries(schema.properties).map(([name, inner]) => [name, fitting(inner)]));
    };
    const spoilt = (schema: Random): unknown[] => {
      const others = [null, true, { x: 1 }, schema.properties === undefined && 'minimum' in schema ? '9' : 9, []].filter(
        (other) => !(schema.properties === undefined && 'maxLength' in schema && other === ''),
      );
      if (schema.properties === undefined) return 'items' in schema ? [...others, ['0']] : others;
      const value = fitting(schema) as Record<string, unknown>;
      return [
        ...others,
        ...Object.keys(schema.properties).flatMap((name) => {
          const { [name]: _, ...rest } = value;
          return [rest, ...spoilt(schema.properties![name]!).map((inner) => ({ ...value, [name]: inner }))];
        }),
      ];
    };
    fc.assert(
      fc.property(schemas, (schema) => {
        const fits = approving(schema);
        assert.ok(fits(fitting(schema)), JSON.stringify(schema));
        for (const value of spoilt(schema)) assert.ok(!fits(value), `${JSON.stringify(schema)} fits ${JSON.stringify(value)}`);
      }),
      { numRuns: 40 },
    );
  });
});

test('What is judged without the engine of contracts is what the engine says [H418]', () => {
  const name = fc.constantFrom('a', 'b', 'toString', '__proto__');
  const scalar = fc.oneof(fc.integer({ min: -2, max: 2 }), fc.constantFrom('', 'x', '2', true, null, 0.5, -0));
  const values = fc.letrec((tie) => ({
    node: fc.oneof({ maxDepth: 3 }, scalar, fc.array(tie('node'), { maxLength: 2 }), fc.dictionary(name, tie('node'), { maxKeys: 3 })),
  })).node;
  const type = fc.constantFrom('object', 'array', 'string', 'number', 'integer', 'boolean', 'null');
  const bound = fc.integer({ min: -2, max: 2 });
  const schemas = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 3 },
      fc.boolean(),
      fc.record({ type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })) }),
      fc.record(
        { minimum: bound, maximum: bound, exclusiveMinimum: bound, exclusiveMaximum: bound, description: fc.constant('x') },
        { requiredKeys: [] },
      ),
      fc.record({ const: fc.oneof(scalar, values) }),
      fc.record({ enum: fc.array(scalar, { minLength: 1, maxLength: 3 }) }),
      fc.record({ maxLength: fc.integer({ min: 0, max: 2 }) }),
      fc.record({ not: fc.boolean() }),
      fc.record(
        {
          properties: fc.dictionary(name, tie('node'), { maxKeys: 2 }),
          required: fc.uniqueArray(name, { maxLength: 2 }),
          items: tie('node'),
          minItems: fc.integer({ min: 0, max: 2 }),
          allOf: fc.array(tie('node'), { minLength: 1, maxLength: 2 }),
        },
        { requiredKeys: [] },
      ),
    ),
  })).node;
  const seen = { true: 0, false: 0, undefined: 0 };
  fc.assert(
    fc.property(schemas, fc.array(values, { minLength: 8, maxLength: 8 }), (schema, all) => {
      const compiled = compileSchema(schema);
      fc.pre('checker' in compiled);
      for (const value of all) {
        const quick = quickFit(schema, value);
        seen[`${quick}`] += 1;
        if (quick !== undefined) assert.equal(quick, compiled.checker.check(value).faults.length === 0, JSON.stringify([schema, value]));
      }
    }),
    { numRuns: 150 },
  );
  assert.ok(seen.true > 50 && seen.false > 50 && seen.undefined > 10, JSON.stringify(seen));
  assert.equal(quickFit({ items: { type: 'number' } }, Array(2_000).fill(1)), undefined, 'a long check is left to the engine');
});
