import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { Writer } from '../../../src/handoff/cli/output/writer.ts';
import { runCli } from '../../../src/handoff/cli/program.ts';
import { tools } from '../../../src/handoff/mcp/tools.ts';
import { routes } from '../../../src/handoff/model/api.ts';
import { a2a, messageOf } from '../../support/a2a.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { callTool } from '../../support/mcp.ts';
import { createPacket } from '../../support/service.ts';
import { type SharedService, shareService } from '../../support/shared.ts';
import { stores } from '../../support/stores.ts';

const description = 'Refunds need the order: custom.order_id.';
const sentence = 'context.custom.order_id is required.';
const contract = {
  schema: {
    properties: {
      context: { required: ['custom'], properties: { custom: { required: ['order_id'] }, artifacts: { maxItems: 1 } } },
    },
  },
  description,
  examples: [{ context: { summary: 'A refund', custom: { order_id: 'ORD-1' } } }],
};

const unfit = {
  metadata: { source_agent: { id: 'frontline', name: 'Frontline', framework: 'x' }, target_agent: { id: 'resolver', name: 'Resolver' } },
  context: { summary: 'A refund', custom: {} },
};

/** Runs `service-cli` in this process. */
async function cli(service: SharedService, ...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const text = { out: '', err: '' };
  const to = (name: 'out' | 'err') =>
    new Writer(
      {
        write(part: string) {
          text[name] += part;
        },
      } as never,
      {},
    );
  const address = await service.listen();
  const environment = { SERVICE_URL: `${address}/api/v1`, SERVICE_API_KEY: service.key, HOME: '/nowhere' };
  const code = await runCli({ stdin: () => process.stdin, out: to('out'), err: to('err'), isInteractive: false, args, environment });
  return { code, ...text };
}

const mcpArguments = { target_agent: 'resolver', summary: 'A refund', custom: {} };

/** Each way to a new packet, and what it says. A new way in has to be added here. */
const ways: Record<string, (service: SharedService, file: string) => Promise<string>> = {
  'POST /packets': async (service) => (await service.call('POST', '/packets', { body: unfit })).text,
  'POST /packets/{id}/chain': async (service) => {
    const other = { ...unfit, metadata: { ...unfit.metadata, target_agent: { id: 'free', name: 'Free' } } };
    const { id } = await createPacket(service, other);
    return (await service.call('POST', `/packets/${id}/chain`, { body: unfit })).text;
  },
  'POST /packets/batch': async (service) => (await service.call('POST', '/packets/batch', { body: { packets: [unfit, unfit] } })).text,
  'POST /schedules/{name}/run': async (service) => {
    await service.call('PUT', '/schedules/unfit', { body: { cron: '@daily', timezone: 'UTC', packet: unfit } });
    return (await service.call('POST', '/schedules/unfit/run')).text;
  },
  'MCP hand_over': async (service) => JSON.stringify(await callTool(service, 'hand_over', mcpArguments)),
  'A2A SendMessage': async (service) => (await a2a(service, 'SendMessage', messageOf('A refund'))).text,
  'A2A SendStreamingMessage': async (service) => (await a2a(service, 'SendStreamingMessage', messageOf('A refund'))).text,
  'A2A message:send': async (service) =>
    (await service.call('POST', '//a2a/message:send', { body: messageOf('A refund'), headers: { 'a2a-version': '1.0' } })).text,
  'service-cli packets create': async (service, file) => (await cli(service, 'packets', 'create', '--file', file)).err,
  'service-cli packets create, from a list': async (service, file) => {
    writeFileSync(`${file}.jsonl`, `${JSON.stringify(unfit)}\n${JSON.stringify(unfit)}\n`);
    return (await cli(service, 'packets', 'create', '--file', `${file}.jsonl`)).err;
  },
};

test('the operations and tools that create packets are those of this file', () => {
  const creating = Object.values(routes).filter(({ responses }) => {
    const { schema } = (responses as { 201?: { schema?: object } })[201] ?? {};
    return JSON.stringify(schema ?? {}).includes('"conversation_state"');
  });
  assert.deepEqual(creating.map(({ method, path }) => `${method} ${path}`).sort(), [
    // A packet that its own agent holds, which is handed to nobody.
    'POST /approvals',
    'POST /packets',
    'POST /packets/batch',
    'POST /packets/{id}/chain',
    // No new packet.
    'POST /packets/{id}/questions',
    'POST /schedules/{name}/run',
    // Its packet is checked when it is made.
    'PUT /schedules/{name}',
  ]);
  assert.deepEqual(
    Object.keys(tools).filter((name) => 'conversation_state' in tools[name as keyof typeof tools].input.properties),
    ['hand_over'],
  );
});

for (const store of stores) {
  describe(`A contract holds on every way in, on ${store.name}`, () => {
    for (const [name, attempt] of Object.entries(ways)) {
      test(`${name} says what is wrong, and creates nothing`, async (t) => {
        const service = await shareService(store);
        const folder = temporaryFolder(t);
        const file = join(folder, 'packet.json');
        writeFileSync(file, JSON.stringify(unfit));
        await service.call('PUT', '/agents/resolver/contract', { body: contract });
        const text = await attempt(service, file);
        assert.ok(text.includes(sentence), text);
        const { body } = await service.call('GET', '/packets?target_agent=resolver');
        assert.equal(body.total, 0);
      });
    }

    test('a refused hand_over carries the description and every fault, and get_contract says what to send', async () => {
      const service = await shareService(store);
      await service.call('PUT', '/agents/resolver/contract', { body: contract });
      const two = { ...mcpArguments, artifacts: ['a', 'b'].map((key) => ({ key, value: 1 })) };
      const refused = await callTool(service, 'hand_over', two);
      assert.equal(refused.isError, true);
      const [{ text }] = refused.content;
      assert.match(text, /^context\.custom\.order_id is required\.\ncontext\.artifacts can have at most 1 items\. \(CONTRACT_VIOLATION\)/);
      assert.ok(text.includes(description), text);

      const found = await callTool(service, 'get_contract', { target_agent: 'resolver' });
      const { agent_id, version, schema, examples } = found.structuredContent;
      assert.deepEqual(
        { agent_id, version, schema, examples },
        { agent_id: 'resolver', version: 1, schema: contract.schema, examples: contract.examples },
      );
      const done = await callTool(service, 'hand_over', { ...mcpArguments, custom: examples[0].context.custom });
      assert.equal(done.isError, undefined, JSON.stringify(done));
      const none = await callTool(service, 'get_contract', { target_agent: 'anyone' });
      assert.deepEqual([none.isError, none.structuredContent.version], [undefined, null]);
    });

    test('the extended card of A2A has the description and the examples of each agent', async () => {
      const service = await shareService(store);
      await service.call('PUT', '/agents/resolver/contract', { body: contract });
      await createPacket(service, { ...unfit, metadata: { ...unfit.metadata, target_agent: { id: 'free', name: 'Free' } } });
      const { body } = await a2a(service, 'GetExtendedAgentCard', undefined);
      const skills = body.result.skills.map(({ id, description: about, examples }: Record<string, unknown>) => ({ id, about, examples }));
      assert.deepEqual(
        skills.filter(({ id }: { id: string }) => id === 'resolver'),
        [{ id: 'resolver', about: description, examples: [JSON.stringify(contract.examples[0])] }],
      );
      assert.match(skills.find(({ id }: { id: string }) => id === 'frontline').about, /^Hands a message/);
    });

    test('service-cli publishes, shows, checks and removes a contract', async (t) => {
      const service = await shareService(store);
      const folder = temporaryFolder(t);
      const [file, packet] = [join(folder, 'contract.json'), join(folder, 'packet.json')];
      writeFileSync(file, JSON.stringify(contract, null, 1));
      writeFileSync(packet, JSON.stringify(unfit, null, 1));
      const set = await cli(service, 'agents', 'contract', 'set', 'resolver', file);
      assert.equal(set.code, 0, set.err);
      assert.match(set.out, /^Agent +resolver\nVersion +1\n/);
      assert.equal((await cli(service, 'agents', 'contract', 'set', 'resolver', file, '--if-match', '"7"')).code, 1);
      const got = await cli(service, '--format', 'json', 'agents', 'contract', 'get', 'resolver');
      assert.deepEqual(JSON.parse(got.out).schema, contract.schema);

      const checked = await cli(service, 'agents', 'contract', 'check', packet);
      assert.equal(checked.code, 1);
      assert.match(checked.err, /would be refused\.\n.*packet\.json:\d+: context\.custom\.order_id is required\./);
      const made = await cli(service, 'packets', 'create', '--file', packet);
      assert.ok(made.err.includes(`resolver asks for: ${description}`), made.err);

      writeFileSync(packet, JSON.stringify({ ...unfit, context: { summary: 'A refund', custom: { order_id: 1 } } }));
      assert.equal((await cli(service, 'agents', 'contract', 'check', packet)).code, 0);
      writeFileSync(file, JSON.stringify({ schema: { properties: { context: { pattern: 1 } } } }, null, 1));
      const wrong = await cli(service, 'agents', 'contract', 'set', 'resolver', file);
      assert.match(wrong.err, /contract\.json:\d+: schema\.properties\.context\.pattern must be a string/);
      assert.equal((await cli(service, 'agents', 'contract', 'remove', 'resolver')).code, 0);
      assert.equal((await cli(service, 'agents', 'contract', 'get', 'resolver')).code, 1);
    });
  });
}
