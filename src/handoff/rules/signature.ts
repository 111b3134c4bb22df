import { createHmac } from 'node:crypto';

import { invalid } from '../../kit/errors.ts';

/** The input of a delivery's signatures. */
export interface Signed {
  /** The event's id: the same for every webhook and attempt. */
  readonly eventId: string;
  /** The body that is sent. */
  readonly body: Buffer | string;
  /** The secrets to sign with, newest first. */
  readonly secrets: readonly string[];
  readonly now: Date;
}

/** The beginning of secrets whose rest is the key in base64, as Standard Webhooks writes them. */
const encodedPrefix = 'whsec_';

/** The key that a secret `whsec_<base64>` encodes; undefined for any other. */
function decoded(secret: string): Buffer | undefined {
  const text = secret.startsWith(encodedPrefix) ? secret.slice(encodedPrefix.length) : '';
  const key = Buffer.from(text, 'base64');
  const canonical = key.toString('base64');
  return key.length > 0 && (text === canonical || text === canonical.replace(/=+$/, '')) ? key : undefined;
}

/** The fewest and the most bytes of a key in Standard Webhooks. */
const [leastBytes, mostBytes] = [24, 64];

/** Requires that receivers can use the secret of a webhook. @throws ServiceError 400 */
export function requireSecret(secret: string): void {
  if (!secret.startsWith(encodedPrefix)) return;
  const key = decoded(secret);
  if (key === undefined || key.length < leastBytes || key.length > mostBytes)
    throw invalid(
      'secret',
      `secret begins with whsec_, so the rest must be ${leastBytes} to ${mostBytes} bytes in base64 (A to Z, a to z, 0 to 9, +, /), as Standard Webhooks has it.`,
    );
}

/**
 * Returns the headers that sign a delivery: `X-SERVICE-Signature` over the raw body with the newest secret, and the three
 * headers of Standard Webhooks (https://www.standardwebhooks.com) with one signature per secret. Those sign the time as
 * well, so that a receiver can reject replays. Their key is what a secret `whsec_<base64>` encodes, and the UTF-8 bytes of
 * any other; the key of `X-SERVICE-Signature` always is the secret's UTF-8 bytes.
 */
export function signatureHeaders({ eventId, body, secrets, now }: Signed): Record<string, string> {
  const timestamp = Math.floor(now.getTime() / 1000);
  const signed = (secret: string) =>
    createHmac('sha256', decoded(secret) ?? secret)
      .update(`${eventId}.${timestamp}.`)
      .update(body)
      .digest('base64');
  return {
    'x-service-signature': `sha256=${createHmac('sha256', secrets[0]!).update(body).digest('hex')}`,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => `v1,${signed(secret)}`).join(' '),
  };
}
