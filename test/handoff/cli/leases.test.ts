import assert from 'node:assert/strict';
import { describe, test } from 'node:test';

import { output, refused, startCliBench } from '../../support/cli.ts';
import { createPacket } from '../../support/service.ts';
import { waiting } from '../../support/until.ts';

const line = (text: string, name: string) => text.match(new RegExp(`^${name} +(.+)$`, 'm'))?.[1];

describe('service-cli packets', () => {
  test('claim --lease shows the token once; update, complete and fail require it [H296]', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    const claimed = await output(bench, 'packets', 'claim', id, '--agent', 'back', '--lease', '60');
    assert.equal(line(claimed, 'Lease'), 'until 2026-03-01T09:31:00.000Z');
    const token = line(claimed, 'Token')!;
    assert.equal(line(await output(bench, 'get', id), 'Token'), undefined);
    for (const command of [
      ['update', id, '--status', 'in_progress'],
      ['complete', id],
      ['fail', id],
    ])
      for (const more of [[], ['--token', 'another']]) refused(await bench.run(['packets', ...command, ...more]), 1, /lease/);
    assert.equal(line(await output(bench, 'get', id), 'Revision'), '2');
    await output(bench, 'packets', 'update', id, '--status', 'in_progress', '--token', token);
    assert.equal(line(await output(bench, 'packets', 'complete', id, '--token', token), 'Status'), 'completed');

    const { id: other } = await createPacket(bench.service);
    const [same, secret] = (await output(bench, 'claim', other, '--agent', 'back', '--lease', '60', '-q')).trim().split(' ');
    assert.equal(same, other);
    assert.equal(line(await output(bench, 'packets', 'fail', other, '--token', secret!), 'Status'), 'failed');
    refused(await bench.run(['claim', other, '--agent', 'back', '--lease', '0']), 2, /from 1 to 86400/);
  });

  test('next claims the next packet by priority and age; without one it says so and exits with 1 [H296]', async (t) => {
    const bench = await startCliBench(t);
    const { id, metadata } = await createPacket(bench.service);
    const target = metadata.target_agent.id;
    const urgent = await createPacket(bench.service, { metadata: { ...metadata, priority: 'critical', tags: ['rare'] } });
    const claimed = await output(bench, 'packets', 'next', '--agent', target, '--wait', '60', '--lease', '300');
    assert.deepEqual([line(claimed, 'ID'), line(claimed, 'Status')], [urgent.id, 'claimed']);
    assert.match(line(claimed, 'Token')!, /^lease_/);
    const none = await bench.run(['packets', 'next', '--agent', target, '--tags', 'rare', '--priority', 'low,critical']);
    refused(none, 1, new RegExp(`^service-cli: No packet is available for ${target} with these tags and priorities\\.\n$`));
    assert.equal(none.stdout, '');
    const any = ['packets', 'next', '--agent-id', 'other', '--target-agent', '*'];
    const { stdout } = await bench.run([...any, '--format', 'json']);
    assert.deepEqual([JSON.parse(stdout).id, JSON.parse(stdout).claimed_by.agent_id], [id, 'other']);
    refused(await bench.run(['packets', 'next']), 2, /--agent or --agent-id/);
    refused(await bench.run([...any, '--wait', '61']), 2, /from 0 to 60/);
    refused(await bench.run([...any, '--priority', 'urgent']), 1, /priorities\.0/);
    const answer = bench.run([...any, '--wait', '60', '--format', 'json']);
    await waiting(bench.service, 1);
    await bench.service.handoff.stop();
    const waited = await answer;
    refused(waited, 1, /^service-cli: No packet became available in time\.\n$/);
    assert.equal(waited.stdout, '');
  });

  test('renew restarts the lease, and is refused after the lease has expired [H296]', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    const token = line(await output(bench, 'claim', id, '--agent', 'back', '--lease', '60'), 'Token')!;
    bench.service.clock.turn(30);
    assert.equal(line(await output(bench, 'packets', 'renew', id, '--token', token), 'Until'), '2026-03-01T09:31:30.000Z');
    const longer = await output(bench, 'packets', 'renew', id, '--token', token, '--lease', '600', '--format', 'json');
    assert.deepEqual(JSON.parse(longer), { lease: { generation: 1, expires_at: '2026-03-01T09:40:30.000Z' } });
    refused(await bench.run(['packets', 'renew', id]), 2, /--token/);
    bench.service.clock.turn(600);
    refused(await bench.run(['packets', 'renew', id, '--token', token]), 1, /lease/);
  });

  test('release returns a packet to created, for its holder and with the lease token [H296]', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    const key = (await output(bench, 'keys', 'create', '--name', 'worker', '-q')).trim();
    await output(bench, 'claim', id, '--agent', 'back');
    refused(await bench.run(['packets', 'release', id, '--agent', 'other', '--api-key', key]), 1, /back|hold/);
    assert.equal(line(await output(bench, 'packets', 'release', id, '--agent', 'back', '--api-key', key), 'Status'), 'created');
    const token = line(await output(bench, 'claim', id, '--agent', 'back', '--lease', '60'), 'Token')!;
    refused(await bench.run(['packets', 'release', id]), 1, /lease/);
    assert.equal(line(await output(bench, 'packets', 'release', id, '--token', token), 'Status'), 'created');
  });
});

describe('service-cli', () => {
  test('agents lists the agents with the packets they hold and that wait for them [H293]', async (t) => {
    const bench = await startCliBench(t);
    assert.match((await bench.run(['agents'])).stderr, /No agents\./);
    const { id, metadata } = await createPacket(bench.service);
    bench.service.clock.turn(5);
    await output(bench, 'claim', id, '--agent', 'back');
    assert.match(await output(bench, 'agents'), /^back +2026-03-01T09:30:05\.000Z +1 +0 +-$/m);
    assert.deepEqual((await output(bench, 'agents', '-q')).trim().split('\n'), ['back', metadata.source_agent.id]);
    assert.match((await bench.run(['agents', '--limit', '1'])).stderr, /1 to 1 of 2 agents; .*--offset 1/);
  });

  test('stats shows what waits, is held and was done, and each hour as a row', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    await createPacket(bench.service);
    await output(bench, 'claim', id, '--agent', 'back');
    const shown = await output(bench, 'stats', '--since', '2026-03-01T09:00:00Z');
    assert.deepEqual([line(shown, 'Packets waiting'), line(shown, 'Packets held'), line(shown, 'Packets created')], ['1', '1', '2']);
    assert.match(shown, /^HOUR +CREATED +COMPLETED +FAILED +EXPIRED +ANSWERED +WAITING +HELD +ASKED$/m);
    assert.match(shown, /^2026-03-01 09:00( +[02]){5} +1 +1 +0$/m);
    assert.equal(JSON.parse(await output(bench, 'stats', '--format', 'json')).work.waiting, 1);
  });

  test('keys rotate replaces a key, which remains valid for the overlap [H293]', async (t) => {
    const bench = await startCliBench(t);
    const old = await output(bench, 'keys', 'create', '--name', 'ci');
    const key = (await output(bench, 'keys', 'rotate', line(old, 'ID')!, '--overlap', '60', '-q')).trim();
    assert.notEqual(key, line(old, 'Key'));
    await output(bench, 'list', '--api-key', line(old, 'Key')!);
    bench.service.clock.turn(61);
    refused(await bench.run(['list', '--api-key', line(old, 'Key')!]), 1, /key/);
    await output(bench, 'list', '--api-key', key);
  });

  test('hooks update changes the given fields, and hooks ping sends a test delivery [H293]', async (t) => {
    const bench = await startCliBench(t);
    const secret = { environment: { SERVICE_WEBHOOK_SECRET: 'sixteen characters' } };
    const created = await bench.run(['hooks', 'create', '--url', 'https://receiver.example/hook', '-q'], secret);
    const id = created.stdout.trim();
    const off = await output(bench, 'hooks', 'update', id, '--no-active', '--event', 'packet.failed', '--event', 'packet.expired');
    assert.deepEqual([line(off, 'Active')?.slice(0, 2), line(off, 'Events')], ['no', 'packet.failed, packet.expired']);
    refused(await bench.run(['hooks', 'ping', id]), 1, /activate it first/);
    const on = await output(bench, 'hooks', 'update', id, '--active', '--url', 'https://receiver.example/other');
    assert.deepEqual(
      [line(on, 'Active'), line(on, 'URL'), line(on, 'Events')],
      ['yes', 'https://receiver.example/other', 'packet.failed, packet.expired'],
    );
    refused(await bench.run(['hooks', 'update', id]), 2, /Nothing to change/);
    refused(await bench.run(['hooks', 'update', id, '--secret']), 2, /Give a secret by --secret, or SERVICE_WEBHOOK_SECRET/);
    refused(await bench.run(['hooks', 'update', id, '--secret'], { environment: { SERVICE_WEBHOOK_SECRET: 'short' } }), 1, /secret/);
    assert.equal((await bench.run(['hooks', 'update', id, '--secret'], secret)).exitCode, 0);
    const ping = await output(bench, 'hooks', 'ping', id);
    assert.deepEqual([line(ping, 'Webhook'), line(ping, 'Event')], [id, 'ping']);
    assert.equal((await output(bench, 'hooks', 'deliveries', id, '-q')).trim(), line(ping, 'ID'));
  });
});
