import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { createHandoffClient, type Packet } from '../src/client.ts';
import { createHandoff } from '../src/server.ts';

const given = { order: 'ORD-4711', amount: 500 };
const decisions = [
  [{ decision: 'approve' }, /refunded 500/, 'ORD-4711 500\n'],
  [{ decision: 'edit', arguments: { ...given, amount: 40 } }, /refunded 40/, 'ORD-4711 40\n'],
  [{ decision: 'reject', message: 'Ask again in May' }, /Ask again in May/, ''],
] as const;

/** Runs a program to its end. */
function run(program: string, env: Record<string, string>): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, [fileURLToPath(new URL(program, import.meta.url))], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (part: Buffer) => {
    output += part.toString();
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output }));
  });
}

for (const [program, call] of [
  ['approve-ai-sdk.ts', 'call-ai-sdk'],
  ['approve-openai-agents.ts', 'call-agents-js'],
  ['approve-claude-agent-sdk.ts', 'order-4711:refund'],
] as const)
  for (const [decision, said, executed] of decisions)
    test(`${program} goes on in another process after a decision to ${decision.decision}`, async (t) => {
      const folder = mkdtempSync(join(tmpdir(), 'baton-approvals-'));
      t.after(() => rmSync(folder, { recursive: true, force: true }));
      await using service = await createHandoff();
      const { origin: SERVICE_URL } = new URL(service.url);
      const admin = createHandoffClient({ baseUrl: SERVICE_URL, apiKey: service.adminKey });
      const dana = (await admin.createKey({ body: { name: 'dana', scopes: ['read', 'respond'], responder: 'dana' } })).key;
      const { key } = await admin.createKey({ body: { name: 'refunds', scopes: ['read', 'work'], agents: ['refunds'] } });
      const person = createHandoffClient({ baseUrl: SERVICE_URL, apiKey: dana });
      const LEDGER = join(folder, 'ledger');
      const env = { SERVICE_URL, SERVICE_API_KEY: key, STATE: join(folder, 'state'), LEDGER };
      // The first process dies between the approval and the execution.
      const dying = run(program, { ...env, DIES: '1' });
      for (;;) {
        const { packets } = await person.listAwaiting({ query: { view: 'full' } });
        const [asked] = packets as Packet[];
        if (asked === undefined) continue;
        assert.equal(asked.hitl?.action?.call_id, call);
        await person.respondPacket({ params: { id: asked.id }, body: { responded_by: 'dana', ...decision } });
        break;
      }
      assert.deepEqual([(await dying).code, existsSync(LEDGER)], [9, false]);
      const { code, output } = await run(program, env);
      assert.equal(code, 0, output);
      assert.match(output, said);
      assert.equal(existsSync(LEDGER) ? readFileSync(LEDGER, 'utf8') : '', executed);
    });
