import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Turns } from '../../src/kit/turns.ts';
import { countTurns } from '../support/until.ts';

test('of several pieces of work one runs in each turn of the event loop', async () => {
  const turns = new Turns();
  await countTurns(async (turn) => {
    const ran: number[] = [];
    const piece = async (owner: string) => {
      await turns.next(owner);
      ran.push(turn());
    };
    await Promise.all(['a', 'a', 'b', 'a', 'b', 'c'].map(piece));
    assert.equal(new Set(ran).size, 6, `${ran}`);
  });
});

test('owners alternate, whoever waits for more; what is in memory already comes first of its owner', async () => {
  const turns = new Turns();
  const ran: string[] = [];
  const piece = async (owner: string, name: string, first = false) => {
    await turns.next(owner, { first });
    ran.push(name);
  };
  await Promise.all([piece('a', 'a1'), piece('a', 'a2'), piece('a', 'a3'), piece('b', 'b1'), piece('b', 'b2'), piece('b', 'b0', true)]);
  assert.deepEqual(ran, ['a1', 'b0', 'a2', 'b1', 'a3', 'b2']);
});

test('after a long piece the event loop goes round several times without one', async () => {
  const turns = new Turns();
  await countTurns(async (turn) => {
    await turns.next('a');
    const [until, begun] = [performance.now() + 20, turn()];
    while (performance.now() < until);
    const waiting = turns.next('b');
    await waiting;
    assert.ok(turn() - begun > 2, `${turn() - begun}`);
  });
});
