import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { createExample } from '../../../src/handoff/model/examples.ts';
import type { Packet, PatchRequest } from '../../../src/handoff/model/packet.ts';
import { mergeContent } from '../../../src/handoff/rules/merge.ts';
import { newPacket } from '../../../src/handoff/rules/new-packet.ts';
import { refusal } from '../../support/refusal.ts';

const now = new Date('2026-03-01T09:30:00.000Z');

/** A packet with something in every part. */
function fullPacket(changes: Partial<Packet> = {}): Packet {
  const request = {
    ...structuredClone(createExample),
    decisions: [
      { id: 'd1', decision: 'Treat it as a duplicate charge', rationale: 'Two charges, one order', decided_by: 'frontline' },
      { id: 'd2', decision: 'Refund', rationale: 'Within 14 days' },
    ],
    actions: {
      pending: [
        { id: 'a1', description: 'Refund the second charge', assignee: 'resolver', depends_on: ['a2'] },
        { id: 'a2', description: 'Find the second charge', assignee: 'resolver' },
      ],
      completed: [{ id: 'a3', description: 'Greet', result: 'Done' }],
      failed: [{ id: 'a4', description: 'Call the bank', error: 'No answer' }],
    },
    dependencies: [{ id: 'p1', type: 'api', description: 'The payment API', status: 'up' }],
  };
  return { ...newPacket(request as never, { id: '0197b5a6-8c3e-7f01-9a2b-3c4d5e6f7a8b', now, agentId: undefined }).packet, ...changes };
}

const merge = (patch: PatchRequest, packet = fullPacket()): Packet => mergeContent(packet, patch);

function refusedField(work: () => unknown): string | null {
  const { status, code, field } = refusal(work);
  assert.deepEqual([status, code], [400, 'VALIDATION_ERROR']);
  return field;
}

describe('an update keeps everything that it leaves out', () => {
  test('an empty update leaves the packet unchanged [H44]', () => {
    assert.deepEqual(merge({}), fullPacket());
  });

  test('empty parts leave the packet unchanged', () => {
    const nothing: PatchRequest = {
      metadata: {},
      context: {},
      decisions: [],
      actions: { pending: [], completed: [], failed: [] },
      dependencies: [],
    };
    assert.deepEqual(merge(nothing), fullPacket());
  });

  test('each part leaves the others unchanged [H44]', () => {
    const parts: [keyof Packet, PatchRequest][] = [
      ['metadata', { metadata: { priority: 'low' } }],
      ['context', { context: { summary: 'Found.' } }],
      ['decisions', { decisions: [{ id: 'd1', rationale: 'Better put' }] }],
      ['actions', { actions: { pending: [{ id: 'a1', assignee: 'desk' }] } }],
      ['dependencies', { dependencies: [{ id: 'p1', status: 'down' }] }],
    ];
    for (const [part, patch] of parts) {
      const { [part]: changed, ...rest } = merge(patch);
      const { [part]: before, ...others } = fullPacket();
      assert.notDeepEqual(changed, before, part);
      assert.deepEqual(rest, others, part);
    }
  });

  test('the original packet is not mutated', () => {
    const before = fullPacket();
    merge({ decisions: [{ id: 'd1', rationale: 'New' }], actions: { completed: [{ id: 'a1', result: 'Done' }] } }, before);
    assert.deepEqual(before, fullPacket());
  });
});

describe('lists are merged by id', () => {
  test('an existing item is merged field by field and keeps its place [H44]', () => {
    const { decisions } = merge({ decisions: [{ id: 'd1', rationale: 'Same order, same minute' }] });
    const [first, second] = fullPacket().decisions;
    assert.deepEqual(decisions, [{ ...first, rationale: 'Same order, same minute' }, second]);
  });

  test('a new item is appended', () => {
    const added = { id: 'd3', decision: 'Refund the postage', rationale: 'Goodwill' };
    assert.deepEqual(merge({ decisions: [added] }).decisions, [...fullPacket().decisions, added]);
  });

  test('a list inside an item is replaced as a whole: only items have ids [H44]', () => {
    const { pending } = merge({ actions: { pending: [{ id: 'a1', depends_on: [] }] } }).actions;
    assert.deepEqual(pending[0], { ...fullPacket().actions.pending[0], depends_on: [] });
  });

  test('new fields are added to an item, and unknown fields are kept', () => {
    const { dependencies } = merge({ dependencies: [{ id: 'p1', source: 'bank', weight: 3 } as never] });
    assert.deepEqual(dependencies, [{ ...fullPacket().dependencies[0], source: 'bank', weight: 3 }]);
  });

  test('an id that occurs twice in one update is applied twice, in order', () => {
    const added = { id: 'd3', decision: 'Wait', rationale: 'Bank holiday' };
    const { decisions } = merge({ decisions: [added, { id: 'd3', rationale: 'Two bank holidays' }] });
    assert.deepEqual(decisions.slice(2), [{ ...added, rationale: 'Two bank holidays' }]);
  });

  test('of several items created with the same id all stay, and the last is updated [H52]', () => {
    const twins = [
      { id: 'd1', decision: 'One', rationale: '' },
      { id: 'd1', decision: 'Other', rationale: '' },
    ];
    const packet = fullPacket({ decisions: twins });
    assert.deepEqual(merge({ decisions: [{ id: 'd2', decision: 'New', rationale: '' }] }, packet).decisions.slice(0, 2), twins);
    assert.deepEqual(merge({ decisions: [{ id: 'd1', rationale: 'Why' }] }, packet).decisions, [
      twins[0],
      { ...twins[1], rationale: 'Why' },
    ]);
  });

  test('ids are compared exactly: case-sensitive, and JavaScript property names are nothing special', () => {
    const added = (id: string) => ({ id, decision: 'D', rationale: 'R' });
    const { decisions } = merge({ decisions: [added('D1'), added('constructor'), added('length')] });
    assert.deepEqual(
      decisions.map(({ id }) => id),
      ['d1', 'd2', 'D1', 'constructor', 'length'],
    );
  });
});

describe('a new item must be complete', () => {
  const complete = {
    decisions: { id: 'x', decision: 'D', rationale: 'R' },
    dependencies: { id: 'x', type: 'api', description: 'D' },
    'actions.pending': { id: 'x', description: 'D', assignee: 'me' },
    'actions.completed': { id: 'x', description: 'D', result: 'R' },
    'actions.failed': { id: 'x', description: 'D', error: 'E' },
  };
  const patchOf = (path: string, items: unknown[]): PatchRequest => {
    const [part = '', list] = path.split('.');
    return { [part]: list === undefined ? items : { [list]: items } } as PatchRequest;
  };

  for (const [path, item] of Object.entries(complete)) {
    for (const field of Object.keys(item).filter((name) => name !== 'id')) {
      test(`${path}: without ${field} it is refused with its full path, including the index`, () => {
        const { [field]: _, ...incomplete } = item as Record<string, unknown>;
        assert.equal(
          refusedField(() => merge(patchOf(path, [incomplete]))),
          `${path}.0.${field}`,
        );
        assert.equal(
          refusedField(() => merge(patchOf(path, [{ ...item, id: 'y' }, incomplete]))),
          `${path}.1.${field}`,
        );
      });
    }

    test(`${path}: it is accepted with only the required fields`, () => {
      assert.doesNotThrow(() => merge(patchOf(path, [item])));
    });
  }

  test('an item of another list does not supply missing fields', () => {
    assert.equal(
      refusedField(() => merge({ decisions: [{ id: 'p1', decision: 'D' }] })),
      'decisions.0.rationale',
    );
    assert.equal(
      refusedField(() => merge({ actions: { pending: [{ id: 'a3' }] } })),
      'actions.pending.0.description',
    );
  });
});

describe('an action that ends is removed from pending', () => {
  test('for completed, with its description [H46]', () => {
    const { actions } = merge({ actions: { completed: [{ id: 'a1', result: 'Refunded', completed_by: 'resolver' }] } });
    assert.deepEqual(
      actions.pending.map(({ id }) => id),
      ['a2'],
    );
    assert.deepEqual(actions.completed.at(-1), {
      id: 'a1',
      description: 'Refund the second charge',
      result: 'Refunded',
      completed_by: 'resolver',
    });
    assert.equal(actions.completed.length, 2);
  });

  test('for failed', () => {
    const { actions } = merge({ actions: { failed: [{ id: 'a2', description: 'Look for it', error: 'Not there' }] } });
    assert.deepEqual(
      actions.pending.map(({ id }) => id),
      ['a1'],
    );
    assert.deepEqual(actions.failed.at(-1), { id: 'a2', description: 'Look for it', error: 'Not there' });
  });

  test('and from the other list of ended ones: the latest outcome counts [H464]', () => {
    const failed = merge({ actions: { failed: [{ id: 'a1', error: 'Timed out' }] } });
    const retried = merge({ actions: { completed: [{ id: 'a1', result: 'Refunded' }] } }, failed);
    assert.deepEqual(retried.actions.failed, fullPacket().actions.failed);
    assert.deepEqual(retried.actions.completed.at(-1), { id: 'a1', description: 'Refund the second charge', result: 'Refunded' });
    const reversed = merge({ actions: { failed: [{ id: 'a1', error: 'Charged back' }] } }, retried);
    assert.deepEqual(reversed.actions.completed, fullPacket().actions.completed);
    assert.deepEqual(reversed.actions.failed.at(-1), { id: 'a1', description: 'Refund the second charge', error: 'Charged back' });
    const both = merge({ actions: { failed: [{ id: 'a1', error: 'No' }], completed: [{ id: 'a1', result: 'Yes' }] } });
    assert.deepEqual([both.actions.failed.length, both.actions.completed.at(-1)?.id], [fullPacket().actions.failed.length, 'a1']);
  });

  test('even if the same update lists it as pending', () => {
    const { actions } = merge({
      actions: {
        pending: [
          { id: 'a1', assignee: 'desk' },
          { id: 'a5', description: 'Write to the customer', assignee: 'desk' },
        ],
        completed: [{ id: 'a1', description: 'Refund', result: 'Refunded' }],
      },
    });
    assert.deepEqual(
      actions.pending.map(({ id }) => id),
      ['a2', 'a5'],
    );
  });

  test('an action that was never pending may end, and pending stays unchanged', () => {
    const { actions } = merge({ actions: { completed: [{ id: 'a9', description: 'Say sorry', result: 'Said' }] } });
    assert.deepEqual(actions.pending, fullPacket().actions.pending);
    assert.equal(actions.completed.length, 2);
  });

  test('its result or error is still required [H46]', () => {
    assert.equal(
      refusedField(() => merge({ actions: { completed: [{ id: 'a1' }] } })),
      'actions.completed.0.result',
    );
    assert.equal(
      refusedField(() => merge({ actions: { failed: [{ id: 'a1' }] } })),
      'actions.failed.0.error',
    );
  });
});

describe('context and metadata are merged at their top level', () => {
  test('a given field is replaced as a whole [H44]', () => {
    const packet = fullPacket({ context: { ...fullPacket().context, custom: { ticket: 1, queue: 'a' } } });
    const { context } = merge({ context: { custom: { ticket: 2 }, conversation_state: [] } }, packet);
    assert.deepEqual(context, { ...packet.context, custom: { ticket: 2 }, conversation_state: [] });
  });

  test('priority, tags and target agent change; source agent and creation stay [H44]', () => {
    const target_agent = { id: 'desk', name: 'Desk' };
    const { metadata } = merge({ metadata: { priority: 'critical', tags: [], target_agent } });
    assert.deepEqual(metadata, { ...fullPacket().metadata, priority: 'critical', tags: [], target_agent });
  });
});
