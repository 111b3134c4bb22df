import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';

import { CheckerCache } from '../../../src/handoff/json-schema/cache.ts';
import { SchemaChecks } from '../../../src/handoff/json-schema/checks.ts';
import type { SandboxLimits } from '../../../src/kit/sandbox.ts';
import { doubled, list, object } from '../../support/hostile-schemas.ts';
import { countTurns } from '../../support/until.ts';

function openChecks(t: TestContext, limits?: Partial<SandboxLimits>): SchemaChecks {
  const checks = new SchemaChecks(limits);
  t.after(() => checks.stop());
  return checks;
}

const checkOf = (schema: unknown, value: unknown, owner = 1) => ({
  owner,
  schema: JSON.stringify(schema),
  value: JSON.stringify(value),
  whole: 'The packet',
});

describe('Checks of schemas of callers', () => {
  test('run in a thread, whose faults name the value', async (t) => {
    const checks = openChecks(t);
    assert.deepEqual(await checks.faultsOf(1, { type: 'text' }), [
      {
        field: 'schema.type',
        detail: 'schema.type must be one of array, boolean, integer, null, number, object, string.',
      },
    ]);
    assert.deepEqual(await checks.faultsOf(1, { type: 'object' }), []);
    const { faults } = await checks.check(checkOf({ type: 'object' }, 1));
    assert.deepEqual(faults, [{ field: '', detail: 'The packet must be an object, not a number.' }]);
  });

  test('leave the event loop to others, however long they take [H363]', { timeout: 120_000 }, async (t) => {
    const checks = openChecks(t);
    const slow = checkOf(
      doubled({ uniqueItems: true }),
      list(90, (index) => ({ [`${'n'.repeat(1000)}${index}`]: 1 })),
    );
    await countTurns(async (turn) => {
      const { ranOut } = await checks.check(slow);
      assert.ok(ranOut);
      assert.ok(turn() > 100, `the event loop turned ${turn()} times`);
      const before = turn();
      assert.deepEqual(await checks.faultsOf(1, { properties: object(499, (index) => [`p${index}`, {}]) }), []);
      assert.ok(turn() - before > 100, `the event loop turned ${turn() - before} times while a schema was compiled`);
    });
  });

  test('that pass the deadline end without a verdict, and the next is answered [H460]', { timeout: 120_000 }, async (t) => {
    // A deadline that a thread can't keep: it is ended in the middle of a check.
    const checks = openChecks(t, { deadlineMs: 0 });
    const slow = checkOf(
      { items: { anyOf: list(240, (index) => ({ type: 'string', const: `${index}` })) } },
      list(40_000, () => 'x'),
    );
    const { faults: none, ranOut } = await checks.check(slow);
    assert.deepEqual([none, ranOut], [[], true]);
    const faults = await checks.faultsOf(1, { properties: object(499, (index) => [`p${index}`, {}]) });
    assert.match(faults[0]?.detail ?? '', /^schema needs too much time to be compiled\.$/);
  });
});

describe('The compiled schemas that are kept', () => {
  const schemaOf = (index: number, size = 100) =>
    JSON.stringify({ properties: object(size, (n) => [`p${index}-${n}`, { type: 'string' }]) });

  test('are bounded by their bytes, of all owners and of one [H461]', () => {
    const cache = new CheckerCache({ all: 3_000_000, owner: 1_000_000 });
    const use = (owner: number, schema: string) => {
      const checker = cache.of(owner, schema);
      cache.keep(owner, schema, checker);
      return checker;
    };
    const kept = use(2, schemaOf(0));
    for (let index = 0; index < 40; index += 1) {
      use(1, schemaOf(index));
      assert.ok(cache.bytes <= 1_000_000 + kept.bytes + 10_000, `${cache.bytes} bytes`);
    }
    // The contracts of one owner drop none of another.
    assert.equal(use(2, schemaOf(0)), kept);
    const last = use(1, schemaOf(39));
    assert.equal(use(1, schemaOf(39)), last);
    for (let owner = 3; owner < 40; owner += 1) use(owner, schemaOf(0));
    assert.ok(cache.bytes <= 3_000_000, `${cache.bytes} bytes`);
    assert.notEqual(use(2, schemaOf(0)), kept);
  });

  test('count what a check compiled since, and one that is larger than all may be is not kept', () => {
    const cache = new CheckerCache({ all: 3_000_000, owner: 1_000_000 });
    const schema = schemaOf(1);
    const checker = cache.of(1, schema);
    const before = checker.bytes;
    checker.check(1);
    assert.deepEqual(checker.check({ 'p1-1': 1 }).faults.length, 1);
    assert.ok(checker.bytes > before);
    cache.keep(1, schema, checker);
    const large = schemaOf(2, 450);
    const own = cache.of(1, large);
    own.check({ 'p2-1': 1 });
    assert.ok(own.bytes > 1_000_000, `${own.bytes} bytes`);
    cache.keep(1, large, own);
    assert.equal(cache.bytes, 0);
  });
});
