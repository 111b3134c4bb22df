// Runs a checkout of a2aproject/a2a-tck (branch 1.0-dev) against the service:
//   node tools/a2a-tck/run.ts CHECKOUT [PYTHON] [PYTEST_ARGUMENT...]
// PYTHON must have the dependencies that the checkout's pyproject.toml names; the default is python3.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

import { createHandoff } from '../../src/handoff/main.ts';
import { readHandoffSettings } from '../../src/handoff/settings.ts';

const key = 'a2a-tck-admin-key-0123456789';
const [checkout, python = 'python3', ...pytestArguments] = process.argv.slice(2);
if (checkout === undefined) throw new Error('Name the directory of a checkout of a2aproject/a2a-tck.');

// The TCK sends no API key, no token with its push notification configurations, and one message id for several messages,
// which the service takes for repeats. This adds the key, a token, and a number to each message id.
let address = '';
let messages = 0;
function adapted(text: string): string {
  return JSON.stringify(JSON.parse(text), (name, value: unknown) => {
    if (name === 'messageId') {
      messages += 1;
      return `${value as string}-${messages}`;
    }
    const isConfig = typeof value === 'object' && value !== null && 'url' in value && ('authentication' in value || 'id' in value);
    return isConfig && !Array.isArray(value) ? { token: 'a-token-for-the-tck', ...value } : value;
  });
}
async function forward(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const { method, headers, url = '/' } = incoming;
  const { 'content-length': _, ...rest } = headers;
  const given = Buffer.concat(await incoming.toArray()).toString();
  let body = given;
  try {
    body = adapted(given);
  } catch {
    // Tests of malformed JSON.
  }
  // Its client of JSON-RPC adds a slash to the address of the card.
  const path = url === '/a2a/' ? '/a2a' : url;
  const forwarded = request(address + path, { method, headers: { ...rest, 'x-api-key': key } }, (answer) => {
    outgoing.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(outgoing);
    outgoing.flushHeaders();
  });
  outgoing.once('close', () => forwarded.destroy());
  forwarded.on('error', () => outgoing.destroy());
  forwarded.end(body);
}
const proxy = createServer((incoming, outgoing) => void forward(incoming, outgoing).catch(() => outgoing.destroy()));
proxy.listen(0, '127.0.0.1');
await once(proxy, 'listening');
const publicUrl = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;

const handoff = await createHandoff(
  readHandoffSettings({
    environment: {
      SERVICE_DATABASE_URL: 'sqlite::memory:',
      SERVICE_ADMIN_KEY: key,
      SERVICE_HOST: '127.0.0.1',
      SERVICE_PORT: '0',
      SERVICE_PUBLIC_URL: publicUrl,
      SERVICE_WEBHOOK_ALLOW: '127.0.0.1',
      SERVICE_RATE_LIMIT_PER_MINUTE: '0',
      SERVICE_HOURLY_QUOTA_BUSINESS: '0',
    },
  }),
  { logs: { write: (line: string) => void (/"level":[56]0/.test(line) && process.stderr.write(line)) } },
);
address = await handoff.start();

async function call(path: string, method: string, body: object): Promise<{ status: number; body: Packet }> {
  const headers = { 'x-api-key': key, 'content-type': 'application/json' };
  const answer = await fetch(`${address}/api/v1${path}`, { method, headers, body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) console.error(method, path, answer.status, text);
  return { status: answer.status, body: text === '' ? (null as never) : JSON.parse(text) };
}
interface Packet {
  readonly id: string;
  readonly context: { readonly custom: { readonly a2a?: { readonly message_id: string } } };
}

const text = (key: string, value: string) => ({ key, value, content_type: 'text/plain' });
/** The artifact of a task, by the prefix of its message's id (the scenarios of the TCK). */
const artifacts: Readonly<Record<string, object>> = {
  'artifact-text': text('text', 'Generated text content'),
  'artifact-file-url': text('output.txt', 'https://example.com/output.txt'),
  'artifact-file': text('output.txt', 'data:text/plain;base64,dGNr'),
  'artifact-data': { key: 'data', value: { key: 'value', count: 42 } },
  'stream-artifact-text': text('text', 'Streamed text content'),
  'stream-artifact-file': text('output.txt', 'data:text/plain;base64,dGNr'),
  'stream-artifact-chunked': text('text', 'chunk-1 chunk-2'),
  'stream-ordering-001': text('text', 'Ordered output'),
  'stream-001': text('text', 'Stream hello from TCK'),
  'stream-003': text('text', 'Stream task lifecycle'),
};

/** Does what the TCK expects of its sample agent. */
async function work({ id, context }: Packet): Promise<void> {
  const scenario = (context.custom.a2a?.message_id ?? '').replace(/^tck-/, '');
  const change = (body: object) => call(`/packets/${id}`, 'PATCH', body);
  if (scenario.startsWith('input-required')) {
    await change({ status: 'awaiting_human', hitl: { required: true, reason: 'The TCK asks for it', question: 'Go on?' } });
    return;
  }
  if (scenario.startsWith('reject-task')) {
    await change({ status: 'failed', actions: { failed: [{ id: 'reject', description: 'Take the task', error: 'rejected' }] } });
    return;
  }
  if (scenario.startsWith('stream')) await pause(100);
  if (scenario.startsWith('test-resubscribe')) await pause(4_000);
  // The longest prefix that fits is listed first.
  const artifact = Object.entries(artifacts).find(([prefix]) => scenario.startsWith(prefix))?.[1];
  await change({ status: 'in_progress', ...(artifact === undefined ? {} : { context: { artifacts: [artifact] } }) });
  if (scenario.startsWith('stream')) await pause(100);
  const completed = scenario.startsWith('complete-task') ? [{ id: 'greet', description: 'Greet', result: 'Hello from TCK' }] : [];
  await change({ status: 'completed', actions: { completed } });
}

let isWorking = true;
/** Claims packets as they come, and works on each at once. */
async function claimAll(): Promise<void> {
  const waiting = new Map<string, Promise<void>>();
  while (isWorking) {
    const { status, body } = await call('/packets/claim-next', 'POST', { agent_id: 'handoff', wait_seconds: 5 });
    if (status !== 200 || body === null) continue;
    waiting.set(
      body.id,
      work(body).finally(() => waiting.delete(body.id)),
    );
  }
  await Promise.all(waiting.values());
}
/** Completes tasks whose question is answered. */
async function completeAnswered(): Promise<void> {
  while (isWorking) {
    await pause(100);
    const answer = await fetch(`${address}/api/v1/packets?status=claimed&view=full`, { headers: { 'x-api-key': key } });
    const { packets } = (await answer.json()) as { packets: (Packet & { hitl: { response: string | null } | null })[] };
    for (const { id, hitl } of packets)
      if (typeof hitl?.response === 'string') await call(`/packets/${id}`, 'PATCH', { status: 'completed' });
  }
}
const workers = Promise.all([claimAll(), completeAnswered()]);

const pytest = [
  '-m',
  'pytest',
  'tests/compatibility/',
  `--sut-host=${publicUrl}`,
  '--webhook-host=127.0.0.1',
  '--tb=short',
  '-q',
  '-rsxXf',
];
const tck = spawn(python, [...pytest, '-p', 'no:cacheprovider', ...pytestArguments], { cwd: checkout, stdio: 'inherit' });
const [code] = await once(tck, 'exit');
isWorking = false;
await workers;
await handoff.stop();
proxy.close();
proxy.closeAllConnections();
process.exitCode = code as number;
