import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';

import type { Packet } from '../../../src/client.ts';
import { type CliBench, refused, startCliBench } from '../../support/cli.ts';
import { until } from '../../support/until.ts';

const pre = { session_id: 's', hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: { command: 'ls' }, tool_use_id: 'toolu_1' };
const permission = { session_id: 's', hook_event_name: 'PermissionRequest', tool_name: 'Bash', tool_input: { command: 'ls' } };
const codex = { ...permission, session_id: 'c', turn_id: 't', model: 'm' };

/** What runs the hook with a key of its own, and what decides as a person about the next question. */
async function hooked(t: TestContext) {
  const bench: CliBench = await startCliBench(t);
  const keyOf = async (rights: object) =>
    (await bench.service.call('POST', '/keys', { body: { name: 'k', ...rights } })).body.key as string;
  const environment = { SERVICE_API_KEY: await keyOf({ scopes: ['read', 'work'] }) };
  const dana = await keyOf({ scopes: ['read', 'respond'], responder: 'dana' });
  const hook = async (input: unknown, ...flags: string[]) => {
    const result = await bench.run(['approve-hook', ...flags], {
      input: typeof input === 'string' ? input : JSON.stringify(input),
      environment,
    });
    return { ...result, answer: result.stdout === '' ? undefined : JSON.parse(result.stdout).hookSpecificOutput };
  };
  const decide = async (decision: object): Promise<Packet['hitl']> => {
    const packet = await until(
      async () => (await bench.service.call('GET', '/packets/awaiting?view=full', { key: dana })).body.packets[0] as Packet,
    );
    const body = { responded_by: 'dana', ...decision };
    const { status, text } = await bench.service.call('POST', `/packets/${packet.id}/respond`, { key: dana, body });
    assert.equal(status, 200, text);
    return packet.hitl;
  };
  return { bench, hook, decide };
}

test('a hook allows, with what a person changed, or denies with what the person says', async (t) => {
  const { hook, decide } = await hooked(t);
  const edited = { command: 'ls -l' };
  const cases: [object, object, object][] = [
    [pre, { decision: 'approve' }, { hookEventName: 'PreToolUse', permissionDecision: 'allow' }],
    [pre, { decision: 'edit', arguments: edited }, { hookEventName: 'PreToolUse', permissionDecision: 'allow', updatedInput: edited }],
    [
      pre,
      { decision: 'reject', message: 'No' },
      { hookEventName: 'PreToolUse', permissionDecision: 'deny', permissionDecisionReason: 'No' },
    ],
    [
      permission,
      { decision: 'edit', arguments: edited },
      { hookEventName: 'PermissionRequest', decision: { behavior: 'allow', updatedInput: edited } },
    ],
    [
      permission,
      { decision: 'respond', message: 'It is empty' },
      { hookEventName: 'PermissionRequest', decision: { behavior: 'deny', message: 'It is empty' } },
    ],
    [codex, { decision: 'approve' }, { hookEventName: 'PermissionRequest', decision: { behavior: 'allow' } }],
    [
      { ...codex, session_id: 'other' },
      { decision: 'edit', arguments: edited },
      {
        hookEventName: 'PermissionRequest',
        decision: { behavior: 'deny', message: 'Not approved as it is. These arguments would be: {"command":"ls -l"}' },
      },
    ],
  ];
  for (const [index, [input, decision, expected]] of cases.entries()) {
    const own = 'tool_use_id' in input ? { ...input, tool_use_id: `toolu_${index}` } : { ...input, session_id: `session ${index}` };
    const [{ exitCode, answer, stderr }] = await Promise.all([hook(own), decide(decision)]);
    assert.deepEqual([exitCode, answer, stderr], [0, expected, '']);
  }
});

test('a hook asks for the program unless it names an agent, below the time that programs give it, and an interruption approves nothing [H724]', async (t) => {
  const { bench, hook, decide } = await hooked(t);
  for (const [input, flags, agent] of [
    [pre, [], 'claude-code'],
    [codex, [], 'codex'],
    [{ ...pre, tool_use_id: 'own' }, ['--agent', 'mine'], 'mine'],
  ] as const) {
    const [{ exitCode }, asked] = await Promise.all([hook(input, ...flags), decide({ decision: 'reject' })]);
    assert.deepEqual([exitCode, asked!.asked_by!.agent_id, asked!.timeout_seconds], [0, agent, 590]);
  }
  const waiting = hook({ ...pre, tool_use_id: 'late' });
  await until(async () => (await bench.service.call('GET', '/packets/awaiting')).body.packets[0] as Packet);
  process.emit('SIGHUP');
  refused(await waiting, 2, /not approved: the hook was interrupted/);
});

test('a hook that starts over gets its decision, and asks again about a permission that was given', async (t) => {
  const { hook, decide } = await hooked(t);
  const [{ answer }, asked] = await Promise.all([hook(permission), decide({ decision: 'reject', message: 'Never' })]);
  assert.equal(answer.decision.message, 'Never');
  assert.match(asked!.action!.call_id!, /^s:[0-9a-f]{64}$/, 'session and digest stand for the id of the call');
  assert.equal((await hook(permission)).answer.decision.message, 'Never');
  await Promise.all([hook(pre), decide({ decision: 'approve' })]);
  const [again, second] = await Promise.all([hook(pre), decide({ decision: 'reject' })]);
  assert.match(second!.reason, /^The permission was given at 2026-.*, and the tool may have run\.$/);
  assert.equal(again.answer.permissionDecision, 'deny');
});

test('a hook that does not wait defers the call, and has the decision when the session is resumed', async (t) => {
  const { hook, decide } = await hooked(t);
  for (const _ of [1, 2]) assert.equal((await hook(pre, '--defer')).answer.permissionDecision, 'defer');
  await decide({ decision: 'approve' });
  assert.equal((await hook(pre, '--defer')).answer.permissionDecision, 'allow');
  assert.equal((await hook(pre, '--defer')).answer.permissionDecision, 'defer', 'the permission was given once');
});

test('a hook blocks whatever is no decision, and leaves other tools to the program [H724]', async (t) => {
  const { bench, hook } = await hooked(t);
  assert.deepEqual(await hook({ ...pre, tool_name: 'Read' }, '--only', 'Bash', '--only', 'mcp__*'), {
    ...{ exitCode: 0, stdout: '', stderr: '', answer: undefined },
  });
  refused(
    await hook({ ...pre, tool_name: 'mcp__shop__refund', hook_event_name: 'Stop' }, '--only', 'mcp__*'),
    2,
    /Stop of Claude Code is no hook/,
  );
  refused(await hook({ ...pre, turn_id: 't' }), 2, /PreToolUse of Codex is no hook/);
  refused(await hook('no JSON'), 2, /not approved: standard input is not the JSON of a hook/);
  refused(await hook({ ...pre, tool_input: [] }), 2, /no tool_name and tool_input/);
  refused(await hook({ ...permission, session_id: '' }), 2, /neither tool_use_id nor session_id/);
  refused(await hook(pre, '--timeout', '0'), 2, /from 1 to 86400/);
  refused(await hook(pre, '--timeout', '1'), 2, /Nobody decided about Bash within 1 seconds/);
  const away = { SERVICE_URL: 'http://127.0.0.1:9' };
  refused(
    await bench.run(['approve-hook'], { input: JSON.stringify(pre), environment: away }),
    2,
    /not approved: No handoff service answers/,
  );
  refused(await bench.run(['approve-hook'], { input: JSON.stringify(pre), environment: { SERVICE_API_KEY: 'svc_x' } }), 2, /not approved/);
});
