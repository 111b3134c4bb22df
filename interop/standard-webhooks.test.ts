import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Webhook } from 'standardwebhooks';

import { createHandoff } from '../src/server.ts';

const run = promisify(execFile);
const path = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const guide = readFileSync(path('../docs/events.md'), 'utf8');

/** A line of docs/events.md that verifies a delivery with a library of Standard Webhooks. */
const lineOf = (language: string) => new RegExp(`^\`\`\`${language}\\n(.*event = .*)\\n\`\`\`$`, 'm').exec(guide)![1]!;

interface Posted {
  headers: IncomingHttpHeaders;
  body: string;
}

/** What a webhook with the secret receives for a created packet. */
async function delivered(t: TestContext, secret: string): Promise<Posted> {
  const { promise, resolve } = Promise.withResolvers<Posted>();
  const receiver = createServer(async (request, response) => {
    const body = await text(request);
    response.writeHead(204).end();
    resolve({ headers: request.headers, body });
  }).listen(0, '127.0.0.1');
  t.after(() => receiver.close());
  await using service = await createHandoff({ webhookAllow: ['127.0.0.1'] });
  const post = async (to: string, sent: object) => {
    const headers = { 'x-api-key': service.adminKey!, 'content-type': 'application/json' };
    const answer = await fetch(`${service.url}/api/v1${to}`, { method: 'POST', headers, body: JSON.stringify(sent) });
    assert.equal(answer.status, 201, await answer.text());
  };
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;
  await post('/hooks', { url, secret, events: ['packet.created'] });
  const agent = { id: 'a', name: 'A', framework: 'none' };
  await post('/packets', { metadata: { source_agent: agent, target_agent: agent }, context: { summary: 'A refund of 42 €' } });
  // The service must not stop before it has delivered.
  return await promise;
}

const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;

test('The library of Standard Webhooks on npm verifies a delivery with the line in docs/events.md', async (t) => {
  const { headers, body } = await delivered(t, secret);
  const verify = new Function('Webhook', 'secret', 'rawBody', 'headers', `${lineOf('js')} return event;`);
  assert.deepEqual(verify(Webhook, secret, body, headers), JSON.parse(body));
  assert.throws(() => verify(Webhook, secret, body.replace('42', '43'), headers), /signature/);
});

test('The library of Standard Webhooks on PyPI verifies a delivery with the line in docs/events.md', async (t) => {
  const { headers, body } = await delivered(t, secret);
  const program = `import json, sys
from standardwebhooks import Webhook, WebhookVerificationError
secret, given = sys.argv[1], json.loads(sys.argv[2])
headers, raw_body = given["headers"], given["body"].encode()
${lineOf('py')}
print(json.dumps(event))
try:
    Webhook(secret).verify(raw_body.replace(b"42", b"43"), headers)
except WebhookVerificationError as error:
    print(error)
`;
  const { stdout } = await run(path('.venv/bin/python'), ['-c', program, secret, JSON.stringify({ headers, body })]);
  const [event, refusal] = stdout.trim().split('\n');
  assert.deepEqual(JSON.parse(event!), JSON.parse(body));
  assert.match(refusal!, /signature/);
});
