import assert from 'node:assert/strict';
import { test } from 'node:test';

import { verifyWebhook, WebhookError } from '../../src/client.ts';
import { signatureHeaders } from '../../src/handoff/rules/signature.ts';

const body = JSON.stringify({ type: 'packet.created', packet_id: 'p', data: null, timestamp: '2026-03-01T09:30:00.000Z' });
const encoded = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODk=';
const now = new Date('2026-03-01T09:30:00.000Z');
const at = { now: now.getTime() / 1000 };
const signed = (...secrets: string[]) => signatureHeaders({ eventId: 'e', body, secrets, now });

test('The client verifies a webhook by each of its secrets, from headers of Node and of fetch, as text and as bytes', async () => {
  for (const secret of ['sixteen characters', 'schlüssel-schlüssel', encoded, encoded.replace('=', '')]) {
    const headers = signed(secret);
    for (const given of [headers, new Headers(headers), { 'Webhook-ID': 'e', ...headers, other: ['a', 'b'], none: undefined }])
      assert.equal((await verifyWebhook(secret, given, body, at)).type, 'packet.created');
    assert.equal((await verifyWebhook(secret, headers, Buffer.from(body), at)).packet_id, 'p');
    const overlapping = signed('the newest of secrets', secret);
    assert.equal((await verifyWebhook(secret, overlapping, body, at)).data, null);
  }
});

test('The client refuses a webhook with another body, secret, id, time or form, by a WebhookError', async () => {
  const headers = signed(encoded);
  const cases: [string, Record<string, string>, string, object?][] = [
    [encoded, headers, `${body} `],
    ['another secret of enough length', headers, body],
    ['', headers, body],
    [encoded, { ...headers, 'webhook-id': 'other' }, body],
    [encoded, { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) }, body],
    [encoded, { ...headers, 'webhook-timestamp': '' }, body],
    [encoded, { ...headers, 'webhook-timestamp': '1'.repeat(500) }, body],
    [encoded, { ...headers, 'webhook-signature': 'v1,%%%' }, body],
    [encoded, { ...headers, 'webhook-signature': '' }, body],
    [encoded, { ...headers, 'x-service-signature': `sha256=${'0'.repeat(64)}` }, body],
    [encoded, {}, body],
    [encoded, headers, body, { now: at.now + 301 }],
    [encoded, headers, body, { now: at.now - 301 }],
    [encoded, headers, body, { now: at.now + 11, tolerance: 10 }],
  ];
  for (const [secret, given, text, options = at] of cases) await assert.rejects(verifyWebhook(secret, given, text, options), WebhookError);
  const noJson = signatureHeaders({ eventId: 'e', body: '{', secrets: [encoded], now });
  await assert.rejects(verifyWebhook(encoded, noJson, '{', at), /The body is no JSON/);
});
