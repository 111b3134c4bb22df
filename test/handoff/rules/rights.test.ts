import assert from 'node:assert/strict';
import { test } from 'node:test';

import { actingAgent, hasRight, requireWithin } from '../../../src/handoff/rules/rights.ts';
import type { ServiceError } from '../../../src/kit/errors.ts';

const forbidden = (pattern: RegExp) => (error: unknown) => {
  const { code, message } = error as ServiceError;
  return code === 'FORBIDDEN' && pattern.test(message);
};

test('a key may do what its scopes say, or any act without scopes; what is for admins, only an admin key [H193]', () => {
  const may = (access: string, scopes: readonly string[] | null, admin = false) =>
    hasRight({ scopes, admin } as never, { access } as never);
  for (const access of ['any', 'public', 'link']) assert.equal(may(access, []), true, access);
  assert.deepEqual([may('admin', null), may('admin', null, true)], [false, true]);
  assert.deepEqual([may('work', null), may('work', ['work']), may('work', ['read'])], [true, true, false]);
  const alternative = hasRight({ scopes: ['manage'], admin: false }, { access: 'work', alternative: 'manage' });
  assert.equal(alternative, true);
});

test('a key acts as the agent that a request names, if it may, and otherwise as its only one [H195]', () => {
  assert.equal(actingAgent({}, undefined), undefined);
  assert.equal(actingAgent({}, 'b'), 'b');
  assert.equal(actingAgent({ agents: ['a'] }, undefined), 'a');
  assert.equal(actingAgent({ agents: ['a', 'b'] }, 'b'), 'b');
  assert.throws(() => actingAgent({ agents: ['a'] }, 'b'), forbidden(/may not act as b, only as a/));
  assert.throws(() => actingAgent({ agents: ['a', 'b'] }, undefined), forbidden(/Name the agent that acts/));
});

test('a key manages keys with at most its own scopes, agents and responder [H194]', () => {
  const own = { scopes: ['read', 'manage'], agents: ['a', 'b'], responder: 'dana' } as const;
  for (const other of [own, { ...own, scopes: ['read'] as const }, { ...own, agents: ['b'] }])
    assert.doesNotThrow(() => requireWithin(own, other));
  for (const other of [{}, own]) assert.doesNotThrow(() => requireWithin({}, other));
  assert.throws(() => requireWithin(own, { ...own, scopes: null }), forbidden(/lacks the scope work, respond/));
  assert.throws(() => requireWithin(own, { ...own, scopes: ['work'] }), forbidden(/lacks the scope work/));
  assert.throws(() => requireWithin(own, { ...own, agents: ['a', 'c'] }), forbidden(/only act as a, b/));
  assert.throws(() => requireWithin(own, { ...own, agents: null }), forbidden(/only act as a, b/));
  assert.throws(() => requireWithin(own, { ...own, responder: null }), forbidden(/answers as dana/));
});
