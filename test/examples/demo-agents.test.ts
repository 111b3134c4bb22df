import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../src/kit/free-port.ts';
import { temporaryFolder } from '../support/folder.ts';
import { runProgram } from '../support/program.ts';
import { adminKey, createPacket, packetRequest, startService, type TestService } from '../support/service.ts';
import { stores } from '../support/stores.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const isInstalled = existsSync(join(root, 'examples/demo-agents/node_modules'));

/** Runs `npm run demo:agents` to its end. */
async function runDemo(environment: Record<string, string> = {}, args: readonly string[] = []) {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const [command, file] = scripts['demo:agents'].split(' ');
  assert.equal(command, 'node');
  const env = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...environment };
  const { exitCode, stdout, stderr } = await runProgram([process.execPath, file, ...args], { cwd: root, env });
  return { exitCode, errors: stderr, lines: stdout.split('\n').map((line) => line.replace(/ {2,}/g, ' ').trim()) };
}

/** A file with these lines, deleted after the test. */
function fileOf(t: TestContext, lines: readonly string[]): string {
  const folder = temporaryFolder(t);
  const file = join(folder, 'cases.jsonl');
  writeFileSync(file, lines.join('\n'));
  return file;
}

/** The events of a packet's history with their actors; of a key only that it is one. */
async function historyOf(service: TestService, id: string): Promise<string[]> {
  const { body } = await service.call('GET', `/packets/${id}/history`);
  return body.events.map(({ event_type, actor }: Record<string, string>) => `${event_type} ${actor!.replace(/^key:.*/, 'key')}`);
}

describe('npm run demo:agents', { skip: !isInstalled }, () => {
  test('three agents hand one case over by REST, MCP and A2A, a person answers, and the history shows one chain', async () => {
    const { exitCode, errors, lines } = await runDemo();
    assert.equal(errors, '');
    assert.equal(exitCode, 0);
    const told = lines.join('\n').replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID');
    for (const step of [
      'line 1 refused The contract of resolver (version 1) refuses the packet: context.custom is ...',
      'line 1 resolver asks for: Refunds need the order: custom.order_id, such as ORD-4711.',
      'line 1 REST frontline creates ID for resolver',
      'line 1 MCP resolver claims ID',
      'line 1 A2A supervisor sees input-required: Refund the second charge?',
      'line 1 person dana answers on the page of an answer link: Approve',
      'line 1 MCP resolver hears from dana: Approve',
      'line 1 REST frontline completes it',
    ])
      assert.ok(told.includes(step), `${step}\n${told}`);
    const history = told
      .slice(told.indexOf('line 1 history'))
      .replace(/key:ID/, 'key')
      .split('\n\n')[0]!;
    assert.deepEqual(history.split('\n'), [
      'line 1 history ID, the first packet of the chain',
      'created by agent:frontline',
      'claimed by agent:resolver',
      'in_progress by agent:resolver',
      'awaiting_human by agent:resolver',
      'answer_link_created by key',
      'hitl_responded by human:dana',
      'completed by agent:resolver',
      'chained by agent:supervisor',
      'line 1 history ID, chained to it',
      'created by agent:supervisor',
      'claimed by agent:frontline',
      'completed by agent:frontline',
    ]);
  });

  for (const store of stores) {
    test(`plays the cases of a file at a service on ${store.name}, and takes nothing else that waits there`, async (t) => {
      const service = await startService(t, { store });
      const SERVICE_URL = `${await service.handoff.start()}/api/v1`;
      const other = await createPacket(service);
      const hitl = { required: true, reason: 'r', question: 'Make an exception?', options: ['refuse', 'approve'] };
      const agents = { source_agent: { id: '受付', name: '受付', framework: 'f' }, target_agent: { id: 'résolution', name: 'R' } };
      const file = fileOf(t, [
        JSON.stringify(packetRequest({ hitl, metadata: agents, actions: { pending: [] } })),
        '',
        JSON.stringify({ ...packetRequest(), shape: 'round' }),
        JSON.stringify(packetRequest()),
      ]);
      const { exitCode, errors, lines } = await runDemo({ SERVICE_URL, SERVICE_API_KEY: adminKey }, [file]);
      assert.equal(errors, '');
      assert.equal(exitCode, 1, 'a refused line');
      assert.ok(
        lines.some((line) => /^line 3 refused shape/.test(line)),
        lines.join('\n'),
      );
      assert.equal(lines.at(-2), '2 cases completed, 1 refused, 22 events in the histories');

      assert.equal((await service.call('GET', `/packets/${other.id}`)).body.status, 'created');
      const { packets } = (await service.call('GET', '/packets?view=full&order=asc')).body;
      const [, first, told, second] = packets;
      assert.deepEqual([packets.length, told.parent_packet_id, first.parent_packet_id], [5, first.id, null]);
      assert.deepEqual([first.hitl.response, first.hitl.responded_by], ['refuse', 'dana']);
      assert.deepEqual(second.actions.pending, []);
      assert.deepEqual(await historyOf(service, first.id), [
        'created agent:受付',
        'claimed agent:résolution',
        'in_progress agent:résolution',
        'awaiting_human agent:résolution',
        'answer_link_created key',
        'hitl_responded human:dana',
        'completed agent:résolution',
        'chained agent:supervisor',
      ]);
      assert.deepEqual(await historyOf(service, told.id), ['created agent:supervisor', 'claimed agent:受付', 'completed agent:受付']);
    });
  }

  test("explains in a sentence why it can't begin", async (t) => {
    const service = await startService(t);
    const SERVICE_URL = await service.handoff.start();
    const nowhere = `http://127.0.0.1:${await freePort()}`;
    for (const [environment, args, sentence] of [
      [{ SERVICE_URL }, [], /^SERVICE_API_KEY must hold an API key/],
      [{ SERVICE_URL, SERVICE_API_KEY: 'a-wrong-key-0123456789' }, [], /key/],
      [{ SERVICE_URL: nowhere, SERVICE_API_KEY: adminKey }, [], /ECONNREFUSED/],
      [{}, ['/no/such/file.jsonl'], /^\/no\/such\/file\.jsonl can't be read \(ENOENT\)\.$/m],
      [{}, [fileOf(t, ['{}', '{'])], /^Line 2 of .* is not JSON\.$/m],
      [{}, ['--help'], /^Usage: npm run demo:agents/],
    ] as const) {
      const { exitCode, errors } = await runDemo(environment, args);
      assert.equal(exitCode, 1);
      assert.match(errors, sentence);
      assert.doesNotMatch(errors, /\n +at |a-wrong-key/);
    }
  });
});
