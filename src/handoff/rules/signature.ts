import { createHmac } from 'node:crypto';

/** The input of a delivery's signatures. */
export interface Signed {
  /** The event's id: the same for every webhook and attempt. */
  readonly eventId: string;
  /** The body that is sent. */
  readonly body: Buffer | string;
  /** The secrets to sign with, newest first; their UTF-8 bytes are the keys. */
  readonly secrets: readonly string[];
  readonly now: Date;
}

/**
 * Returns the headers that sign a delivery: `X-SERVICE-Signature` over the raw body with the newest secret, and the three
 * headers of Standard Webhooks (https://www.standardwebhooks.com) with one signature per secret. Those sign the time as
 * well, so that a receiver can reject replays.
 */
export function signatureHeaders({ eventId, body, secrets, now }: Signed): Record<string, string> {
  const timestamp = Math.floor(now.getTime() / 1000);
  const signed = (secret: string) => createHmac('sha256', secret).update(`${eventId}.${timestamp}.`).update(body).digest('base64');
  return {
    'x-service-signature': `sha256=${createHmac('sha256', secrets[0]!).update(body).digest('hex')}`,
    'webhook-id': eventId,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': secrets.map((secret) => `v1,${signed(secret)}`).join(' '),
  };
}
