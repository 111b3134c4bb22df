import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { createHandoffClient, type HandoffClient, type Packet } from '../../src/client.ts';
import { readJson } from '../../src/kit/json.ts';
import { createHandoff } from '../../src/server.ts';
import { say } from '../demo/show.ts';

/**
 * `npm run demo:approvals`: an agent with a refund tool. 30 EUR pass by a rule; 500 EUR ask support; 20,000 EUR ask two of finance, of
 * whom one changes the amount. Then the agent's process dies before it executes, is started again, and executes once. The service is
 * its own, in memory.
 */

const folder = mkdtempSync(join(tmpdir(), 'baton-approvals-'));
const ledger = join(folder, 'ledger.jsonl');
const policy = readJson(readFileSync(new URL('../policy.json', import.meta.url), 'utf8')) as never;

/** Runs the agent as a process; resolves with what it printed, or its exit code if it died. */
function runAgent(environment: Record<string, string>): Promise<string> {
  const agent = spawn(process.execPath, [fileURLToPath(new URL('agent.ts', import.meta.url))], {
    env: { ...process.env, LEDGER: ledger, ...environment },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  agent.stdout.on('data', (part: Buffer) => {
    printed += part.toString();
  });
  return new Promise((resolve, reject) => {
    agent.on('error', reject);
    agent.on('exit', (code) => resolve(code === 0 ? printed.trim() : `died with exit code ${code}`));
  });
}

/** The next packet that asks about a call. */
async function askedAbout(client: HandoffClient, call: string): Promise<Packet> {
  for (;;) {
    const { packets } = await client.listAwaiting({ query: { view: 'full' } });
    const found = (packets as Packet[]).find(({ hitl }) => hitl?.action?.call_id === call);
    if (found !== undefined) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** What a step of a packet still needs, in words. */
const stateOf = ({ status, hitl }: Packet) =>
  hitl?.step ? `${hitl.step.given} of ${hitl.step.count} of ${hitl.step.from.join(', ')} have approved` : `the packet is ${status}`;

async function main(): Promise<void> {
  writeFileSync(ledger, '');
  await using service = await createHandoff();
  const { origin: SERVICE_URL } = new URL(service.url);
  const admin = createHandoffClient({ baseUrl: SERVICE_URL, apiKey: service.adminKey });
  const keyFor = async (body: Parameters<HandoffClient['createKey']>[0]['body']) => (await admin.createKey({ body })).key;
  const agent = { SERVICE_URL, SERVICE_API_KEY: await keyFor({ name: 'refunds', scopes: ['read', 'work'], agents: ['refunds'] }) };
  const as = async (responder: string) =>
    createHandoffClient({ baseUrl: SERVICE_URL, apiKey: await keyFor({ name: responder, scopes: ['read', 'respond'], responder }) });
  const [sam, dana, eli] = await Promise.all([as('sam'), as('dana'), as('eli')]);
  await admin.putGroup({ params: { name: 'support' }, body: { members: ['sam'] } });
  await admin.putGroup({ params: { name: 'finance' }, body: { members: ['dana', 'eli'] } });
  await admin.putPolicy({ params: { name: 'refunds' }, body: policy });
  console.log(`An agent refunds, at ${SERVICE_URL}. Up to 50 pass, from 10,000 two of finance approve, all else asks support.\n`);

  say(1, 'agent', `asks for 30: ${await runAgent({ ...agent, CALL: '1', AMOUNT: '30' })}`);

  const second = runAgent({ ...agent, CALL: '2', AMOUNT: '500' });
  const asked = await askedAbout(admin, '2');
  say(2, 'agent', `asks for 500: ${stateOf(asked)}`);
  await sam.respondPacket({ params: { id: asked.id }, body: { decision: 'approve', responded_by: 'sam' } });
  say(2, 'sam', 'approves');
  say(2, 'agent', await second);

  const third = { ...agent, CALL: '3', AMOUNT: '20000' };
  const dying = runAgent({ ...third, DIES: '1' });
  const { id, hitl, ...rest } = await askedAbout(admin, '3');
  say(3, 'agent', `asks for 20,000: ${stateOf({ id, hitl, ...rest })}`);
  const changed = { ...hitl!.action!.arguments, amount: 15_000 };
  say(3, 'dana', 'approves');
  await dana.respondPacket({ params: { id }, body: { decision: 'approve', responded_by: 'dana' } });
  say(3, 'eli', 'changes the amount to 15,000, which makes the approval of Dana void');
  const edited = await eli.respondPacket({ params: { id }, body: { decision: 'edit', arguments: changed, responded_by: 'eli' } });
  say(3, '', stateOf(edited));
  say(3, 'dana', 'approves what is shown now');
  await dana.respondPacket({ params: { id }, body: { decision: 'approve', responded_by: 'dana', digest: edited.hitl!.digest! } });
  say(3, 'agent', `${await dying}, before it executed`);
  say(3, 'agent', `is started again: ${await runAgent(third)}`);

  const executed = readFileSync(ledger, 'utf8').trim().split('\n');
  console.log(`\nThe ledger has ${executed.length} refunds, one for each approval:`);
  for (const line of executed) console.log(`  ${line}`);
  const { events } = await admin.packetHistory({ params: { id } });
  console.log('\nThe history of the last one:');
  for (const { event_type, actor } of events) say(undefined, '', `${event_type} by ${actor}`);
  if (executed.length !== 3) process.exitCode = 1;
}

try {
  await main();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
