import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import packageJson from '../../../package.json' with { type: 'json' };
import { freePort } from '../../../src/kit/free-port.ts';
import { output, refused, runCli, startCliBench } from '../../support/cli.ts';
import { startPeer } from '../../support/client-dependencies.ts';
import { startFallback } from '../../support/fallback.ts';
import { adminKey, createPacket, newTenant, packetRequest } from '../../support/service.ts';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The URL of a port that nothing listens on. */
const nowhere = async (): Promise<string> => `http://127.0.0.1:${await freePort()}/api/v1`;

describe('service-cli', () => {
  test('takes a packet from its creation to its completion, by the names of the specification and by their aliases [H293, H296]', async (t) => {
    const bench = await startCliBench(t);
    const flags = [
      '--source-id',
      'front',
      '--source-name',
      'Front',
      '--target-id',
      'back',
      '--summary',
      'Refund 4711',
      '--priority',
      'high',
    ];
    const id = (await output(bench, 'packets', 'create', ...flags, '--tag', 'a', '--tag', 'b', '-q')).trim();
    assert.match(id, uuid);
    const { body: packet } = await bench.service.call('GET', `/packets/${id}`);
    assert.deepEqual(packet.metadata.source_agent, { id: 'front', name: 'Front', framework: 'cli' });
    assert.deepEqual(packet.metadata.target_agent, { id: 'back', name: 'back' });
    assert.deepEqual([packet.metadata.tags, packet.metadata.priority], [['a', 'b'], 'high']);

    assert.match(await output(bench, 'get', id), /^Summary +Refund 4711$/m);
    assert.match(await output(bench, 'claim', id, '--agent', 'back', '--framework', 'cli'), /^Claimed by +back \(back\) at /m);
    const { body: claimed } = await bench.service.call('GET', `/packets/${id}`);
    assert.deepEqual(claimed.claimed_by, { agent_id: 'back', agent_name: 'back', framework: 'cli' });
    assert.match(await output(bench, 'packets', 'update', id, '--status', 'in_progress'), /^Status +in_progress$/m);
    assert.match(await output(bench, 'packets', 'complete', id), /^Status +completed$/m);
    const history = await output(bench, 'history', id);
    assert.deepEqual(
      [...history.matchAll(/ (created|claimed|in_progress|completed) /g)].map(([, event]) => event),
      ['created', 'claimed', 'in_progress', 'completed'],
    );
    assert.match(await output(bench, 'audit', '--packet', id, '--action', 'claimed'), /agent:back/);

    const child = (await output(bench, 'packets', 'chain', id, '--source-id', 'b', '--target-id', 'c', '--summary', 'Tell', '-q')).trim();
    assert.match(await output(bench, 'packets', 'get', child), new RegExp(`^Parent +${id}$`, 'm'));
    assert.match(await output(bench, 'packets', 'fail', child), /^Status +failed$/m);
    for (const command of [['list'], ['packets', 'list'], ['search', 'refund'], ['packets', 'search', 'refund']])
      assert.match(await output(bench, ...command), new RegExp(id), command.join(' '));
  });

  test('list filters by every option, and says how to get the next page [H293, H302]', async (t) => {
    const bench = await startCliBench(t);
    const agent = (id: string) => ({ id, name: id, framework: 'x' });
    for (const [source, target, priority] of [
      ['a', 'b', 'low'],
      ['a', 'c', 'high'],
      ['d', 'c', 'high'],
    ])
      await createPacket(bench.service, {
        metadata: { source_agent: agent(source!), target_agent: agent(target!), priority, tags: [source] },
      });
    const count = async (...args: string[]) => (await output(bench, 'list', '-q', ...args)).split('\n').filter(Boolean).length;
    assert.equal(await count(), 3);
    assert.equal(await count('--source-agent', 'a'), 2);
    assert.equal(await count('--target-agent', 'c', '--priority', 'high', '--tags', 'd'), 1);
    assert.equal(await count('--status', 'claimed,completed'), 0);
    assert.equal(await count('--created-after', '2026-03-02'), 0);
    assert.equal(await count('--created-before', '2026-03-02'), 3);
    assert.equal(await count('--limit', '2'), 2);
    assert.equal(await count('--limit', '2', '--offset', '2'), 1);
    const { stderr } = await bench.run(['list', '--limit', '2']);
    assert.match(stderr, /1 to 2 of 3 packets; .*--offset 2/);
    assert.equal((await bench.run(['list', '--limit', '2', '--quiet'])).stderr, '');
  });

  test('packets have times by flags, and are listed and taken by them', async (t) => {
    const bench = await startCliBench(t);
    const make = async (...flags: string[]) =>
      (await output(bench, 'packets', 'create', '--source-id', 'a', '--target-id', 'b', '--summary', 'Go on', '-q', ...flags)).trim();
    const plain = await make();
    const due = await make('--due-at', '2026-03-02T09:00:00Z');
    const later = await make('--not-before', '2026-03-02T09:00:00Z', '--due-at', '2026-03-01T09:00:00Z');
    const ids = async (...flags: string[]) => (await output(bench, 'list', '-q', ...flags)).split('\n').filter(Boolean);
    assert.deepEqual(await ids('--order', 'due'), [later, due, plain]);
    assert.deepEqual(await ids('--scheduled'), [later]);
    assert.deepEqual(await ids('--due-before', '2026-03-02'), [later]);
    await bench.service.handoff.runOnce.sweep();
    assert.deepEqual(await ids('--overdue'), [later]);
    await output(bench, 'packets', 'update', later, '--due-at', 'none');
    assert.deepEqual(await ids('--overdue'), []);
    assert.equal((await output(bench, 'packets', 'next', '--agent', 'b', '--order', 'due', '-q')).trim(), due);
  });

  test('--format json prints exactly the JSON of the server, and a bare list as an object [H302]', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    for (const [args, path] of [
      [['list', '--limit', '50'], '/packets'],
      [['get', id], `/packets/${id}`],
      [['history', id], `/packets/${id}/history`],
      [['audit', '--limit', '50'], '/audit'],
    ] as const) {
      const { stdout, stderr } = await bench.run([...args, '--format', 'json']);
      assert.deepEqual([stdout.trimEnd(), stderr], [(await bench.service.call('GET', path)).text, '']);
    }
    for (const noun of ['keys', 'tenants', 'hooks']) {
      const { stdout } = await bench.run([noun, 'list', '--format', 'json']);
      const { body } = await bench.service.call('GET', `/${noun}`);
      assert.deepEqual(JSON.parse(stdout), { [noun]: body, total: body.length });
    }
  });

  test('keys creates, lists and revokes keys; a key is shown only at its creation, and --quiet prints nothing else [H293, H302]', async (t) => {
    const bench = await startCliBench(t);
    const key = (await output(bench, 'keys', 'create', '--name', 'ci', '--tier', 'pro', '-q')).trim();
    assert.match(key, /^svc_/);
    assert.match(await output(bench, '--api-key', key, 'list', '--format', 'json'), /"total":0/);
    const listed = await output(bench, 'keys', 'list');
    assert.ok(!listed.includes(key));
    const id = listed
      .split('\n')
      .find((line) => line.includes(' ci '))!
      .slice(0, 36);
    await output(bench, 'keys', 'delete', id);
    refused(await bench.run(['list', '--api-key', key]), 1, /came from --api-key/);
    const bound = ['--agent', 'a', '--sees', 'own', '--queue', 'desk', '--queue', 'b', '-q'];
    const own = (await output(bench, 'keys', 'create', '--name', 'own', ...bound)).trim();
    const { sees, queues } = (await bench.service.call('GET', '/keys/self', { key: own })).body;
    assert.deepEqual([sees, queues], ['own', ['desk', 'b']]);
    const tenant = (await output(bench, 'tenants', 'create', '--name', 'Acme', '--tier', 'business', '-q')).trim();
    await output(bench, 'keys', 'create', '--name', 'theirs', '--tenant-id', tenant);
    assert.match(await output(bench, 'tenants', 'keys', tenant), / theirs /);
    assert.match(await output(bench, 'tenants', 'update', tenant, '--handoffs-per-day', '7'), /Packets per day +7/);
    assert.match(await output(bench, 'tenants', 'update', tenant, '--handoffs-per-day', 'tier'), /by tier/);
    assert.match(await output(bench, 'tenants', 'get', tenant), /Acme/);
    await output(bench, 'tenants', 'delete', tenant);
    refused(await bench.run(['tenants', 'get', tenant]), 1, /No such tenant/);
  });

  test('hooks registers, lists and removes webhooks [H293]', async (t) => {
    const bench = await startCliBench(t);
    const id = (
      await output(
        bench,
        'hooks',
        'create',
        '--url',
        'https://example.com/hook',
        '--secret',
        'sixteen characters',
        '--event',
        'packet.created',
        '-q',
      )
    ).trim();
    assert.match(await output(bench, 'hooks', 'list'), new RegExp(`${id} +yes +https://example.com/hook +packet.created`));
    assert.equal(await output(bench, 'hooks', 'deliveries', id, '--status', 'pending', '-q'), '');
    assert.equal(await output(bench, 'hooks', 'dlq', '-q'), '');
    assert.match(await output(bench, 'hooks', 'retry-all', '--hook', id, '--force'), /^0 retried, 0 skipped .*, 0 remaining$/m);
    refused(await bench.run(['hooks', 'replay', id]), 1, /No such/);
    refused(await bench.run(['hooks', 'create', '--url', 'https://example.com']), 2, /SERVICE_WEBHOOK_SECRET/);
    await output(bench, 'hooks', 'delete', id);
    assert.equal(await output(bench, 'hooks', 'list', '-q'), '');
  });

  test('a key or a secret in an argument, where the list of processes shows it, gets a warning that names what to use instead [H308]', async (t) => {
    const bench = await startCliBench(t);
    const hook = ['hooks', 'create', '--url', 'https://example.com/hook'];
    const secret = 'sixteen characters';
    const hookId = (await output(bench, ...hook, '--secret', secret, '-q')).trim();
    for (const [args, expected] of [
      [
        ['list', '--api-key', adminKey],
        /^Other users of this machine can see an API key .*SERVICE_API_KEY or api_key in \S+config\.toml\.$/m,
      ],
      [[...hook, '--secret', secret], /^Other users of this machine can see a secret on the command line; use SERVICE_WEBHOOK_SECRET\.$/m],
      [
        ['channels', 'create', '--kind', 'slack', '--target', `https://example.com/${encodeURIComponent(secret)}`],
        /^Other users of this machine can see a target on the command line; use SERVICE_CHANNEL_TARGET\.$/m,
      ],
      [['hooks', 'update', hookId, '--secret', secret], /can see a secret .*SERVICE_WEBHOOK_SECRET\.$/m],
    ] as const) {
      const { exitCode, stdout, stderr } = await bench.run(args);
      assert.equal(exitCode, 0, stderr);
      assert.match(stderr, expected);
      assert.doesNotMatch(stdout + stderr, new RegExp(`${adminKey}|${secret}`));
      assert.equal((await bench.run([...args, '--quiet'])).stderr, '');
    }
    const { id } = await createPacket(bench.service);
    const { stdout } = await bench.run(['packets', 'claim', id, '--agent', 'a', '--lease', '60', '--format', 'json']);
    const { token } = JSON.parse(stdout).lease;
    const renewed = await bench.run(['packets', 'renew', id, '--token', token]);
    assert.match(renewed.stderr, /^Other users of this machine can see the lease's token on the command line; use SERVICE_LEASE_TOKEN\.$/m);
    const inVariable = await bench.run(['packets', 'renew', id], { environment: { SERVICE_LEASE_TOKEN: token } });
    assert.deepEqual([renewed.exitCode, inVariable.exitCode, inVariable.stderr], [0, 0, '']);
    refused(await bench.run(['packets', 'renew', id]), 2, /--token, or SERVICE_LEASE_TOKEN/);
    const environment = { SERVICE_WEBHOOK_SECRET: secret };
    assert.doesNotMatch((await bench.run(['list'])).stderr + (await bench.run(hook, { environment })).stderr, /Other users/);
  });

  test('a flag takes precedence over the environment, then the file, then the default [H300]', async (t) => {
    const bench = await startCliBench(t);
    const { key } = await newTenant(bench.service);
    mkdirSync(join(bench.home, '.config/service'), { recursive: true });
    const file = join(bench.home, '.config/service/config.toml');
    writeFileSync(file, `server_url = "${bench.address}/api/v1"\napi_key = "${key}"\n`);
    const from = async (environment: Record<string, string>, ...args: string[]) =>
      (await runCli(['list', '-v', ...args], { environment: { HOME: bench.home, ...environment } })).stderr.split('\n')[0];
    assert.equal(await from({}), `server ${bench.address}/api/v1 (${file}), API key hidden (${file})`);
    assert.match((await from({ SERVICE_API_KEY: adminKey }))!, /hidden \(SERVICE_API_KEY\)$/);
    assert.match((await from({ SERVICE_API_KEY: adminKey }, '--api-key', key))!, /hidden \(--api-key\)$/);
    assert.match((await from({ SERVICE_URL: `${bench.address}/` }))!, /\(SERVICE_URL\)/);
    assert.match((await from({ SERVICE_URL: '' }, '--server-url', bench.address))!, /\(--server-url\)/);
    const xdg = join(bench.home, 'xdg');
    assert.match((await from({ XDG_CONFIG_HOME: xdg }))!, /^server http:\/\/localhost:8080\/api\/v1 \(the default\), API key none/);

    writeFileSync(file, 'server_url = "http://x"\nkey = "secret-text"\n');
    refused(
      await runCli(['list'], { environment: { HOME: bench.home } }),
      2,
      /has an unknown key, key; the keys are server_url and api_key/,
    );
    writeFileSync(file, Buffer.from('server_url = "http://caf\xe9"\n', 'latin1'));
    refused(
      await runCli(['list'], { environment: { HOME: bench.home } }),
      2,
      /config\.toml can't be read: it is not in UTF-8; save it in this encoding$/m,
    );
    writeFileSync(file, 'api_key = "secret-text\n');
    const broken = await runCli(['list'], { environment: { HOME: bench.home } });
    refused(broken, 2, /config\.toml can't be read/);
    assert.ok(!broken.stderr.includes('secret-text'));
  });

  test('--verbose logs requests and answers to standard error, but never the key [H302]', async (t) => {
    const bench = await startCliBench(t);
    const { stdout, stderr } = await bench.run(['list', '--verbose', '--format', 'json']);
    assert.match(stdout, /^\{"packets":\[\]/);
    assert.match(stderr, /^> GET http:\/\/127\.0\.0\.1:\d+\/api\/v1\/packets\?limit=20&offset=0$/m);
    assert.match(stderr, /^< 200 request \S+$/m);
    assert.ok(!stderr.includes(adminKey));
  });
});

test('packets watch prints one line per event, and resumes a broken stream', async (t) => {
  const event = (id: number, packet: object | null) =>
    `id: ${id}\nevent: packet.created\ndata: ${JSON.stringify({ type: 'packet.created', packet_id: 'p', data: packet, timestamp: '2026-03-01T09:30:00.000Z' })}\n\n`;
  const { address, received } = await startPeer(t, (reply, _, turn) => {
    if (turn === 3) return void reply.writeHead(401).end('{"detail":"The key is revoked.","code":"UNAUTHORIZED"}');
    reply.writeHead(200, { 'content-type': 'text/event-stream' });
    reply.end(
      `retry: 1\nevent: connected\ndata: {}\n\n${event(turn, turn === 1 ? { status: 'created', context: { summary: 'S\u001b[2J' } } : null)}`,
    );
  });
  const args = ['packets', 'watch', '--status', 'created,failed', '--agent', 'a', '-q', '--server-url', address, '--api-key', 'k'];
  const { exitCode, stdout, stderr } = await runCli(args, {});
  assert.deepEqual([exitCode, stderr.split('\n')[0]], [1, 'service-cli: The key is revoked.']);
  assert.equal(
    stdout,
    '2026-03-01T09:30:00.000Z  packet.created          p  created  S [2J\n2026-03-01T09:30:00.000Z  packet.created          p  -\n',
  );
  assert.deepEqual(
    received.map(({ url, headers }) => [decodeURIComponent(url!), headers['last-event-id']]),
    [undefined, '1', '2'].map((id) => ['/events?subscribe=status:created&subscribe=status:failed&subscribe=agent:a', id]),
  );
});

describe('service-cli packets', () => {
  test('get shows the question with its options, decisions, actions and the last messages; --full shows everything', async (t) => {
    const bench = await startCliBench(t);
    const conversation_state = [1, 2, 3, 4].map((turn) => ({ role: 'user', content: `Turn ${turn} ${'x'.repeat(600)}END${turn}` }));
    const { id } = await createPacket(bench.service, {
      context: {
        summary: 'Refund',
        conversation_state,
        artifacts: [{ key: 'invoice', value: { total: 50 } }],
        custom: { shop: 'north' },
      },
      decisions: [{ id: 'd', decision: 'Refund half', rationale: 'Policy 7', alternatives: ['Refuse'] }],
      actions: { pending: [{ id: 'a', description: 'Pay', assignee: 'billing' }], completed: [], failed: [] },
      hitl: { required: true, reason: 'Over 50', question: 'Refund?', options: ['Approve', 'Refuse'] },
    });
    const brief = await output(bench, 'get', id);
    for (const line of [
      /^Question +Refund\?$/m,
      /^Why +Over 50$/m,
      /^Option 2 +Refuse$/m,
      /^Decision +Refund half$/m,
      /^Pending +Pay \(billing\)$/m,
      /^Artifact +invoice$/m,
      /^Messages +the last 3 of 4; --full shows all$/m,
      /^Message +user: Turn 4 x+…$/m,
    ])
      assert.match(brief, line);
    assert.doesNotMatch(brief, /Turn 1 |Policy 7|north/);
    const full = await output(bench, 'packets', 'get', id, '--full');
    for (const line of [
      /^Message +user: Turn 1 x+END1$/m,
      /^Rationale +Policy 7$/m,
      /^Alternatives +\["Refuse"\]$/m,
      /^Artifact +invoice: \{"total":50\}$/m,
      /^Custom +\{"shop":"north"\}$/m,
    ])
      assert.match(full, line);
    assert.equal((await output(bench, 'get', id, '-q')).trim(), id);
  });

  test('ask lets the packet await a person, and delete expires or removes a packet', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    const asked = ['packets', 'ask', id, '--question', 'Refund?', '--reason', 'Over 50', '--option', 'Yes', '--option', 'No'];
    assert.match(await output(bench, ...asked, '--timeout', '60'), /^Status +awaiting_human$[\s\S]*^Option 2 +No$/m);
    const { body } = await bench.service.call('GET', `/packets/${id}`);
    assert.deepEqual([body.hitl.options, body.hitl.timeout_seconds, body.hitl.required], [['Yes', 'No'], 60, true]);
    refused(await bench.run(['packets', 'ask', id]), 1, /question is required/);
    refused(await bench.run(['packets', 'ask', id, '--question', 'Why?']), 1, /is open/);
    await output(bench, 'packets', 'delete', id);
    assert.equal((await bench.service.call('GET', `/packets/${id}`)).body.status, 'expired');
    await output(bench, 'packets', 'delete', id, '--hard');
    assert.equal((await bench.service.call('GET', `/packets/${id}`)).status, 404);
  });

  test('list --claimed-by shows the packets that an agent holds', async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    await createPacket(bench.service);
    await output(bench, 'claim', id, '--agent', 'back');
    assert.equal((await output(bench, 'list', '--claimed-by', 'back', '-q')).trim(), id);
  });
});

describe('service-cli ends with', () => {
  test('1 when another service answers at the address, and says which', async (t) => {
    const service = await startFallback(t);
    const environment = { HOME: '/nonexistent', SERVICE_URL: await service.fallback.start(), SERVICE_API_KEY: 'k' };
    refused(await runCli(['list'], { environment }), 1, /is "Baton fallback[^"]*", not this part of a handoff service/);
  });

  test("1 when the server refuses, with the server's sentence [H302, H300]", async (t) => {
    const bench = await startCliBench(t);
    const { id } = await createPacket(bench.service);
    await output(bench, 'claim', id, '--agent', 'a');
    refused(
      await bench.run(['claim', id, '--agent', 'b']),
      1,
      /^service-cli: The packet is claimed; a holds it\.\nservice-cli: Held by a since /,
    );
    refused(await bench.run(['get', 'unknown']), 1, /No such packet\./);
    refused(
      await runCli(['list'], { environment: { HOME: bench.home, SERVICE_URL: bench.address } }),
      1,
      /No API key was given; set one with --api-key, SERVICE_API_KEY or api_key in/,
    );
    refused(await bench.run(['list', '--created-after', 'yesterday']), 1, /created_after/);
    refused(await bench.run(['respond', id, '--response', 'x', '--by', 'dana']), 1, /claimed/);
  });

  test('2 for wrong usage, and suggests the nearest command for a misspelt one [H302]', async (t) => {
    const bench = await startCliBench(t);
    refused(await bench.run(['packet']), 2, /unknown command 'packet'\n\(Did you mean packets\?\)/);
    refused(await bench.run(['packets', 'lst']), 2, /Did you mean list/);
    refused(await bench.run(['list', '--statsu', 'x']), 2, /Did you mean --status/);
    refused(await bench.run(['list', '--limit', '201']), 2, /from 1 to 200/);
    refused(await bench.run(['list', '--priority', 'urgent']), 2, /Allowed choices are low, normal, high, critical/);
    refused(await bench.run(['claim', 'x']), 2, /--agent or --agent-id/);
    refused(await bench.run(['create', '--summary', 'x']), 2, /needs --source-id, --target-id, or a file with --file/);
    refused(await bench.run(['keys', 'create']), 2, /--name/);
    refused(await bench.run(['list', '--server-url', 'localhost:8080']), 2, /must be an http or https URL/);
    refused(await bench.run(['list', '--api-key', 'two words']), 2, /visible ASCII/);
    for (const kind of ['yaml', 'json', 'jsonl', 'txt'])
      refused(
        await bench.run(['create', '-f', `/no/such/file.${kind}`]),
        2,
        new RegExp(`^service-cli: /no/such/file\\.${kind} can't be read \\(ENOENT\\)\\.\\n$`),
      );
    const folder = join(bench.home, 'folder.jsonl');
    mkdirSync(folder);
    refused(await bench.run(['create', '-f', folder]), 2, /folder\.jsonl can't be read \(EISDIR\)\.\n$/);
    assert.equal((await bench.run([])).exitCode, 2);
  });

  test('3 when no server answers, with its address and how to set another [H302]', async () => {
    const url = await nowhere();
    const result = await runCli(['list'], { environment: { HOME: '/nonexistent', SERVICE_URL: url, SERVICE_API_KEY: 'k' } });
    refused(
      result,
      3,
      new RegExp(`No handoff service answers at ${url} \\(from SERVICE_URL\\)[\\s\\S]*--server-url, SERVICE_URL or server_url in`),
    );
    assert.equal(result.stdout, '');
  });

  test('0 for help and version [H302]', async () => {
    for (const args of [['--help'], ['packets', 'list', '--help'], ['help', 'claim']]) {
      const { exitCode, stdout, stderr } = await runCli(args, {});
      assert.deepEqual([exitCode, stderr], [0, '']);
      assert.match(stdout, /^Usage: service-cli/);
    }
    assert.deepEqual(await runCli(['--version'], {}), { exitCode: 0, stdout: `${packageJson.version}\n`, stderr: '' });
  });
});

describe('service-cli reads', () => {
  const yaml = `metadata:
  source_agent: {id: a, name: A, framework: f}
  target_agent: {id: b, name: B}
context:
  summary: From YAML
`;

  test('a packet as JSON or YAML from a file or standard input; flags override its fields [H309]', async (t) => {
    const bench = await startCliBench(t);
    const file = join(bench.home, 'packet.yaml');
    writeFileSync(file, yaml);
    assert.match(await output(bench, 'create', '-f', file), /^Summary +From YAML$/m);
    const json = JSON.stringify(packetRequest());
    for (const [input, args] of [
      [yaml, []],
      [json, []],
      [json, ['--summary', 'Changed', '--priority', 'low', '--tag', 't']],
    ] as const) {
      const { exitCode, stdout, stderr } = await bench.run(['create', '--file', '-', '--format', 'json', ...args], { input });
      assert.equal(exitCode, 0, stderr);
      if (args.length > 0) {
        const { context, metadata } = JSON.parse(stdout);
        assert.deepEqual(
          [context.summary, metadata.priority, metadata.tags, metadata.source_agent.id],
          ['Changed', 'low', ['t'], 'frontline'],
        );
      }
    }
  });

  test('many packets as JSON Lines, a list or YAML documents, and sends them in batches [H309]', async (t) => {
    const bench = await startCliBench(t);
    const lines = Array.from({ length: 250 }, (_, index) => JSON.stringify(packetRequest({ context: { summary: `Packet ${index}` } })));
    const file = join(bench.home, 'packets.jsonl');
    writeFileSync(file, `${lines.join('\n')}\n`);
    const { exitCode, stdout, stderr } = await bench.run(['create', '-f', file]);
    assert.equal(exitCode, 0, stderr);
    assert.equal(stdout.trim().split('\n').length, 250);
    assert.equal(stderr, '250 created, 0 refused.\n');
    assert.equal((await bench.service.call('GET', '/packets')).body.total, 250);
    for (const input of [`${lines[0]}\n${lines[1]}`, `[${lines[0]},${lines[1]}]`, `${yaml}---\n${yaml}`]) {
      const result = await bench.run(['create', '-f', '-', '-q'], { input });
      assert.equal(result.exitCode, 0, result.stderr);
      assert.equal(result.stdout.trim().split('\n').length, 2);
    }
    const answers = await bench.run(['create', '-f', file, '--format', 'json']);
    assert.deepEqual(
      answers.stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).created.length),
      [100, 100, 50],
    );
  });

  test('every name of a file, also one that a name of another line is read as by JSON.parse', async (t) => {
    const bench = await startCliBench(t);
    const json = JSON.stringify(packetRequest());
    const customs = ['{"x":1,"\\\\":2}', '{"x":1,"\\"":2}'];
    writeFileSync(
      join(bench.home, 'p.jsonl'),
      customs.map((custom) => json.replace('"context":{', `"context":{"custom":${custom},`)).join('\n'),
    );
    const { stdout } = await bench.run(['create', '-f', join(bench.home, 'p.jsonl'), '-q']);
    const created = await Promise.all(
      stdout
        .trim()
        .split('\n')
        .map((id) => bench.service.call('GET', `/packets/${id}`)),
    );
    // A test reads bodies by JSON.parse.
    assert.deepEqual(
      created.map(({ text }) => /"custom":(\{.*?\})/.exec(text)?.[1]),
      customs,
    );
  });

  test('a file with a byte order mark as one without [H420]', async (t) => {
    const bench = await startCliBench(t);
    const json = JSON.stringify(packetRequest());
    for (const [name, text] of [
      ['p.json', json],
      ['p.jsonl', `${json}\n\ufeff${json}\n`],
      ['p.yaml', yaml],
    ] as const) {
      writeFileSync(join(bench.home, name), `\ufeff${text}`);
      const { exitCode, stderr } = await bench.run(['create', '-f', join(bench.home, name)]);
      assert.equal(exitCode, 0, name + stderr);
    }
    const { exitCode, stderr } = await bench.run(['create', '-f', '-'], { input: `\ufeff${json}` });
    assert.equal(exitCode, 0, stderr);
    assert.equal((await bench.service.call('GET', '/packets')).body.total, 5);
  });

  test('many packets, in smaller batches if the server refuses the size [H309]', async (t) => {
    const bench = await startCliBench(t, { settings: { SERVICE_BATCH_MAX: '7' } });
    const input = Array.from({ length: 20 }, () => JSON.stringify(packetRequest())).join('\n');
    const { exitCode, stderr } = await bench.run(['create', '-f', '-'], { input });
    assert.deepEqual([exitCode, stderr], [0, '20 created, 0 refused.\n']);
  });

  test('invalid input, and reports the line and field of each error [H309]', async (t) => {
    const bench = await startCliBench(t);
    const create = (input: string | Buffer, name: string) => {
      writeFileSync(join(bench.home, name), input);
      return bench.run(['create', '-f', join(bench.home, name)]);
    };
    // What REST refuses since it is unclear or would be changed.
    const json = JSON.stringify(packetRequest());
    const twice = json.replace('{', '{"metadata":{},');
    refused(await create(twice, 'p.json'), 2, /p\.json: metadata appears twice\.\n$/);
    refused(await create(`${json}\n${twice}\n`, 'p.jsonl'), 1, /p\.jsonl:2: metadata appears twice\.\n1 created, 1 refused\./);
    const large = json.replace('"context":{', '"context":{"custom":{"n":1e999},');
    refused(await create(large, 'p.json'), 2, /p\.json: context\.custom\.n is a number that is too large\.\n$/);
    refused(await create(yaml.replace('From YAML', '.inf'), 'p.yaml'), 2, /p\.yaml: context\.summary is a number that is too large\.\n$/);
    for (const name of ['p.json', 'p.jsonl', 'p.yaml'])
      refused(await create(Buffer.from('{"caf\xe9": 1}', 'latin1'), name), 2, /is not in UTF-8; save it in this encoding\.\n$/);
    refused(await create('a: [1\nb: 2', 'p.yaml'), 2, /p\.yaml:2:1: invalid YAML, /);
    refused(await create('{"a": 1,\n "b": }', 'p.json'), 2, /p\.json:2:7: invalid JSON: Unexpected token '}'\./);
    const broken = `${JSON.stringify(packetRequest())}\n{"b": }\n${JSON.stringify(packetRequest())}\n`;
    refused(await create(broken, 'p.jsonl'), 1, /p\.jsonl:2:7: invalid JSON.*\n2 created, 1 refused\./);
    refused(await create('', 'empty.yaml'), 2, /empty\.yaml is empty/);
    refused(await create(yaml.replace('From YAML', '""'), 'p.yaml'), 1, /p\.yaml:5: context\.summary /);
    refused(await create(yaml.replace(', framework: f', ''), 'p.yaml'), 1, /p\.yaml:2: metadata\.source_agent\.framework is required/);
    refused(
      await create(`${yaml}---\n${yaml.replace('name: B', 'nam: B')}`, 'p.yaml'),
      1,
      /p\.yaml:\d: metadata\.target_agent\.name[\s\S]*1 of 2 packets were refused/,
    );
    const lines = `${JSON.stringify(packetRequest())}\n\n${JSON.stringify(packetRequest({ context: {} }))}\n`;
    refused(await create(lines, 'p.jsonl'), 1, /p\.jsonl:3: context\.summary is required\.\n1 created, 1 refused\./);
  });

  test('the answer to a question from a prompt, as the number of an option or any text [H293, H311]', async (t) => {
    const bench = await startCliBench(t);
    const ask = async (options = ['Approve', 'Refuse']) => {
      const { id } = await createPacket(bench.service);
      const hitl = { required: true, reason: 'Over 50', question: 'Refund?', options };
      await bench.service.call('PATCH', `/packets/${id}`, { body: { status: 'awaiting_human', hitl } });
      return id as string;
    };
    const first = await ask();
    assert.match(await output(bench, 'packets', 'awaiting'), /Refund\?/);
    const { exitCode, stdout, stderr } = await bench.run(['respond', first, '--responded-by', 'dana'], { input: '\n2\n' });
    assert.equal(exitCode, 0, stderr);
    assert.match(
      stderr,
      /^Summary: .*\nTo be done: .*\nDecided: .*\nRefund\?\nWhy: Over 50\n {2}1 {2}Approve\n {2}2 {2}Refuse\nAnswer \(1 to 2, or any text\): /,
    );
    assert.match(stdout, /^Answer +Refuse \(dana, typed, not verified\)$/m);
    const second = await ask();
    const half = await bench.run(['respond', second, '--by', 'dana'], { input: 'Half of it\n' });
    assert.match(half.stdout, /^Answer +Half of it \(dana, typed, not verified\)$/m);
    // A number that is an option itself is that option, and only a plain number is the place of one.
    for (const [typed, recorded] of [
      ['3', '3'],
      ['1', '2'],
      ['0x2', '0x2'],
      ['1.0', '1.0'],
    ] as const) {
      const numbers = await bench.run(['respond', await ask(['2', '3', '4']), '--by', 'dana'], { input: `${typed}\n` });
      assert.match(numbers.stdout, new RegExp(`^Answer +${recorded.replace('.', '\\.')} \\(dana, typed, not verified\\)$`, 'm'), typed);
    }
    refused(await bench.run(['respond', await ask(), '--by', 'dana'], { input: '' }), 2, /No answer was given/);
    refused(await bench.run(['respond', await ask(), '--response', 'Yes']), 2, /Name the person who answers with --by/);
    const { body: own } = await bench.service.call('POST', '/keys', { body: { name: 'desk', responder: 'mia' } });
    const bound = await bench.run(['respond', await ask(), '--response', 'Yes', '--api-key', own.key]);
    assert.match(bound.stdout, /^Answer +Yes \(mia\)$/m);
    const { stdout: given } = await bench.run([
      'respond',
      await ask(),
      '--response',
      'Yes',
      '--responded-by',
      'eve',
      '--notes',
      'N',
      '--format',
      'json',
    ]);
    assert.deepEqual([JSON.parse(given).hitl.response, JSON.parse(given).hitl.notes], ['Yes', 'N']);
  });
});
