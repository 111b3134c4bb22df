import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { refused, startCliBench } from '../../support/cli.ts';

const scheduleFile = fileURLToPath(new URL('../../../examples/schedule.yaml', import.meta.url));
const policyFile = fileURLToPath(new URL('../../../examples/policy.json', import.meta.url));

test('an action is asked about, listed and decided, and policies, groups and delegations are set by commands', async (t) => {
  const bench = await startCliBench(t);
  const keyOf = async (rights: object) =>
    (await bench.service.call('POST', '/keys', { body: { name: 'k', ...rights } })).body.key as string;
  const as = (key: string) => ({ environment: { SERVICE_API_KEY: key } });
  const succeedAs = async (options: Parameters<typeof bench.run>[1], ...args: string[]) => {
    const { exitCode, stdout, stderr } = await bench.run(args, options);
    assert.equal(exitCode, 0, `${args.join(' ')}: ${stdout}${stderr}`);
    return stdout;
  };
  const succeed = (...args: string[]) => succeedAs({}, ...args);
  await succeed('groups', 'set', 'finance', '--member', 'dana', '--member', 'eli');
  assert.match(await succeed('groups', 'list'), /finance +dana, eli/);
  assert.match(await succeed('groups', 'get', 'finance'), /"eli"/);
  assert.match(await succeed('policies', 'set', 'refunds', policyFile), /refunds is published, version 1/);
  assert.match(await succeed('policies', 'list'), /refunds +1 +0 +enforce +refund +3/);
  assert.match(await succeed('policies', 'try', '--agent', 'a', '--tool', 'refund', '--arguments', '{"amount": 20000}'), /"rule": 2/);
  for (const given of ['{}', '{"amount": "20000"}'])
    assert.match(await succeed('policies', 'try', '--agent', 'a', '--tool', 'refund', '--arguments', given), /"rule": 3/, 'no amount');
  assert.match(await succeed('policies', 'get', 'refunds'), /"version": 1/);
  await succeed('delegations', 'set', 'dana', '--to', 'fay', '--until', '2099-01-01');
  assert.match(await succeed('delegations', 'list'), /dana +fay/);
  refused(await bench.run(['policies', 'try', '--agent', 'a', '--tool', 'refund', '--arguments', '[]']), 2, /JSON object/);
  const [id = ''] =
    /[0-9a-f-]{36}/.exec(await succeed('approvals', 'ask', '--agent', 'a', '--tool', 'pay', '--call-id', 'c', '--quiet')) ?? [];
  assert.match(await succeed('approvals', 'list'), new RegExp(`${id} +a +pay`));
  refused(await bench.run(['approvals', 'decide', id, '--decision', 'approve', '--by', 'dana']), 1, /another key/);
  assert.match(await succeed('policies', 'replay', 'refunds'), /"actions": 0/);
  assert.match(await succeed('policies', 'replay', 'other', policyFile, '--limit', '5'), /"disagreeing": \[\]/);
  assert.match((await bench.run(['standing', 'list'])).stderr, /No standing approvals/);
  const agent = as(await keyOf({ scopes: ['read', 'work'], agents: ['a'] }));
  const dana = as(await keyOf({ scopes: ['read', 'respond'], responder: 'dana' }));
  const askFor = async (call: string, ...more: string[]) =>
    (await succeedAs(agent, 'approvals', 'ask', '--agent', 'a', '--tool', 'pay', '--call-id', call, '--quiet', ...more)).trim();
  const given = ['--arguments', '{"amount": 3}', '--by', 'dana'];
  const edited = await succeedAs(dana, 'approvals', 'decide', await askFor('e'), '--decision', 'edit', ...given, '--format', 'json');
  assert.deepEqual(JSON.parse(edited).hitl.decision.arguments, { amount: 3 });
  // By whom is known by the key.
  const standing = ['--decision', 'approve', '--remember', 'tool', '--seconds', '60'];
  await succeedAs(dana, 'approvals', 'decide', await askFor('s', '--arguments', '{"amount": 1}'), ...standing);
  const nameless = as(await keyOf({ scopes: ['read', 'respond'] }));
  const byNobody = ['approvals', 'decide', await askFor('n'), '--decision', 'approve'];
  refused(await bench.run(byNobody, nameless), 1, /responded_by/);
  const row = await succeed('standing', 'list');
  assert.match(row, /dana +a +pay/);
  await succeedAs(dana, 'standing', 'remove', /[0-9a-f-]{36}/.exec(row)![0]);
  refused(await bench.run(['standing', 'remove', id]), 1, /No such standing approval/);
  for (const args of [
    ['policies', 'remove', 'refunds'],
    ['groups', 'remove', 'finance'],
    ['delegations', 'remove', 'dana'],
  ])
    await succeed(...args);
});

test('a schedule is set from a file, listed, run and removed by commands, and a fault in the file is found by its line', async (t) => {
  const bench = await startCliBench(t);
  const succeed = async (...args: string[]) => {
    const { exitCode, stdout, stderr } = await bench.run(args);
    assert.equal(exitCode, 0, `${args.join(' ')}: ${stdout}${stderr}`);
    return stdout;
  };
  assert.match(await succeed('schedules', 'set', 'weekly', scheduleFile), /weekly is written, version 1; next at 2026-03-02T08:00/);
  assert.match(await succeed('schedules', 'list'), /weekly +0 9 \* \* 1 +Europe\/Berlin +2026-03-02T08:00/);
  assert.deepEqual((await succeed('schedules', 'next', 'weekly', '--count', '2')).trim().split('\n'), [
    '2026-03-02T08:00:00.000Z',
    '2026-03-09T08:00:00.000Z',
  ]);
  const id = (await succeed('schedules', 'run', 'weekly', '--quiet')).trim();
  assert.equal((await bench.service.call('GET', `/packets/${id}`)).body.metadata.schedule.name, 'weekly');
  assert.match(await succeed('schedules', 'get', 'weekly'), /"timezone": "Europe\/Berlin"/);
  const broken = join(mkdtempSync(join(tmpdir(), 'baton-')), 'broken.yaml');
  writeFileSync(broken, readFileSync(scheduleFile, 'utf8').replace('0 9 * * 1', '0 0 31 2 *'));
  refused(await bench.run(['schedules', 'set', 'weekly', broken]), 1, /broken\.yaml:2:.*names no day that exists/);
  refused(await bench.run(['schedules', 'set', 'weekly', scheduleFile, '--if-match', '"7"']), 1, /schedule/);
  await succeed('schedules', 'remove', 'weekly');
  assert.equal((await bench.run(['schedules', 'list'])).stdout.trim(), '');
});
